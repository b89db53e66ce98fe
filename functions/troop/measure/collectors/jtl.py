"""Reads JMeter's log of samples, JTL, as CSV. Columns are found by their names in the header, in any order.

A sample's ``timeStamp`` is its start unless JMeter ran with ``sampleresult.timestamp.start=false``. ``elapsed`` is in
milliseconds, which limits the precision of all times.

Some samples consist of others that are also in the log, and would count twice:

- Requests of a sampler, for redirects and embedded resources, follow it as ``label-0``, ``label-1``. They are left out,
  because the sample includes them.
- Transaction controllers, before or after their parts ("generate parent sample" or not). They are left out if their
  parts are in the log, and count otherwise.

JMeter logs all samples of a thread in order, so thread and time show which samples belong together.

Logs are read by columns until the first row that needs a closer look: a damaged one, a transaction, or a request of a
sampler. From there on they are read by rows, which takes three times as long.
"""

from __future__ import annotations

import csv
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Callable, TextIO

from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.growing import Growing, text_of
from troop.measure.collectors.jtl_columns import Columns, Layout
from troop.measure.collectors.jtl_pool import Processes
from troop.measure.collectors.jtl_sample import (
    LATEST,
    LONGEST,
    LONGEST_FIELD,
    MOST_REMEMBERED,
    TRANSACTION,
    Sample,
    error_kind,
)
from troop.measure.collectors.window import Counted, Window
from troop.measure.histogram import HIGHEST

NEEDED = ("timeStamp", "elapsed", "label", "success")
TELLING = ("responseMessage", "threadName")
"""Optional columns that are needed to recognize samples that would count twice."""


SETTLE_SECONDS = 5.0

_DELIMITER = re.compile(r'(?:"\w+"|\w+)([^\w\s"]|\t)')
"""The character after the first column's name."""
_ENDS = ("\n", "\r")
_IN_WORDS = re.compile(r"[0-9][/:. -]+[0-9]")
_IN_MILLISECONDS = "must be in milliseconds: set jmeter.save.saveservice.timestamp_format=ms"
_NUMBERED = re.compile(r"(-[0-9]+)+")


def read(path: Path, window: Window, problems: Problems, *, stamped_at_end: bool = False) -> Counted:
    """Reads the samples that ended within the window; errors are counted by response code.

    Args:
        stamped_at_end: JMeter saved the end of each sample as its timestamp.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file does not begin with a header with the columns :data:`NEEDED`.
    """
    return follow(path, lambda: True, window, problems, stamped_at_end=stamped_at_end)


def follow(
    path: Path,
    is_over: Callable[[], bool],
    window: Window,
    problems: Problems,
    *,
    stamped_at_end: bool = False,
    results: Path | None = None,
) -> Counted:
    """Reads the samples while JMeter writes them, and on all processors if much is waiting. The result is that of
    :func:`read` after JMeter's end, and needs nothing more than the rest of the log then.

    Args:
        is_over: whether JMeter has ended.
        results: the folder for running summaries; None for none.

    Raises:
        OSError: the file cannot be read, or does not exist when JMeter has ended.
        CollectorError: as :func:`read`.
    """
    log, totals = Growing(path, is_over), Counted(window)
    with totals.live(results), text_of(log) as lines:
        return counted(
            lines, str(path), window, problems, totals, stamped_at_end=stamped_at_end, waiting=lambda: log.waiting
        )


def counted(
    lines: TextIO,
    name: str,
    window: Window,
    problems: Problems,
    totals: Counted | None = None,
    *,
    stamped_at_end: bool = False,
    waiting: Callable[[], int] = lambda: 0,
) -> Counted:
    """Counts the samples in a file, as :func:`read` does. Takes a few seconds for a million, and little memory.

    Args:
        totals: what to add to, every few seconds; nothing by default.
        waiting: the number of bytes that could be read now; if they are many, several processes count them.
    """
    csv.field_size_limit(LONGEST_FIELD)
    source = _Lines(lines)
    rows = csv.reader(source, strict=True, delimiter=source.delimiter)
    columns = _columns(rows, name)
    stamp, elapsed, label, success = (columns[column] for column in NEEDED)
    code, moved, idle = columns.get("responseCode"), columns.get("bytes"), columns.get("IdleTime")
    message, thread = columns.get("responseMessage"), columns.get("threadName")
    once, counted, width, in_words = _Once(), totals or Counted(window), len(columns), False
    if unknown := [column for column in TELLING if column not in columns]:
        problems.add(
            f"{name}:1: the header has no {', '.join(unknown)}: transactions and requests of a sampler "
            "would count twice. Let JMeter save these columns "
            "(jmeter.save.saveservice.thread_name=true and response_message=true)"
        )

    layout = Layout(width, source.delimiter, stamp, elapsed, label, success, code, moved, idle, message, thread)
    with Processes(layout, window, waiting, stamped_at_end=stamped_at_end) as pool:
        by_columns = Columns(
            layout,
            window,
            counted,
            once.remember,
            stamped_at_end=stamped_at_end,
            pool=pool,
            settles_every=math.inf if totals is None else SETTLE_SECONDS,
        )
        rest = by_columns.take_from(lines)
    source.resume(chain(rest, lines), by_columns.lines)
    rows = csv.reader(source, strict=True, delimiter=source.delimiter)

    def take(sample: Sample) -> None:
        if sample.error is None:
            counted.ok(sample.label, sample.ended / 1000, sample.took * 1000, sample.moved)
        else:
            counted.error(sample.label, sample.ended / 1000, sample.error)

    while True:
        source.row.clear()
        wrong = ""
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            wrong = str(error)
        else:
            if len(row) != width and row:
                wrong = f"the row has {len(row)} columns, but the header has {width}"
        if wrong:
            problems.add(f"{name}:{source.begin}: {wrong}")
            if len(source.row) > 1:  # an unclosed quote: the lines after it are separate rows
                source.give_back()
                rows = csv.reader(source, strict=True, delimiter=source.delimiter)
            continue
        if not row:
            continue
        try:
            took = int(row[elapsed])
            if not 0 <= took <= LONGEST:
                raise ValueError(f"elapsed is {took}: must be from 0 to {LONGEST}")
            lasted = took + (int(row[idle] or 0) if idle is not None else 0)
            began = int(row[stamp]) - (lasted if stamped_at_end else 0)
            if not -LATEST < began < LATEST or not 0 <= lasted < LATEST:
                raise ValueError(f"timeStamp is {row[stamp]}")
            failed: str | None = None
            if row[success] != "true":
                failed = "failed"
                if code is not None:
                    failed = error_kind(row[code], row[message] if message is not None else "")
                if row[success] != "false":
                    raise ValueError(f"success is {row[success]!r}")
            bytes_moved = int(row[moved] or 0) if moved is not None and failed is None else 0
            if not 0 <= bytes_moved <= HIGHEST:
                raise ValueError(f"bytes is {bytes_moved}: must be from 0 to {HIGHEST}")
        except ValueError as error:
            if not _IN_WORDS.search(row[stamp]):
                problems.add(f"{name}:{source.begin}: {error}")
            elif in_words:
                problems.again()
            else:
                problems.add(f"{name}:{source.begin}: timeStamp is {row[stamp][:80]!r}: {_IN_MILLISECONDS}")
                in_words = True
            continue
        sample = Sample(row[label], began, began + lasted, took, failed, bytes_moved)
        if thread is None or message is None:
            take(sample)
        else:
            for one in once.of(row[thread], sample, transaction=row[message].startswith(TRANSACTION)):
                take(one)
    for one in once.rest():
        take(one)
    if not source.whole:
        problems.add(f"{name}:{source.number}: the last line of the log is incomplete")
    return counted


class _Once:
    """Selects the samples that count, so that nothing counts twice. Remembers the last sample of each thread.

    Times are whole milliseconds, so a sample without length at the edge of a transaction may be part of it or not. Then
    the last certain case of the same transaction decides.
    """

    def __init__(self) -> None:
        self._last: dict[str, Sample] = {}
        self._held: dict[str, Sample] = {}  # transactions whose parts may follow
        self._with_parts: dict[str, bool] = {}

    def of(self, thread: str, sample: Sample, *, transaction: bool) -> Iterator[Sample]:
        """Yields the samples that count, now that the next one is known."""
        held = self._held.pop(thread, None)
        if held is not None and not self._followed(held, sample, transaction=transaction):
            self.remember(thread, held)
            yield held
        last = self._last.get(thread)
        if not transaction:
            if last is None or not _is_of(sample, last):
                self.remember(thread, sample)
                yield sample
        elif last is None or not self._preceded(sample, last):
            if len(self._held) >= MOST_REMEMBERED:
                first = self._held.pop(next(iter(self._held)))
                if not self._with_parts.get(first.label, False):
                    yield first
            self._held[thread] = sample

    def rest(self) -> Iterable[Sample]:
        """Returns the samples that count at the end of the log."""
        return self._held.values()

    def _preceded(self, transaction: Sample, last: Sample) -> bool:
        if last.began < transaction.began:
            return False
        if last.ended > transaction.began:
            self._learn(transaction, True)
            return True
        return self._with_parts.get(transaction.label, False)

    def _followed(self, held: Sample, after: Sample, *, transaction: bool) -> bool:
        within = held.began <= after.began and after.ended <= held.ended
        around = transaction and (after.began, after.ended) == (held.began, held.ended)
        if within and (after.began == held.ended or around):
            return self._with_parts.get(held.label, True)
        self._learn(held, within)
        return within

    def _learn(self, transaction: Sample, with_parts: bool) -> None:
        if transaction.label in self._with_parts or len(self._with_parts) < MOST_REMEMBERED:
            self._with_parts[transaction.label] = with_parts

    def remember(self, thread: str, sample: Sample) -> None:
        """Remembers the thread's last sample; forgets the thread that has been silent for longest."""
        self._last.pop(thread, None)
        if len(self._last) >= MOST_REMEMBERED:
            del self._last[next(iter(self._last))]
        self._last[thread] = sample


def _is_of(sample: Sample, whole: Sample) -> bool:
    """Checks whether a sample is one of the requests of a sampler."""
    begin = len(whole.label)
    return (
        sample.label.startswith(whole.label)
        and _NUMBERED.fullmatch(sample.label, begin) is not None
        and whole.began <= sample.began
        and sample.ended <= whole.ended
    )


class _Lines:
    """Lines without NUL characters, which a full disk leaves and the CSV reader cannot read.

    Attributes:
        delimiter: that of the first line; a comma if it has only one column.
        row: the lines read since it was cleared.
        number: of the last line read.
        whole: whether the last line has a line ending.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        header = next(self._lines, "\n").replace("\0", "").lstrip("\ufeff")
        self._again = deque([header])
        match = _DELIMITER.match(header)
        self.delimiter = match[1] if match else ","
        self.whole = header.endswith(_ENDS)
        self.row: list[str] = []
        self.number = 0

    @property
    def begin(self) -> int:
        """The number of the row's first line."""
        return self.number - max(len(self.row) - 1, 0)

    def give_back(self) -> None:
        """Returns all lines of the row but the first to the input, for another reader."""
        self._again.extendleft(reversed(self.row[1:]))
        self.number -= len(self.row) - 1

    def resume(self, lines: Iterable[str], skipped: int) -> None:
        """Continues with other lines, after ``skipped`` lines that were read elsewhere."""
        self._lines = iter(lines)
        self.number += skipped
        self.whole = self.whole or skipped > 0

    def __iter__(self) -> Iterator[str]:
        row, line = self.row, None
        while self._again:
            self.number += 1
            row.append(self._again.popleft())
            yield row[-1]
        for line in self._lines:
            self.number += 1
            if "\0" in line:
                line = line.replace("\0", "")
            row.append(line)
            yield line
        if line is not None:
            self.whole = line.endswith(_ENDS)


def _columns(rows: Iterator[list[str]], name: str) -> dict[str, int]:
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise CollectorError(f"{name}:1: {error}") from None
    columns = {column.strip(): number for number, column in enumerate(header)}
    if missing := [column for column in NEEDED if column not in columns]:
        raise CollectorError(
            f"{name}:1: the header has no {', '.join(missing)}: let JMeter save them "
            "(jmeter.save.saveservice.print_field_names=true and output_format=csv)"
        )
    if len(columns) != len(header):
        raise CollectorError(f"{name}:1: the header has a column twice")
    return columns
