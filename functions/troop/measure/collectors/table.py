"""Reads a table with a row for each request, of any tool: the caller names the columns and states their units.

    python3 -m troop.measure.collectors table hits.csv --began at:ns --time took:ns --status code --good 200-399

A moment or a time is a column with its unit, such as ``took:us``, or a sum of several, such as
``second:s+fraction:us``. Moments are since 1970, or since the ``origin`` of a tool that writes offsets.

A row whose status is good and whose error is empty is a success. A success needs a time: an empty cell is a problem,
and not a time of zero.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, NamedTuple

from troop.measure.collectors.common import LONGEST_FIELD, CollectorError, Problems, header_of, places_of
from troop.measure.collectors.growing import Growing, text_of
from troop.measure.collectors.window import Counted, Window
from troop.measure.hdr_log import UNITS

BLANKS = " "
"""The separator of columns that any number of blanks separates."""

_SECOND = 10**9
"""Nanoseconds per second."""
_TERM = re.compile(rf"(.+?):({'|'.join(UNITS)})(?:\+|$)")
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


class Term(NamedTuple):
    """A column with the nanoseconds of its unit."""

    column: str
    unit: int


def terms(text: str) -> tuple[Term, ...]:
    """Reads ``COLUMN:UNIT``, or several of them joined by ``+``.

    Raises:
        ValueError: a unit is missing or unknown.
    """
    matches = list(_TERM.finditer(text))
    if not text or text.endswith("+") or sum(len(match[0]) for match in matches) != len(text):
        raise ValueError(f"{text!r} must be a column with its unit, such as took:ms; units are {', '.join(UNITS)}")
    return tuple(Term(match[1], UNITS[match[2]]) for match in matches)


def good(text: str) -> Callable[[str], bool]:
    """Returns the check of a status: ``200-399,OK`` accepts numbers of a range, and a word."""
    words = {word.strip() for word in text.split(",")}
    ranges = [(int(match[1]), int(match[2])) for match in map(_RANGE.fullmatch, words) if match]
    return lambda status: (
        status in words
        or (status.isascii() and status.isdigit() and any(low <= int(status) <= high for low, high in ranges))
    )


@dataclass(frozen=True)
class Table:
    """What the columns of a table mean.

    Attributes:
        time: how long a request took.
        moment: when it began or ended.
        is_end: whether ``moment`` is the end.
        origin: of moments, in seconds since 1970.
        columns: their names; empty if the first line has them.
        operation: the name of all operations, if no column has it.
        name: the column with the name of the operation.
        status: the column that ``is_good`` judges.
        error: the column with a text if the request failed.
        moved: the column with bytes.
        failures: words in place of a time: the request failed, and the word is the kind of its error.
    """

    time: tuple[Term, ...]
    moment: tuple[Term, ...]
    is_end: bool = False
    origin: float = 0.0
    columns: tuple[str, ...] = ()
    separator: str = ","
    operation: str = "requests"
    name: str | None = None
    status: str | None = None
    is_good: Callable[[str], bool] = good("200-399")
    error: str | None = None
    moved: str | None = None
    failures: frozenset[str] = frozenset()

    @property
    def needed(self) -> list[str]:
        """The names of the columns that are read."""
        others = (self.name, self.status, self.error, self.moved)
        return [*(term.column for term in (*self.time, *self.moment)), *filter(None, others)]


def follow(
    path: Path,
    is_over: Callable[[], bool],
    table: Table,
    window: Window,
    problems: Problems,
    results: Path | None = None,
) -> Counted:
    """Reads the requests that ended within the window, while a tool writes them.

    Args:
        is_over: whether the tool has ended.
        results: the folder for running summaries; None for none.

    Raises:
        OSError: the file cannot be read, or does not exist when the tool has ended.
        CollectorError: the file lacks a column, or has it twice.
    """
    totals = Counted(window)
    with totals.live(results), text_of(Growing(path, is_over)) as lines:
        return counted(lines, str(path), table, problems, totals)


def counted(lines: Iterable[str], name: str, table: Table, problems: Problems, totals: Counted) -> Counted:
    """Adds the requests in lines to ``totals``, as :func:`follow` does. Memory is bounded, whatever their number."""
    csv.field_size_limit(LONGEST_FIELD)
    source = _Lines(lines)
    rows = _rows(source, table.separator)
    columns = [column.strip() for column in table.columns] or header_of(rows, name)
    at = places_of(columns, table.needed, name)
    if missing := [column for column in table.needed if column not in at]:
        there = ", ".join(columns)[:300] or "none"
        raise CollectorError(f"{name}:1: there is no column {', '.join(missing)}: the columns are {there}")
    count = _counter(table, at, totals)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            problems.add(f"{name}:{source.number}: {error}")
            continue
        if not row:
            continue
        try:
            if len(row) != len(columns):
                raise ValueError(f"the row has {len(row)} columns instead of {len(columns)}")
            count(row)
        except (ValueError, OverflowError) as error:
            problems.add(f"{name}:{source.number}: {error}")
    if source.is_cut:
        problems.add(f"{name}:{source.number + 1}: the last line is incomplete")
    return totals


def _counter(table: Table, at: Mapping[str, int], totals: Counted) -> Callable[[Sequence[str]], None]:
    """Returns a function that counts a row. It raises a ValueError or an OverflowError for a row that is none."""
    time, moment = ([(at[term.column], term.unit) for term in terms] for terms in (table.time, table.moment))
    name, status, error, moved = (
        None if column is None else at[column] for column in (table.name, table.status, table.error, table.moved)
    )

    def count(row: Sequence[str]) -> None:
        label = table.operation if name is None else row[name]
        when = _sum(row, moment) / _SECOND + table.origin
        if (kind := failure(row)) is not None:
            totals.error(label, when if table.is_end else when + lasted(row) / _SECOND, kind)
            return
        took = _sum(row, time)
        if took < 0:
            raise ValueError(f"the time is {took} ns: must be from 0")
        size = int(row[moved] or 0) if moved is not None else 0
        if size < 0:
            raise ValueError(f"{table.moved} is {size}: must be from 0")
        totals.ok(label, when if table.is_end else when + took / _SECOND, (took + 500) // 1000, size)

    def failure(row: Sequence[str]) -> str | None:
        """Returns the kind of the error; None for a success."""
        word = row[time[0][0]]
        if word in table.failures:
            return word
        cause = row[error] if error is not None else ""
        if status is not None and not table.is_good(row[status]):
            return row[status] if row[status].strip("0") else _last_cause(cause)
        return _last_cause(cause) if cause else None

    def lasted(row: Sequence[str]) -> int:
        """Returns the nanoseconds that a failed request took; 0 if they are unknown."""
        try:
            return max(0, _sum(row, time))
        except (ValueError, OverflowError):
            return 0

    return count


def _last_cause(text: str) -> str:
    """Returns what follows the last colon of an error, which has no addresses: ``connection refused``."""
    return text.rpartition(": ")[2].strip() or "failed"


def _sum(row: Sequence[str], columns: Iterable[tuple[int, int]]) -> int:
    """Returns nanoseconds.

    Raises:
        ValueError, OverflowError: a cell is no finite number.
    """
    total = 0
    for column, unit in columns:
        text = row[column]
        if not text:
            raise ValueError("a time or a moment is empty")
        total += int(text) * unit if text.isdigit() else round(float(text) * unit)
    return total


def _rows(lines: Iterator[str], separator: str) -> Iterator[list[str]]:
    if separator == BLANKS:
        return (line.split() for line in lines)
    return iter(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))


class _Lines:
    """Whole lines.

    Attributes:
        number: of the last line.
        is_cut: whether the last line has no line end, and is left out.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.number, self.is_cut = 0, False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if not line.endswith(("\n", "\r")):
            self.is_cut = True
            raise StopIteration
        self.number += 1
        return line.replace("\0", "").lstrip("\ufeff") if self.number == 1 else line.replace("\0", "")
