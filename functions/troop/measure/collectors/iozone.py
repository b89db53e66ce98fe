"""Reads iozone's output in throughput mode (``-t``, or ``-l`` and ``-u``): the rate of each test, without times.

An operation is one test, such as ``initial-writers``. If there are tests with several numbers of processes, names
contain the number: ``2-readers``. The rate is the sum that the children see, because the parent's includes waiting.
Each process completes one record after the other, so processes divided by the rate is the mean time of a record.
Only ``-C`` reports the number of records: without it, an operation's count is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from troop.measure.collectors.common import CollectorError, Problems, a_name
from troop.measure.histogram import MOST
from troop.measure.operations import Operation, Operations, Rate, add_bounded

TOOL = "iozone"
KIB = 1024

_TEST = re.compile(
    r"Children see throughput for\s+([0-9]+) (.*\S)\s*=\s*([0-9]+(?:\.[0-9]+)?|-?nan) ([A-Za-z]+)/sec\s*$"
)
_BEGIN = "Children see throughput"
_LAST = re.compile(r"Min xfer\s*=\s*([0-9.]+) \w+\s*$")
_CHILD = re.compile(r"Child\[[0-9]+\] xfer count =\s*([0-9]+(?:\.[0-9]+)?) (\w+), Throughput =\s*[0-9.]+ \w+/sec\s*$")
_RECORD = re.compile(r"(?:Each process writes a .* in|Record Size) ([0-9]+) (?:kByte|Kbyte|kB|KB)( records)?\s*$")
_COMPLETE = "iozone test complete."
_UNITS = ("kB", "KB", "ops")
_MOST_DIGITS = 18
"""The limit for numbers of processes and of KiB: Python refuses to read integers of thousands of digits."""


@dataclass
class _Test:
    line: int
    processes: int
    label: str
    rate_in_unit: float
    unit: str
    record_kib: int
    moved: float = 0.0
    children: int = 0
    ended: bool = False

    @property
    def whole(self) -> bool:
        return self.ended and self.children in (0, self.processes)

    def rate(self) -> Rate:
        """Returns the rate. Without the size of a record, either operations or bytes are unknown.

        Raises:
            ValueError: a number is out of range.
        """
        size = self.record_kib * KIB
        if self.unit == "ops":
            per_second, moved, count = self.rate_in_unit, self.rate_in_unit * size, self.moved
        else:
            moved = self.rate_in_unit * KIB
            per_second, count = (moved / size, self.moved * KIB / size) if size else (0.0, 0.0)
        numbers = (per_second * 1000, moved, count)
        if not all(0 <= number < MOST for number in numbers):  # false for NaN
            raise ValueError("a number is out of range")
        thousandths, moved_bytes, records = map(round, numbers)
        return Rate(thousandths, moved_bytes, self.processes, records)


def read(path: Path, problems: Problems, prefix: str = "") -> Operations:
    """Reads an operation for each test.

    Args:
        prefix: of the names, for a script that starts iozone several times.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file has no test in throughput mode.
    """
    return operations(path.read_text(encoding="utf-8", errors="backslashreplace"), str(path), problems, prefix)


def operations(text: str, name: str, problems: Problems, prefix: str = "") -> Operations:
    """Reads operations from a file's text, as :func:`read` does."""
    tests = list(_tests(text, name, problems))
    if not tests and not problems.count:
        raise CollectorError(f"{name}:{_length(text)}: there is no throughput of iozone: run it with -t")
    for test in tests:
        if not test.whole:
            problems.add(f"{name}:{test.line}: the results of {test.processes} {test.label} are cut off")
    if _COMPLETE not in text:
        problems.add(f"{name}:{_length(text)}: iozone did not complete: {_COMPLETE!r} must be its last line")
    several = len({test.processes for test in tests}) > 1
    whole: Operations = {}
    for test in tests:
        if test.whole:
            label = f"{test.processes} {test.label}" if several else test.label
            try:
                add_bounded(whole, {a_name(f"{prefix} {label}".strip()): Operation(rate=test.rate())})
            except (ValueError, ArithmeticError) as error:
                problems.add(f"{name}:{test.line}: the results of {test.processes} {test.label} are damaged: {error}")
    return whole


def _length(text: str) -> int:
    return max(len(text.splitlines()), 1)


def _tests(text: str, name: str, problems: Problems) -> Iterator[_Test]:
    test: _Test | None = None
    record = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if match := _RECORD.search(line):
            record = int(match[1]) if len(match[1]) <= _MOST_DIGITS else 0
        elif line.startswith(_BEGIN):
            match = _TEST.match(line)
            if test is not None:
                yield test
                test = None
            if match is None or match[4] not in _UNITS or "nan" in match[3] or len(match[1]) > _MOST_DIGITS:
                problems.add(f"{name}:{number}: not a throughput: {line[:80]!r}")
            else:
                test = _Test(number, int(match[1]), match[2], float(match[3]), match[4], record)
        elif test is not None:
            if _LAST.match(line):
                test.ended = True
            elif child := _CHILD.match(line):
                test.moved += float(child[1])
                test.children += 1
    if test is not None:
        yield test
