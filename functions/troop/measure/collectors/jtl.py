"""Reads JMeter's log of samples, JTL, as CSV. Columns are found by their names in the header, in any order.

A sample's ``timeStamp`` is its start unless JMeter ran with ``sampleresult.timestamp.start=false``. ``elapsed`` is in
milliseconds, which limits the precision of all times.

Some samples consist of others that are also in the log, and would count twice:

- Requests of a sampler, for redirects and embedded resources, follow it. They are left out, because the sample includes
  them. JMeter names them ``label-0``, ``label-1``, unless ``subresults.disable_renaming`` is true. Under any name, they
  lie within the sample.
- Transaction controllers, before or after their parts ("generate parent sample" or not). They are left out if their
  parts are in the log, and count otherwise.

JMeter logs all samples of a thread in order, so thread and time show which samples belong together. What they cannot
show is a problem.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Callable, TextIO

from troop.measure.collectors.common import LONGEST_FIELD, CollectorError, Problems, a_name, header_of, places_of
from troop.measure.collectors.growing import Growing, text_of
from troop.measure.collectors.jtl_once import Once, Sample
from troop.measure.collectors.window import Counted, Window
from troop.measure.histogram import HIGHEST
from troop.measure.operations import LONGEST_SECONDS

NEEDED = ("timeStamp", "elapsed", "label", "success")
TELLING = ("responseMessage", "threadName")
"""Optional columns that are needed to recognize samples that would count twice."""

LONGEST = 1000 * LONGEST_SECONDS
"""The longest sample in milliseconds."""
LATEST = 1 << 53
"""The latest time in milliseconds since 1970."""
TRANSACTION = "Number of samples in transaction : "
"""The beginning of the message in a transaction controller's sample."""

_DELIMITER = re.compile(r'(?:"\w+"|\w+)([^\w\s"]|\t)')
"""The character after the first column's name."""
_ENDS = ("\n", "\r")
_IN_WORDS = re.compile(r"[0-9][/:. -]+[0-9]")
_IN_MILLISECONDS = "must be in milliseconds: set jmeter.save.saveservice.timestamp_format=ms"
_RENAMING = "run JMeter with subresults.disable_renaming=false"
_JAVA_TIMEOUT = "SocketTimeoutException"
_CONNECTING = re.compile(r"\bconnect timed out", re.IGNORECASE)


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
    """Reads the samples while JMeter writes them. The result is that of :func:`read` after JMeter's end, and needs
    nothing more than the rest of the log then.

    Args:
        is_over: whether JMeter has ended.
        results: the folder for running summaries; None for none.

    Raises:
        OSError: the file cannot be read, or does not exist when JMeter has ended.
        CollectorError: as :func:`read`.
    """
    log, totals = Growing(path, is_over), Counted(window)
    with totals.live(results), text_of(log) as lines:
        return counted(lines, str(path), window, problems, totals, stamped_at_end=stamped_at_end)


def counted(
    lines: TextIO,
    name: str,
    window: Window,
    problems: Problems,
    totals: Counted | None = None,
    *,
    stamped_at_end: bool = False,
) -> Counted:
    """Counts the samples in a file, as :func:`read` does. Takes a few seconds for a million, and little memory.

    Args:
        totals: what to add to; nothing by default.
    """
    csv.field_size_limit(LONGEST_FIELD)
    source = _Lines(lines)
    rows = csv.reader(source, strict=True, delimiter=source.delimiter)
    columns = _columns(rows, name)
    stamp, thread, message = columns["timeStamp"], columns.get("threadName"), columns.get("responseMessage")
    sample_of = _sample_reader(columns, stamped_at_end=stamped_at_end)
    once, counted, width, in_words = Once(), totals or Counted(window), len(columns), False
    if unknown := [column for column in TELLING if column not in columns]:
        problems.add(
            f"{name}:1: the header has no {', '.join(unknown)}: transactions and requests of a sampler "
            "would count twice. Let JMeter save these columns "
            "(jmeter.save.saveservice.thread_name=true and response_message=true)"
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
            sample = sample_of(row)
        except ValueError as error:
            if not _IN_WORDS.search(row[stamp]):
                problems.add(f"{name}:{source.begin}: {error}")
            elif in_words:
                problems.again()
            else:
                problems.add(f"{name}:{source.begin}: timeStamp is {row[stamp][:80]!r}: {_IN_MILLISECONDS}")
                in_words = True
            continue
        if thread is None or message is None:
            take(sample)
        else:
            for one in once.counting(row[thread], sample, transaction=row[message].startswith(TRANSACTION)):
                take(one)
    for one in once.rest():
        take(one)
    if not source.whole:
        problems.add(f"{name}:{source.number}: the last line of the log is incomplete")
    _report(once, name, problems)
    return counted


def _sample_reader(columns: Mapping[str, int], *, stamped_at_end: bool) -> Callable[[Sequence[str]], Sample]:
    """Returns a function that reads a row as a sample. It raises a ValueError for a row that is none."""
    stamp, elapsed, label, success = (columns[column] for column in NEEDED)
    code, message = columns.get("responseCode"), columns.get("responseMessage")
    moved, idle = columns.get("bytes"), columns.get("IdleTime")
    number, failures = columns.get("SampleCount"), columns.get("ErrorCount")

    def sample_of(row: Sequence[str]) -> Sample:
        took = int(row[elapsed])
        if not 0 <= took <= LONGEST:
            raise ValueError(f"elapsed is {took}: must be from 0 to {LONGEST}")
        lasted = took + (int(row[idle] or 0) if idle is not None else 0)
        began = int(row[stamp]) - (lasted if stamped_at_end else 0)
        if not -LATEST < began < LATEST or not 0 <= lasted < LATEST:
            raise ValueError(f"timeStamp is {row[stamp]}")
        if number is not None and row[number] not in ("1", ""):
            raise ValueError(f"SampleCount is {row[number]}: the times of several samples in one row are unknown")
        if failures is not None and row[failures] not in ("1", "0", ""):
            raise ValueError(f"ErrorCount is {row[failures]}: must be 0 or 1")
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
        return Sample(row[label], began, began + lasted, took, failed, bytes_moved)

    return sample_of


def error_kind(code: str, message: str) -> str:
    """Returns a response code such as ``404``; without an answer, the exception's class, which JMeter writes
    instead. Java itself has one class for both timeouts, so the message decides which it was.
    """
    text = code.rpartition(":")[2].strip() or code
    name = text.rpartition(".")[2] or text
    if name == _JAVA_TIMEOUT and _CONNECTING.search(message):
        return "ConnectTimeoutException"
    return a_name(name) if name else "failed"


def _report(once: Once, name: str, problems: Problems) -> None:
    """Adds a sentence for each way in which requests of samplers could not be told apart."""
    if not once.by_time:
        return
    if once.overlapping:
        problems.add(
            f"{name}: samples of {once.overlapping} threads overlap, so {once.by_time} or more samples may be left out "
            f"wrongly as requests of another: {_RENAMING}, and name threads differently"
        )
    if once.unsure:
        problems.add(
            f"{name}: {once.unsure} samples without length count, but may be requests of the sample before: {_RENAMING}"
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
    header = header_of(rows, name)
    columns = places_of(header, header, name)
    if missing := [column for column in NEEDED if column not in columns]:
        raise CollectorError(
            f"{name}:1: the header has no {', '.join(missing)}: let JMeter save them "
            "(jmeter.save.saveservice.print_field_names=true and output_format=csv)"
        )
    return columns
