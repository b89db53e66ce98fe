"""HdrHistogram interval logs, as many load generators write them, and what they become here.

    python3 -m troop.measure.hdr_log latte.hlog --tag requests --operation write

A line of such a log is one interval: a tag, when it began, how long it took, and a histogram in HdrHistogram's second
encoding (V2), deflated and in base64. A log holds the same operations under several tags, so whoever reads one chooses.
Values are taken for nanoseconds, which is what those generators record, and become the microseconds of
:class:`~troop.measure.histogram.Histogram`: the middle of a value's bucket, rounded. With the three digits of a log
every value is thereby within a thousandth of the one that was recorded, or a microsecond.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import math
import os
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from troop.measure import phase_environment
from troop.measure.histogram import HIGHEST, Histogram
from troop.measure.operations import LONGEST_SECONDS, NAME, Operation, PerSecond
from troop.measure.recorder import FORMAT
from troop.measure.whole_file import write_whole
from troop.measure.windows import Windows, step_for

NANOSECONDS = 1000
"""Of a log's values in a microsecond."""

_COMPRESSED, _PLAIN = 0x1C849304, 0x1C849303
_VERSION = 0x10
"""The width of words that a cookie tells besides; in V2 it means nothing."""
_HEADER = struct.Struct(">iiiiqqd")
"""Cookie, bytes of counts, index offset, digits, lowest and highest value, ratio to real numbers."""
_MOST_BYTES = 64 << 20
"""Of one histogram's counts; the finest that there is, of five digits, has less."""
_LONG_AGO = 366 * 24 * 3600
"""Seconds: a start that is earlier than this counts from the log's own."""
_MOMENT = re.compile(r"#\s*\[(StartTime|BaseTime):\s*([0-9]+(?:\.[0-9]+)?)")

Bucket = tuple[int, int, int]


class HdrLogError(ValueError):
    """A line that is none of an interval log; the message says why."""


@dataclass(frozen=True)
class Interval:
    """One line.

    Attributes:
        tag: None where it has none.
        start: seconds since 1970.
        seconds: how long it took.
        counts: by buckets, ascending: their smallest value, their largest, and how many values were in it, from 1 on.
    """

    tag: str | None
    start: float
    seconds: float
    counts: tuple[Bucket, ...]

    @property
    def middle(self) -> float:
        return self.start + self.seconds / 2

    @property
    def count(self) -> int:
        """Of values."""
        return sum(count for _, _, count in self.counts)


def read(path: str | os.PathLike[str], problems: list[str]) -> Iterator[Interval]:
    """A log's intervals from a file, one at a time; as :func:`intervals`.

    Raises:
        OSError: it cannot be read at all.
    """
    with Path(path).open(encoding="utf-8", errors="replace") as lines:
        yield from intervals(lines, str(path), problems)


def intervals(lines: Iterable[str], name: str, problems: list[str]) -> Iterator[Interval]:
    """A log's intervals, in its order. A damaged line takes no other with it.

    Args:
        lines: with their ends.
        name: what problems call the log.
        problems: gets a sentence, with the file and the line, for each line that cannot be read.
    """
    moments = dict.fromkeys(("StartTime", "BaseTime"), 0.0)
    for number, line in enumerate(lines, 1):
        if match := _MOMENT.match(line):
            moments[match[1]] = float(match[2])
        if not line.strip() or line.startswith(("#", '"')):  # comments, and the names of the columns
            continue
        try:
            yield _interval(line.strip(), moments["StartTime"], moments["BaseTime"])
        except HdrLogError as error:
            cut = "" if line.endswith("\n") else "; the log ends in the midst of a line"
            problems.append(f"{name}:{number}: {error}{cut}")


def _interval(line: str, start_time: float, base_time: float) -> Interval:
    tag = None
    if line.startswith("Tag="):
        tag, _, line = line[len("Tag=") :].partition(",")
    columns = line.split(",")
    if len(columns) != 4:
        raise HdrLogError(f"it has {len(columns)} columns: must be start, length, maximum and histogram")
    try:
        start, seconds, _ = map(float, columns[:3])
    except ValueError as error:
        raise HdrLogError(f"start, length and maximum must be numbers: {error}") from None
    if not math.isfinite(start) or not math.isfinite(seconds) or seconds < 0:
        raise HdrLogError(f"start and length are {columns[0]} and {columns[1]}: must be numbers, the length from 0")
    if base_time:
        start += base_time
    elif start < start_time - _LONG_AGO:
        start += start_time
    if not math.isfinite(start):
        raise HdrLogError("its start, counted from the log's own, is no number")
    interval = Interval(tag or None, start, seconds, tuple(decode(columns[3])))
    if interval.count > HIGHEST:
        raise HdrLogError("its histogram has more than 2^53 values")
    return interval


def decode(text: str) -> Iterator[Bucket]:
    """A histogram as logs have it: smallest and largest value, and count, of each bucket that has one, ascending.

    Raises:
        HdrLogError: it is damaged, or of another kind.
    """
    try:
        packed = base64.b64decode(text, validate=True)
    except ValueError as error:  # binascii.Error is one; text that is not ASCII raises a plain ValueError
        raise HdrLogError(f"its histogram is damaged: {error}") from None
    try:
        cookie, length = struct.unpack_from(">ii", packed)
        if cookie & ~0xF0 != _COMPRESSED & ~0xF0 or length != len(packed) - 8:
            raise HdrLogError("its histogram is none that is deflated in HdrHistogram's encoding V2, or not whole")
        inflater = zlib.decompressobj()
        body = inflater.decompress(packed[8:], _MOST_BYTES)
        if not inflater.eof:
            raise HdrLogError("its histogram is not whole, or too large")
        cookie, length, offset, digits, lowest, highest, ratio = _HEADER.unpack_from(body)
    except (zlib.error, struct.error) as error:
        raise HdrLogError(f"its histogram is damaged: {error}") from None
    if cookie & ~0xF0 != _PLAIN & ~0xF0 or length != len(body) - _HEADER.size:
        raise HdrLogError("its histogram is none in HdrHistogram's encoding V2, or not whole")
    if offset or ratio != 1.0 or not 0 <= digits <= 5 or not 1 <= lowest <= highest:
        raise HdrLogError("its histogram is shifted, of real numbers, or of another layout than those of whole numbers")
    return _buckets(body[_HEADER.size :], lowest, digits)


def _buckets(encoded: bytes, lowest: int, digits: int) -> Iterator[Bucket]:
    unit = lowest.bit_length() - 1
    half_bits = max((2 * 10**digits - 1).bit_length(), 1) - 1
    index = 0
    for value in _numbers(encoded):
        if value < 0:  # so many empty buckets
            index -= value
        else:
            if value:
                shift = max((index >> half_bits) - 1, 0)
                smallest = (index - (shift << half_bits)) << (shift + unit)
                largest = smallest + (1 << (shift + unit)) - 1
                if _rounded((smallest + largest) // 2, NANOSECONDS) > HIGHEST:
                    raise HdrLogError("values of its histogram are too large: from 2^53 microseconds on")
                yield smallest, largest, value
            index += 1
        if index >> half_bits > 64:
            raise HdrLogError("its histogram is damaged: it has values that are too large")


_LAST = 8
"""The ninth byte of a number is the last, and all of its bits count."""


def _numbers(encoded: bytes) -> Iterator[int]:
    """Signed numbers: the nearer to 0, the shorter (ZigZag, then seven bits a byte)."""
    value = position = 0
    for byte in encoded:
        if position == _LAST:
            value |= byte << (7 * position)
        else:
            value |= (byte & 0x7F) << (7 * position)
            if byte & 0x80:
                position += 1
                continue
        yield (value >> 1) ^ -(value & 1)
        value = position = 0
    if position:
        raise HdrLogError("its histogram is damaged: it ends in the midst of a number")


def operation(
    intervals: Iterable[Interval],
    measured_from: float,
    measured_seconds: float,
    unit: int = NANOSECONDS,
    warm_up_seconds: float = 0.0,
) -> Operation:
    """What the intervals of the measured time come to, as an operation without errors, for a log has none.

    An interval counts, as a whole, when its middle is in the measured time: so there are as many of them as fit, and
    none is parted. It counts for the step over time that its middle is in, and as much for each of its seconds. One
    whose middle is in the warm-up counts only in these.

    Args:
        intervals: of one tag.
        measured_from: seconds since 1970.
        unit: how many of the log's values are a microsecond.
        warm_up_seconds: how long the warm-up before the measured time is.
    """
    counting = Counting(measured_from, measured_seconds, unit, warm_up_seconds)
    for interval in intervals:
        counting.take(interval)
    return counting.operation


class Counting:
    """Puts intervals together, one at a time, and keeps none of them; as :func:`operation`, which tells the arguments.

    Attributes:
        operation: what they come to so far.
    """

    def __init__(
        self, measured_from: float, measured_seconds: float, unit: int = NANOSECONDS, warm_up_seconds: float = 0.0
    ) -> None:
        self._from, self._until = measured_from, measured_from + measured_seconds
        self._began, self._unit = measured_from - warm_up_seconds, unit
        self._first = math.floor(self._began)
        seconds = min(math.ceil(self._until) - self._first, LONGEST_SECONDS)
        self._over_time = Windows(self._first, step_for(warm_up_seconds + measured_seconds))
        counts = PerSecond(self._first, [0] * seconds, [0] * seconds)
        self.operation = Operation(per_second=counts, over_time=self._over_time)

    def take(self, interval: Interval) -> None:
        """Counts it, if it is of this time."""
        middle = interval.middle
        if not self._began <= middle < self._until:
            return
        times = Histogram()
        for smallest, largest, count in interval.counts:
            times.record(_rounded((smallest + largest) // 2, self._unit), count)
        self._over_time.take(middle, times)
        self.spread(self.operation.per_second.count, times.count, middle, interval.seconds)
        if middle >= self._from:
            self.operation.times.add(times)

    def spread(self, counts: list[int], count: int, middle: float, seconds: float) -> None:
        """Adds to a list by second what happened around a moment of this time: as evenly as whole numbers allow, and so
        that the sum stays. What is of the measured time stays in it, and what is of the warm-up in that.
        """
        length, measured = max(1, round(seconds)), math.floor(self._from) - self._first
        low = int(middle - (length - 1) / 2) - self._first
        if middle >= self._from:
            begin, end = max(low, measured), min(low + length, len(counts))
        else:
            begin, end = max(low, 0), min(low + length, math.ceil(self._from) - self._first)
        for n in range(end - begin):
            counts[begin + n] += count * (n + 1) // (end - begin) - count * n // (end - begin)


def _rounded(value: int, unit: int) -> int:
    return (value + unit // 2) // unit


_files = itertools.count()


def write(operations: Mapping[str, Operation], results: str | os.PathLike[str]) -> Path:
    """Writes a document for the agent, as :class:`~troop.measure.recorder.Recorder` does, whole or not at all."""
    target = Path(results) / f"operations-hdr-{os.getpid()}-{next(_files)}.json"
    document = {"format": FORMAT, "operations": {name: one.document() for name, one in operations.items()}}
    return write_whole(target, document)


def main(arguments: Sequence[str] | None = None) -> int:
    """Adds up the logs of this phase. What is damaged is told, and left out; then it ends with 1, all else written."""
    parser = argparse.ArgumentParser(prog="python3 -m troop.measure.hdr_log", description="Logs, for the agent.")
    parser.add_argument("logs", nargs="+", help="HdrHistogram interval logs of this node")
    parser.add_argument("--operation", required=True, help="what to call it")
    parser.add_argument(
        "--tag", help="of which intervals; required where a log has several; '' for those without a tag"
    )
    options = parser.parse_args(arguments)
    if not NAME.fullmatch(options.operation):
        parser.error(f"--operation is {options.operation!r}: must match {NAME.pattern}")
    problems: list[str] = []
    begin, length, warm_up = phase_environment.measured()
    try:
        recorded = operation(chosen(options.logs, options.tag, problems), begin, length, warm_up_seconds=warm_up)
    except (OSError, HdrLogError) as error:
        return _refused([str(error)])
    write({options.operation: recorded}, phase_environment.results())
    sys.stdout.write(f"{options.operation}: {recorded.times.count} in the measured time\n")
    return _refused(problems) if problems else 0


def chosen(logs: Iterable[str | os.PathLike[str]], tag: str | None, problems: list[str]) -> Iterator[Interval]:
    """The intervals of a tag in some logs; without one all, where a log has no more than one.

    Args:
        tag: "" stands for the intervals without a tag.
        problems: as for :func:`intervals`; a log without any interval of the tag is one, too.

    Raises:
        OSError: a log cannot be read.
        HdrLogError: a tag must be chosen.
    """
    for log in logs:
        tags: set[str] = set()
        for one in read(log, problems):
            tags.add(one.tag or "")
            if tag is None and len(tags) > 1:
                raise HdrLogError(
                    f"{log}: it has intervals of several tags ({_names(tags)}): choose one, or they count twice"
                )
            if tag in (None, one.tag or ""):
                yield one
        if tag not in tags and (tag is not None or not tags):
            lacks = "can be read" if tag is None else f"has the tag {tag}" if tag else "is without a tag"
            problems.append(f"{log}: no interval of it {lacks}" + (f", but of {_names(tags)}" if tags else ""))


def _names(tags: Iterable[str]) -> str:
    return ", ".join(sorted(tag or "'' for none" for tag in tags))


def _refused(problems: Iterable[str]) -> int:
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1


if __name__ == "__main__":
    sys.exit(main())
