"""JMeter's log of samples, JTL, as CSV: each column by its name in the header, whichever there are and in any order.

A sample's ``timeStamp`` is the moment of its start unless JMeter was told ``sampleresult.timestamp.start=false``; its
``elapsed`` is in milliseconds, so no time is known better than to one.

Some samples are made of others, which are in the log as well, and would count twice:

- Requests that came of one sampler, for redirects and embedded resources, follow it as ``label-0``, ``label-1``. They
  are left out, for the sample is all of them.
- Transaction controllers, before or after what they consist of ("generate parent sample" or not). They are left out
  where their parts are in the log, and count where these are not.

JMeter keeps all samples of a thread in order, so which belong together is told by thread and time.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from troop.measure.collectors.common import CollectorError, Problems, a_name
from troop.measure.collectors.window import Counted, Window
from troop.measure.histogram import HIGHEST
from troop.measure.operations import LONGEST_SECONDS

NEEDED = ("timeStamp", "elapsed", "label", "success")
TELLING = ("responseMessage", "threadName")
"""Columns by which what would count twice is told."""

LONGEST_FIELD = 1 << 20
"""Characters: a message may hold a whole answer."""

TRANSACTION = "Number of samples in transaction : "
"""How the message of a transaction controller's sample begins."""
LONGEST = 1000 * LONGEST_SECONDS
"""Milliseconds of a sample."""
LATEST = 1 << 53
"""Milliseconds, since 1970."""
MOST_REMEMBERED = 100_000
"""Threads, and transactions, of which something is remembered."""

_DELIMITER = re.compile(r'(?:"\w+"|\w+)([^\w\s"]|\t)')
"""What stands behind the first column's name."""
_ENDS = ("\n", "\r")
_IN_WORDS = re.compile(r"[0-9][/:. -]+[0-9]")
_IN_MILLISECONDS = "must be in milliseconds: let JMeter save it so (jmeter.save.saveservice.timestamp_format=ms)"
_NUMBERED = re.compile(r"(-[0-9]+)+")


def read(path: Path, window: Window, problems: Problems, *, stamped_at_end: bool = False) -> Counted:
    """The samples that ended within the window; errors by their response code.

    Args:
        stamped_at_end: JMeter was told to save the moment of a sample's end.

    Raises:
        OSError: the file cannot be read.
        CollectorError: it does not begin with a header that has the columns :data:`NEEDED`.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        return counted(lines, str(path), window, problems, stamped_at_end=stamped_at_end)


def counted(
    lines: Iterable[str], name: str, window: Window, problems: Problems, *, stamped_at_end: bool = False
) -> Counted:
    """As :func:`read`, of a file's lines. A million samples take a few seconds and no memory to speak of."""
    csv.field_size_limit(LONGEST_FIELD)
    source = _Lines(lines)
    rows = csv.reader(source, strict=True, delimiter=source.delimiter)
    columns = _columns(rows, name)
    stamp, elapsed, label, success = (columns[column] for column in NEEDED)
    code, moved, idle = columns.get("responseCode"), columns.get("bytes"), columns.get("IdleTime")
    message, thread = columns.get("responseMessage"), columns.get("threadName")
    once, counted, width, in_words = _Once(), Counted(window), len(columns), False
    if unknown := [column for column in TELLING if column not in columns]:
        problems.add(
            f"{name}:1: the header has no {', '.join(unknown)}: transactions, and requests that came of a sampler, "
            "count beside their parts, if the log has any: let JMeter save them "
            "(jmeter.save.saveservice.thread_name=true, and response_message=true)"
        )

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
                wrong = f"it has {len(row)} columns, and the header has {width}"
        if wrong:
            problems.add(f"{name}:{source.begin}: {wrong}")
            if len(source.row) > 1:  # a quote without an end: the lines after it are none of its row
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
                failed = _kind(row[code]) if code is not None else "failed"
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
        problems.add(f"{name}:{source.number}: the log ends in the midst of a line")
    return counted


class Sample(NamedTuple):
    """A line of the log.

    Attributes:
        began: milliseconds since 1970.
        ended: the same; pauses in it, which are no part of its time, are over then.
        took: milliseconds.
        error: of which kind; None if it succeeded.
        moved: bytes.
    """

    label: str
    began: int
    ended: int
    took: int
    error: str | None
    moved: int


class _Once:
    """Which samples count, so that nothing counts twice. It remembers the last sample of each thread.

    Moments are in whole milliseconds, so a sample of no time at all, at the edge of a transaction, may be part of it or
    not: then what was certain of the same transaction before decides.
    """

    def __init__(self) -> None:
        self._last: dict[str, Sample] = {}
        self._held: dict[str, Sample] = {}  # transactions whose parts are to follow, if they are in the log
        self._with_parts: dict[str, bool] = {}

    def of(self, thread: str, sample: Sample, *, transaction: bool) -> Iterator[Sample]:
        """What counts, now that this one is known."""
        held = self._held.pop(thread, None)
        if held is not None and not self._followed(held, sample, transaction=transaction):
            self._remember(thread, held)
            yield held
        last = self._last.get(thread)
        if not transaction:
            if last is None or not _is_of(sample, last):
                self._remember(thread, sample)
                yield sample
        elif last is None or not self._preceded(sample, last):
            if len(self._held) >= MOST_REMEMBERED:
                first = self._held.pop(next(iter(self._held)))
                if not self._with_parts.get(first.label, False):
                    yield first
            self._held[thread] = sample

    def rest(self) -> Iterable[Sample]:
        """What counts, now that there are no more."""
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

    def _remember(self, thread: str, sample: Sample) -> None:
        """As the last one of its thread; the thread that has been silent for longest is forgotten."""
        self._last.pop(thread, None)
        if len(self._last) >= MOST_REMEMBERED:
            del self._last[next(iter(self._last))]
        self._last[thread] = sample


def _is_of(sample: Sample, whole: Sample) -> bool:
    """Whether it is one of the requests that came of a sampler."""
    begin = len(whole.label)
    return (
        sample.label.startswith(whole.label)
        and _NUMBERED.fullmatch(sample.label, begin) is not None
        and whole.began <= sample.began
        and sample.ended <= whole.ended
    )


class _Lines:
    """Lines without zeros, which a disk that ran full leaves, and the CSV reader takes for the end of the world.

    Attributes:
        delimiter: as the first line has it; a comma where that has but one column.
        row: those that were taken since it was cleared.
        number: of the last one that was taken.
        whole: whether the last line has an end.
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
        """The number of the first line of the row."""
        return self.number - max(len(self.row) - 1, 0)

    def give_back(self) -> None:
        """All of the row but its first line is to come again, for another reader."""
        self._again.extendleft(reversed(self.row[1:]))
        self.number -= len(self.row) - 1

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
            f"{name}:1: the header has no {', '.join(missing)}: let JMeter save it "
            "(jmeter.save.saveservice.print_field_names=true, and output_format=csv)"
        )
    if len(columns) != len(header):
        raise CollectorError(f"{name}:1: the header names a column twice")
    return columns


def _kind(code: str) -> str:
    """A response code such as ``404``; without an answer JMeter writes what kind of exception it was."""
    text = code.rpartition(":")[2].strip() or code
    return a_name(text.rpartition(".")[2] or text) if text else "failed"
