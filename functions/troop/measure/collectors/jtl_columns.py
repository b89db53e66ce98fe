"""Reads JMeter's log by columns: thousands of rows at a time, with loops that run in C.

This only counts rows that need no closer look. At the first other row, its block of the log and all that follows are
left to the reader by rows. Nothing of that block has been counted then.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, repeat
from operator import add, floordiv, itemgetter, not_, sub
from typing import Callable, NamedTuple, TextIO

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
from troop.measure.operations import Operation
from troop.measure.windows import index_of

BLOCK = 1 << 16
"""Characters that are read at a time: few enough for a processor's cache."""
MOST_LABELS = 10_000
"""The most labels that are remembered."""
MOST_COUNTS = 100_000
"""The most counts to hold before they are added to their operations."""
MOST_THREADS = 2 * MOST_REMEMBERED
"""The most threads to hold before some are forgotten."""
LATEST_SECOND = 1 << 33
"""Seconds since 1970: before it, a float in seconds keeps whole milliseconds apart."""

MOST_QUOTES = 6
"""For each line: with more, the CSV reader is faster."""

_MARK = "\x01"
"""Begins what replaces a quoted field."""
_BITS = 32
"""Of a time in milliseconds, or of a bucket, in a number that also holds the number of an operation."""
_TIME = (1 << _BITS) - 1
_NUMBERS_AT_END = re.compile(r"(?:-[0-9]+)+\Z")


class Layout(NamedTuple):
    """The numbers of columns; None for an optional column that the log does not have."""

    width: int
    delimiter: str
    stamp: int
    elapsed: int
    label: int
    success: int
    code: int | None
    moved: int | None
    idle: int | None
    message: int | None
    thread: int | None


class _OddError(ValueError):
    """A row needs a closer look."""


class _Numbers(dict[str, int]):
    """Whole numbers by their text, from 0 to a limit. Most logs repeat few numbers."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __missing__(self, text: str) -> int:
        number = int(text or 0)
        if not 0 <= number <= self._most:
            raise _OddError
        if len(self) < MOST_COUNTS:
            self[text] = number
        return number


class _Coarse(dict[int, int]):
    """Buckets of times over time by milliseconds."""

    def __missing__(self, took: int) -> int:
        bucket = index_of(1000 * took)
        if len(self) < MOST_COUNTS:
            self[took] = bucket
        return bucket


class _Operations(dict[str, int]):
    """Numbers of operations by label, shifted by :data:`_BITS`.

    Attributes:
        all: the operations by number.
    """

    def __init__(self, counted: Counted) -> None:
        self._counted = counted
        self.all: list[Operation] = []

    def __missing__(self, label: str) -> int:
        operation = self._counted.operation(label)
        number = next((number for number, one in enumerate(self.all) if one is operation), len(self.all))
        if number == len(self.all):
            self.all.append(operation)
        shifted = self[label] = number << _BITS
        return shifted


class _Block(NamedTuple):
    """The columns of a block, one item for each row. Times are in milliseconds, ends in milliseconds since 1970.

    Attributes:
        codes, moved: None if the log does not have them.
        messages: None if the log does not have them, or no sample failed.
    """

    labels: Sequence[str]
    took: list[int]
    ended: list[int]
    good: list[bool]
    codes: Sequence[str] | None
    messages: Sequence[str] | None
    moved: list[int] | None


class Columns:
    """A reader of all rows that need no closer look.

    Args:
        counted: what to add to.
        remember: takes the last sample of each thread, in the order in which the log has them.
        stamped_at_end: JMeter saved the end of each sample as its timestamp.

    Attributes:
        lines: the number of lines that were counted.
    """

    def __init__(
        self,
        layout: Layout,
        window: Window,
        counted: Counted,
        remember: Callable[[str, Sample], None],
        *,
        stamped_at_end: bool,
    ) -> None:
        self.lines = 0
        self._layout, self._window, self._counted, self._remember = layout, window, counted, remember
        self._stamped_at_end = stamped_at_end
        self._finds_parts = layout.thread is not None and layout.message is not None
        self._begin, self._start, self._end = map(_first_millisecond, (window.begin, window.start, window.end))
        self._elapsed, self._idle, self._bytes = _Numbers(LONGEST), _Numbers(LATEST), _Numbers(HIGHEST)
        self._coarse = _Coarse()
        self._labels: set[str] = set()
        self._without_numbers: set[str] = set()
        self._operations = _Operations(counted)
        self._times: Counter[int] = Counter()
        self._over_time: Counter[tuple[int, int]] = Counter()
        self._rows = count()
        self._last: dict[str, tuple[int, str, int, int, int]] = {}

    def take_from(self, log: TextIO) -> Iterator[str]:
        """Counts the rows up to the first that needs a closer look; returns the lines that it read beyond them."""
        rest = ""
        if self._window.begin >= 0 and self._window.end < LATEST_SECOND:
            while not rest and (text := _block(log)):
                try:
                    block = self._read(text)
                except (ValueError, csv.Error):
                    rest = text
                else:
                    self._count(block)
                    self.lines += text.count("\n")
        self._settle_times()
        self._settle_over_time()
        self._forget_threads()
        for thread, (_, label, began, ended, took) in self._last.items():
            self._remember(thread, Sample(label, began, ended, took, None, 0))
        return iter(io.StringIO(rest, newline=""))

    def _read(self, text: str) -> _Block:
        """Reads a block.

        Raises:
            ValueError, csv.Error: a row needs a closer look.
        """
        layout = self._layout
        column = _columns(text, layout)
        labels, success, elapsed = column(layout.label), column(layout.success), column(layout.elapsed)
        if success.count("true") + success.count("false") != len(success) or "" in elapsed:
            raise _OddError
        self._learn(set(labels) - self._labels)
        took = list(map(self._elapsed.__getitem__, elapsed))
        stamps, lasted = list(map(int, column(layout.stamp))), took
        if layout.idle is not None and not {"0", ""}.issuperset(pauses := column(layout.idle)):
            lasted = list(map(add, took, map(self._idle.__getitem__, pauses)))
        began = list(map(sub, stamps, lasted)) if self._stamped_at_end else stamps
        ended = stamps if self._stamped_at_end else list(map(add, stamps, lasted))
        if min(began) <= -LATEST or max(began) >= LATEST or max(lasted) >= LATEST:
            raise _OddError
        moved = None if layout.moved is None else list(map(self._bytes.__getitem__, column(layout.moved)))
        if layout.thread is not None and self._finds_parts:
            if TRANSACTION in text:
                raise _OddError
            self._last.update(zip(column(layout.thread), zip(self._rows, labels, began, ended, took)))
        good = list(map("true".__eq__, success))
        codes = None if layout.code is None else column(layout.code)
        messages = None if layout.message is None or False not in good else column(layout.message)
        return _Block(labels, took, ended, good, codes, messages, moved)

    def _learn(self, labels: Iterable[str]) -> None:
        """Remembers new labels. Refuses too many, and two of which one could be a request of the other: they are equal
        but for numbers at the end.
        """
        for label in labels:
            bases: set[str] = set()
            if self._finds_parts and (numbers := _NUMBERS_AT_END.search(label)):
                bases = {label[: dash.start()] for dash in re.finditer("-", label) if dash.start() >= numbers.start()}
            if label in self._without_numbers or not bases.isdisjoint(self._labels):
                raise _OddError
            if len(self._labels) + len(self._without_numbers) >= MOST_LABELS:
                raise _OddError
            self._labels.add(label)
            self._without_numbers |= bases

    def _count(self, block: _Block) -> None:
        counted, begin, start, end = self._counted, self._begin, self._start, self._end
        labels, took, ended, good, codes, messages, moved = block
        if min(ended) < begin or max(ended) >= end:
            inside = [begin <= one < end for one in ended]
            counted.outside += inside.count(False)
            labels, good = list(compress(labels, inside)), list(compress(good, inside))
            took, ended = list(compress(took, inside)), list(compress(ended, inside))
            codes = codes and list(compress(codes, inside))
            messages = messages and list(compress(messages, inside))
            moved = moved and list(compress(moved, inside))
        if not labels:
            return
        bases = list(map(self._operations.__getitem__, labels))  # in the order of the log, which decides about names
        if False in good:
            self._count_errors(labels, ended, list(map(not_, good)), codes, messages)
            bases, took, ended = (list(compress(column, good)) for column in (bases, took, ended))
            moved = moved and list(compress(moved, good))
        self._over_time.update(zip(_seconds(ended), map(add, bases, map(self._coarse.__getitem__, took))))
        if bases and min(ended) < start:
            measured = [one >= start for one in ended]
            counted.outside += measured.count(False)
            bases, took = list(compress(bases, measured)), list(compress(took, measured))
            moved = moved and list(compress(moved, measured))
        self._times.update(map(add, bases, took))
        if moved:
            sizes = dict.fromkeys(bases, 0)
            for base, size in zip(bases, moved):
                sizes[base] += size
            for base, size in sizes.items():
                self._operations.all[base >> _BITS].bytes += size
        if len(self._times) > MOST_COUNTS:
            self._settle_times()
        if len(self._over_time) > MOST_COUNTS:
            self._settle_over_time()
        if len(self._last) > MOST_THREADS:
            self._forget_threads()

    def _count_errors(
        self,
        labels: Sequence[str],
        ended: list[int],
        bad: list[bool],
        codes: Sequence[str] | None,
        messages: Sequence[str] | None,
    ) -> None:
        begin, start = self._window.begin, self._window.start
        texts = repeat("") if messages is None else compress(messages, bad)
        kinds = repeat("failed") if codes is None else map(error_kind, compress(codes, bad), texts)
        # In the order of the log, which decides about names of kinds.
        rows = Counter(
            zip(
                compress(labels, bad),
                _seconds(compress(ended, bad)),
                (one >= self._start for one in compress(ended, bad)),
                kinds,
            )
        )
        for (label, second, is_measured, kind), number in rows.items():
            self._counted.error(label, max(second, start if is_measured else begin), kind, number)

    def _settle_times(self) -> None:
        for key, number in self._times.items():
            self._operations.all[key >> _BITS].times.record(1000 * (key & _TIME), number)
        self._times.clear()

    def _settle_over_time(self) -> None:
        places: dict[tuple[int, int], dict[int, int]] = {}
        for (second, key), number in self._over_time.items():
            place = second, key >> _BITS
            buckets = places.get(place)
            if buckets is None:
                buckets = places[place] = {}
            buckets[key & _TIME] = number
        self._over_time.clear()
        for (second, operation_number), buckets in places.items():
            operation = self._operations.all[operation_number]
            operation.per_second.count[second - self._window.first] += sum(buckets.values())
            if operation.over_time is not None:
                operation.over_time.add_buckets(second, buckets)

    def _forget_threads(self) -> None:
        """Forgets the threads that have been silent for longest; sorts the others by their last samples."""
        self._last = dict(sorted(self._last.items(), key=itemgetter(1))[-MOST_REMEMBERED:])


def _block(log: TextIO) -> str:
    """Reads whole lines, of which all quotes are closed, if they are closed at all."""
    parts = [log.read(BLOCK), log.readline()]
    quotes = sum(part.count('"') for part in parts)
    while quotes % 2 and parts[-1] and sum(map(len, parts)) <= LONGEST_FIELD:
        parts.append(log.readline())
        quotes += parts[-1].count('"')
    return "".join(parts)


def _seconds(ends: Iterable[int]) -> Iterator[int]:
    return map(floordiv, ends, repeat(1000))


def _columns(text: str, layout: Layout) -> Callable[[int], Sequence[str]]:
    """Splits a block into columns, each a list of one text for each row.

    Raises:
        ValueError, csv.Error: a row needs a closer look.
    """
    if not text.endswith("\n") or "\0" in text or len(text) > LONGEST_FIELD:
        raise _OddError
    if "\r" in text.replace("\r\n", "\n"):
        raise _OddError
    width, delimiter = layout.width, layout.delimiter
    texts: dict[str, str] = {}
    if '"' in text:
        if (short := _abbreviated(text, delimiter)) is None:
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter))
            if set(map(len, rows)) != {width}:
                raise _OddError
            return list(zip(*rows)).__getitem__
        text, texts = short
    flat = text.replace("\r\n", "\n").replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)
    flat.pop()
    step = width + 1
    if len(flat) % step or flat[width::step].count("\n") * step != len(flat):
        raise _OddError

    def column(number: int) -> list[str]:
        fields = flat[number::step]
        is_text = texts and number in (layout.label, layout.code, layout.message, layout.thread)
        return list(map(texts.get, fields, fields)) if is_text else fields  # a number is not quoted, or is odd

    return column


def _abbreviated(text: str, delimiter: str) -> tuple[str, dict[str, str]] | None:
    """Replaces quoted fields by short ones without delimiters, which can be split faster than the CSV reader reads.

    Returns:
        The text, and the content of each short field; None if the CSV reader must read the text, or does so faster.
    """
    quotes = text.count('"')
    if quotes % 2 or quotes > MOST_QUOTES * text.count("\n") or _MARK in text:
        return None
    parts = text.replace('""', "\0").split('"')
    outside = parts[::2]
    begins, ends = {part[:1] for part in outside[1:]}, {part[-1:] for part in outside[:-1] if part}
    if not begins <= {delimiter, "\n", "\r"} or not ends <= {delimiter, "\n"} or any("\0" in part for part in outside):
        return None  # such as a quote in a field that does not begin with one
    marks = {content: f"{_MARK}{number}" for number, content in enumerate(dict.fromkeys(parts[1::2]))}
    parts[1::2] = map(marks.__getitem__, parts[1::2])
    return "".join(parts), {mark: content.replace("\0", '"') for content, mark in marks.items()}


def _first_millisecond(second: float) -> int:
    """Returns the first whole millisecond that, as a float in seconds, is not before ``second``."""
    millisecond = math.floor(1000 * second) - 2
    while millisecond / 1000 < second:
        millisecond += 1
    return millisecond
