"""Reads HdrHistogram interval logs of load generators, and converts them to operations.

    python3 -m troop.measure.hdr_log latte.hlog --tag requests --operation write

If the generator knows when an operation was due, its log can have response times under one tag and service times under
another, as cassandra-stress has with WRITE-rt and WRITE-st: ``--tag WRITE-rt`` then takes both.

A line of a log is one interval: a tag, start, length or end, and a histogram in HdrHistogram's encoding V2 or V1,
deflated and in base64. A log can contain the same operations under several tags, so the caller chooses one.

A log does not state the unit of its values. latte, cassandra-stress and nosqlbench record nanoseconds, YCSB and memtier
microseconds: ``--unit us``. Values become the microseconds of :class:`~troop.measure.histogram.Histogram`: the middle
of the value's bucket, rounded. With three digits, every value is within a thousandth or a microsecond of the recorded
one. Of a log with fewer digits, the command says how exact it is.
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
from troop.measure.empty import empty_operation
from troop.measure.histogram import HIGHEST, Histogram
from troop.measure.operations import LONGEST_SECONDS, NAME, RESPONSE, SERVICE, Operation
from troop.measure.recorder import FORMAT
from troop.measure.whole_file import write_whole

UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}
"""Nanoseconds per unit of a time."""
FAST = 20
"""Microseconds below which a median needs a stated unit, because hardly any network is as fast."""
DIGITS = 3
"""The significant digits of Troop's own histograms."""

_COMPRESSED, _PLAIN = {1: 0x1C849302, 2: 0x1C849304}, {1: 0x1C849301, 2: 0x1C849303}
"""Cookies by the version of the encoding, without the size of a count in bytes (bits 4 to 7)."""
_WORDS = {2: ">h", 4: ">i", 8: ">q"}
"""Formats of counts of encoding V1 by their size in bytes."""
_HEADER = struct.Struct(">iiiiqqd")
"""Cookie, bytes of counts, index offset, digits, lowest and highest value, ratio to real numbers."""
_PLAIN_VALUES = ((0, 1.0), (1, struct.unpack(">d", struct.pack(">q", 1))[0]))
"""Index offset and ratio of a histogram of whole numbers that is not shifted. HdrHistogramJS writes a 1 for both, the
second as a whole number, and ignores them.
"""
_MOST_BYTES = 64 << 20
"""The limit of one histogram's counts; the finest histogram, with five digits, has less."""
_LONG_AGO = 366 * 24 * 3600
"""Seconds by which a start must be earlier than the log's to be relative to it."""
_MOMENT = re.compile(r"#\s*\[(StartTime|BaseTime):\s*([0-9]+(?:\.[0-9]+)?)")

_ENDINGS = {RESPONSE: "-rt", SERVICE: "-st"}
"""Endings of tags by the meaning of their times, as in logs of cassandra-stress."""

Bucket = tuple[int, int, int]


class HdrLogError(ValueError):
    """A line is not part of an interval log; the message says why."""


@dataclass(frozen=True)
class Interval:
    """One line of a log.

    Attributes:
        tag: None if the line has none.
        start: seconds since 1970.
        seconds: length.
        counts: by bucket, ascending: smallest value, largest value, and the number of values, from 1.
        digits: that the histogram keeps of each value.
        narrowest: the width of its smallest buckets.
    """

    tag: str | None
    start: float
    seconds: float
    counts: tuple[Bucket, ...]
    digits: int = DIGITS
    narrowest: int = 1

    @property
    def middle(self) -> float:
        return self.start + self.seconds / 2

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(count for _, _, count in self.counts)


def read(path: str | os.PathLike[str], problems: list[str]) -> Iterator[Interval]:
    """Reads a log's intervals from a file, one at a time, as :func:`intervals` does.

    Raises:
        OSError: the file cannot be read.
    """
    with Path(path).open(encoding="utf-8", errors="surrogateescape") as lines:
        yield from intervals(lines, str(path), problems)


def intervals(lines: Iterable[str], name: str, problems: list[str]) -> Iterator[Interval]:
    """Yields a log's intervals in order. Skips damaged lines.

    Args:
        lines: with line endings.
        name: the log's name in problems.
        problems: receives a sentence with file and line number for each unreadable line.
    """
    moments = dict.fromkeys(("StartTime", "BaseTime"), 0.0)
    has_ends = False
    for number, line in enumerate(lines, 1):
        if match := _MOMENT.match(line):
            moments[match[1]] = float(match[2])
        if line.startswith('"'):
            has_ends = '"EndTimestamp"' in line  # of HdrHistogram's C library, in the place of the length
        if not line.strip() or line.startswith(("#", '"')):  # comments and column names
            continue
        try:
            yield _interval(line.strip(), moments["StartTime"], moments["BaseTime"], has_ends)
        except HdrLogError as error:
            cut = "" if line.endswith("\n") else "; the last line of the log is incomplete"
            problems.append(f"{name}:{number}: {error}{cut}")


def _interval(line: str, start_time: float, base_time: float, has_end: bool) -> Interval:
    tag = None
    if line.startswith("Tag="):
        tag, _, line = line[len("Tag=") :].partition(",")
    columns = line.split(",")
    if len(columns) != 4:
        raise HdrLogError(f"must have the columns start, length, maximum and histogram, not {len(columns)} columns")
    try:
        start, seconds, _ = map(float, columns[:3])
        seconds -= start if has_end else 0
    except ValueError as error:
        raise HdrLogError(f"start, length and maximum must be numbers: {error}") from None
    if not math.isfinite(start) or not math.isfinite(seconds) or seconds < 0:
        raise HdrLogError(f"start {columns[0]} and length {columns[1]} must be finite numbers, the length from 0")
    if base_time:
        start += base_time
    elif start < start_time - _LONG_AGO:
        start += start_time
    if not math.isfinite(start):
        raise HdrLogError("the start, relative to the log's, is not finite")
    values, lowest, digits = _unpacked(columns[3])
    interval = Interval(
        tag or None, start, seconds, tuple(_buckets(values, lowest, digits)), digits, _narrowest(lowest)
    )
    if interval.count > HIGHEST:
        raise HdrLogError("the histogram has more than 2^53 values")
    return interval


def decode(text: str) -> Iterator[Bucket]:
    """Decodes a log's histogram: yields smallest value, largest value and count of each bucket in use, ascending.

    Raises:
        HdrLogError: the histogram is damaged or of another kind.
    """
    return _buckets(*_unpacked(text))


def _unpacked(text: str) -> tuple[Iterator[int], int, int]:
    """Returns the counts of a histogram, with negative numbers of empty buckets, its lowest value, and its digits."""
    try:
        packed = base64.b64decode(text, validate=True)
    except ValueError as error:  # binascii.Error is a ValueError; text that is not ASCII raises a plain one
        raise HdrLogError(f"the histogram is damaged: {error}") from None
    try:
        cookie, length = struct.unpack_from(">ii", packed)
        version = next((one for one, known in _COMPRESSED.items() if cookie & ~0xF0 == known), None)
        if version is None or length != len(packed) - 8:
            raise HdrLogError("the histogram is incomplete, or not in HdrHistogram's deflated encoding V2 or V1")
        inflater = zlib.decompressobj()
        body = inflater.decompress(packed[8:], _MOST_BYTES)
        if not inflater.eof:
            raise HdrLogError("the histogram is incomplete or too large")
        cookie, length, offset, digits, lowest, highest, ratio = _HEADER.unpack_from(body)
    except (zlib.error, struct.error) as error:
        raise HdrLogError(f"the histogram is damaged: {error}") from None
    if cookie & ~0xF0 != _PLAIN[version] or length != len(body) - _HEADER.size:
        raise HdrLogError("the histogram is incomplete, or not in HdrHistogram's encoding V2 or V1")
    if (offset, ratio) not in _PLAIN_VALUES or not 0 <= digits <= 5 or not 1 <= lowest <= highest:
        raise HdrLogError("the histogram is shifted, of real numbers, or of another layout")
    encoded = body[_HEADER.size :]
    return (_numbers(encoded) if version == 2 else _words(encoded, (cookie & 0xF0) >> 4)), lowest, digits


def _words(encoded: bytes, size: int) -> Iterator[int]:
    """Yields the counts of encoding V1, all of the same size in bytes."""
    if size not in _WORDS or len(encoded) % size:
        raise HdrLogError(f"the histogram is damaged: it has counts of {size} bytes")
    for (count,) in struct.iter_unpack(_WORDS[size], encoded):
        if count < 0:
            raise HdrLogError("the histogram is damaged: a count is negative")
        yield count


def _narrowest(lowest: int) -> int:
    """Returns the largest power of two that is not above the lowest value which a histogram tells from zero."""
    return 1 << (lowest.bit_length() - 1)


def _buckets(counts: Iterable[int], lowest: int, digits: int) -> Iterator[Bucket]:
    unit = lowest.bit_length() - 1
    half_bits = max((2 * 10**digits - 1).bit_length(), 1) - 1
    index = 0
    for value in counts:
        if value < 0:  # the number of empty buckets
            index -= value
        else:
            if value:
                shift = max((index >> half_bits) - 1, 0)
                smallest = (index - (shift << half_bits)) << (shift + unit)
                largest = smallest + (1 << (shift + unit)) - 1
                if _micros((smallest + largest) // 2, 1) > HIGHEST:
                    raise HdrLogError("the histogram has values from 2^53 microseconds, which is too large")
                yield smallest, largest, value
            index += 1
        if index >> half_bits > 64:
            raise HdrLogError("the histogram is damaged: its values are too large")


_LAST = 8
"""The ninth byte of a number is the last; all of its bits count."""


def _numbers(encoded: bytes) -> Iterator[int]:
    """Decodes signed numbers: ZigZag, then seven bits per byte."""
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
        raise HdrLogError("the histogram is damaged: its last number is incomplete")


def operation(
    intervals: Iterable[Interval],
    measured_from: float,
    measured_seconds: float,
    unit: int = 1,
    warm_up_seconds: float = 0.0,
) -> Operation:
    """Adds up the intervals of the measured time. The operation has no errors, because logs contain none.

    An interval counts as a whole if its middle is in the measured time. Over time, it counts in the step of its middle,
    and evenly in each of its seconds. An interval of the warm-up counts only over time.

    Args:
        intervals: of one tag.
        measured_from: seconds since 1970.
        unit: nanoseconds of a log's value, one of :data:`UNITS`.
        warm_up_seconds: length of the warm-up before the measured time.
    """
    counting = Counting(measured_from, measured_seconds, unit, warm_up_seconds)
    for interval in intervals:
        counting.take(interval)
    return counting.operation


class Counting:
    """Adds up intervals one at a time without storing them. Arguments as of :func:`operation`.

    Attributes:
        operation: the sum so far.
        digits: the fewest of its intervals.
        narrowest: the widest of its intervals' smallest buckets, in values of the log.
    """

    def __init__(
        self, measured_from: float, measured_seconds: float, unit: int = 1, warm_up_seconds: float = 0.0
    ) -> None:
        self._from, self._until = measured_from, measured_from + measured_seconds
        self._began, self._unit = measured_from - warm_up_seconds, unit
        self._first = math.floor(self._began)
        seconds = min(math.ceil(self._until) - self._first, LONGEST_SECONDS)
        self.operation = empty_operation(self._first, seconds, warm_up_seconds + measured_seconds)
        self.digits, self.narrowest = DIGITS, 1

    def take(self, interval: Interval) -> None:
        """Counts an interval of the warm-up or the measured time; ignores any other.

        Raises:
            HdrLogError: a value is too large in this unit.
        """
        middle = interval.middle
        if not self._began <= middle < self._until:
            return
        times = Histogram()
        self.digits = min(self.digits, interval.digits)
        self.narrowest = max(self.narrowest, interval.narrowest)
        for smallest, largest, count in interval.counts:
            micros = _micros((smallest + largest) // 2, self._unit)
            if micros > HIGHEST:
                raise HdrLogError(f"the value {largest} is more than 2^53 microseconds: check the unit")
            times.record(micros, count)
        if self.operation.over_time is not None:
            self.operation.over_time.take(middle, times)
        self.spread(self.operation.per_second.count, times.count, middle, interval.seconds)
        if middle >= self._from:
            self.operation.times.add(times)

    def spread(self, counts: list[int], count: int, middle: float, seconds: float) -> None:
        """Spreads ``count`` events around a moment over the seconds of a list, in whole numbers of equal sum.

        Events of the measured time stay in it, and events of the warm-up in the warm-up.
        """
        length, measured = max(1, round(seconds)), math.floor(self._from) - self._first
        low = int(middle - (length - 1) / 2) - self._first
        if middle >= self._from:
            begin, end = max(low, measured), min(low + length, len(counts))
        else:
            begin, end = max(low, 0), min(low + length, math.ceil(self._from) - self._first)
        for n in range(end - begin):
            counts[begin + n] += count * (n + 1) // (end - begin) - count * n // (end - begin)


def _micros(value: int, unit: int) -> int:
    return (value * unit + 500) // 1000


_files = itertools.count()


def write(operations: Mapping[str, Operation], results: str | os.PathLike[str]) -> Path:
    """Writes a document for the agent atomically, as :class:`~troop.measure.recorder.Recorder` does."""
    target = Path(results) / f"operations-hdr-{os.getpid()}-{next(_files)}.json"
    document = {"format": FORMAT, "operations": {name: one.document() for name, one in operations.items()}}
    return write_whole(target, document)


def main(arguments: Sequence[str] | None = None) -> int:
    """Adds up this phase's logs. Reports damaged lines, skips them, and then returns 1."""
    parser = argparse.ArgumentParser(
        prog="python3 -m troop.measure.hdr_log", description="Convert interval logs for the agent."
    )
    parser.add_argument("logs", nargs="+", help="HdrHistogram interval logs of this node")
    parser.add_argument("--operation", required=True, help="name of the operation")
    parser.add_argument(
        "--tag", help="tag of the intervals to count; required if a log has several; '' for intervals without a tag"
    )
    parser.add_argument(
        "--timing",
        choices=(RESPONSE, SERVICE),
        help="what the times mean: from the moment when an operation was due, or from when it was sent; by default as "
        f"the tag ends, on {_ENDINGS[RESPONSE]} or {_ENDINGS[SERVICE]}, otherwise unknown",
    )
    parser.add_argument("--service-tag", metavar="TAG", help="tag of the service times of the same operations")
    parser.add_argument(
        "--unit", choices=UNITS, help="of the log's values: ns by default; us for logs of YCSB and memtier"
    )
    parser.add_argument("--tool", help="name of the load generator, for the report")
    options = parser.parse_args(arguments)
    for option in ("operation", "tool"):
        if (name := getattr(options, option)) is not None and not NAME.fullmatch(name):
            parser.error(f"--{option} is {name!r}: must match {NAME.pattern}")
    timing = options.timing or _timing(options.tag)
    if options.service_tag is not None and timing != RESPONSE:
        parser.error(f"--service-tag needs response times: --timing {RESPONSE}")
    problems: list[str] = []
    begin, length, warm_up = phase_environment.measured()
    unit = UNITS[options.unit or "ns"]

    def counted(tag: str | None, problems: list[str]) -> Counting:
        counting = Counting(begin, length, unit, warm_up)
        for interval in chosen(options.logs, tag, problems):
            counting.take(interval)
        return counting

    try:
        counting = counted(options.tag, problems)
        recorded = counting.operation
        recorded.timing, recorded.tools = timing, frozenset({options.tool} if options.tool else ())
        recorded.counts_failures = False  # logs have successes only
        if timing == RESPONSE and options.service_tag is not None:
            recorded.service = counted(options.service_tag, problems).operation.times
        elif timing == RESPONSE and options.tag and options.tag.endswith(_ENDINGS[RESPONSE]):
            times = counted(options.tag[: -len(_ENDINGS[RESPONSE])] + _ENDINGS[SERVICE], []).operation.times
            recorded.service = times if times.count else None
    except (OSError, HdrLogError) as error:
        return _refused([str(error)])
    write({options.operation: recorded}, phase_environment.results())
    sys.stdout.write(f"{options.operation}: {recorded.times.count} operations in the measured time\n")
    doubts = _doubts(counting, unit, is_stated=options.unit is not None)
    sys.stderr.write("".join(f"{sentence}\n" for sentence in doubts))
    if not recorded.times.count and not problems:
        problems.append(f"{', '.join(options.logs)}: no interval is in the measured time: check the clock of the log")
    return _refused(problems) if problems else 0


def _doubts(counting: Counting, unit: int, *, is_stated: bool) -> Iterator[str]:
    """Yields what a reader of the figures must know.

    Args:
        unit: nanoseconds of a log's value.
        is_stated: whether the caller stated the unit.
    """
    median = counting.operation.times.percentile(50)
    if not is_stated and median is not None and median < FAST:
        yield f"half of the times are at most {median} us: if the values of the log are no nanoseconds, state --unit"
    if counting.digits < DIGITS:
        share = 100 / 10**counting.digits
        yield f"the log keeps {counting.digits} significant digits: its times are exact to {share:g} %"
    if counting.narrowest > 1 and (step := counting.narrowest * unit / 1000) > 1:
        yield f"the log keeps times in steps of {step:g} us"


def _timing(tag: str | None) -> str | None:
    return next((timing for timing, ending in _ENDINGS.items() if tag and tag.endswith(ending)), None)


def chosen(logs: Iterable[str | os.PathLike[str]], tag: str | None, problems: list[str]) -> Iterator[Interval]:
    """Yields the intervals of a tag in several logs. Without a tag, yields all if each log has only one.

    Args:
        tag: "" means intervals without a tag.
        problems: as for :func:`intervals`; also receives a sentence for each log without an interval of the tag.

    Raises:
        OSError: a log cannot be read.
        HdrLogError: a tag must be chosen.
    """
    for log in logs:
        tags: set[str] = set()
        for one in read(log, problems):
            tags.add(one.tag or "")
            if tag is None and len(tags) > 1:
                raise HdrLogError(f"{log}: several tags ({_names(tags)}) would count twice: choose one with --tag")
            if tag in (None, one.tag or ""):
                yield one
        if tag not in tags and (tag is not None or not tags):
            lacks = "can be read" if tag is None else f"has the tag {tag}" if tag else "has no tag"
            problems.append(f"{log}: no interval {lacks}" + (f"; tags in the log: {_names(tags)}" if tags else ""))


def _names(tags: Iterable[str]) -> str:
    return ", ".join(sorted(tag or "'' (no tag)" for tag in tags))


def _refused(problems: Iterable[str]) -> int:
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1


if __name__ == "__main__":
    sys.exit(main())
