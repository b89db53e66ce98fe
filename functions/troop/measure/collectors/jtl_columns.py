"""Reads JMeter's log by columns: thousands of rows at a time, with loops that run in C.

This only counts rows that need no closer look. At the first other row, its block of the log and all that follows are
left to the reader by rows. Nothing of that block has been counted then.

Several processes can count parts of a log. Each part has whole rows, and a process needs nothing else. The reader adds
the counts in the order of the log, which decides about names: the result is that of one process.
"""

from __future__ import annotations

import csv
import io
import math
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from itertools import compress, count, repeat
from operator import add, floordiv, itemgetter, not_, sub
from typing import Callable, NamedTuple, Protocol, TextIO

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
from troop.measure.windows import index_of

BLOCK = 1 << 16
"""Characters that are read at a time: few enough for a processor's cache."""
PART = 1 << 22
"""Characters that a process counts at a time."""
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

    @property
    def finds_parts(self) -> bool:
        """Whether the log shows which samples belong together."""
        return self.thread is not None and self.message is not None


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


class Counts(NamedTuple):
    """What some blocks contain, of the rows that end in the window. Keys of times have the number of a label, shifted
    by :data:`_BITS`.

    Attributes:
        lines: of the log.
        seen: all labels, in order.
        labels: of the rows in the window by their numbers, in the order of the log, which decides about names.
        times: by label and milliseconds, of the measured time.
        over_time: by second since 1970, label and bucket.
        errors: by label, second, whether it is in the measured time, and kind; in the order of the log.
        moved: bytes by the number of the label.
        outside: rows that did not end in the measured time.
        last: of each thread the label, begin, end and time of its last sample; the thread that was silent for longest
            comes first.
    """

    lines: int
    seen: list[str]
    labels: list[str]
    times: dict[int, int]
    over_time: dict[tuple[int, int], int]
    errors: dict[tuple[str, int, bool, str], int]
    moved: dict[int, int]
    outside: int
    last: list[tuple[str, str, int, int, int]]


class Labels:
    """Labels of which none could be a request of another: equal but for numbers at the end."""

    def __init__(self, *, finds_parts: bool) -> None:
        self._finds_parts = finds_parts
        self.known: dict[str, None] = {}
        self._without_numbers: set[str] = set()

    def learn(self, labels: Iterable[str]) -> None:
        """Remembers new labels.

        Raises:
            _OddError: they are too many, or one could be a request of another.
        """
        for label in labels:
            bases: set[str] = set()
            if self._finds_parts and (numbers := _NUMBERS_AT_END.search(label)):
                bases = {label[: dash.start()] for dash in re.finditer("-", label) if dash.start() >= numbers.start()}
            if label in self._without_numbers or not bases.isdisjoint(self.known):
                raise _OddError
            if len(self.known) + len(self._without_numbers) >= MOST_LABELS:
                raise _OddError
            self.known[label] = None
            self._without_numbers |= bases


class Tally:
    """Counts blocks, each completely or not at all.

    Args:
        labels: of the rows before.
        stamped_at_end: JMeter saved the end of each sample as its timestamp.
    """

    def __init__(self, layout: Layout, window: Window, labels: Labels, *, stamped_at_end: bool) -> None:
        self._layout, self._window, self._stamped_at_end = layout, window, stamped_at_end
        self._finds_parts = layout.finds_parts
        self._begin, self._start, self._end = map(_first_millisecond, (window.begin, window.start, window.end))
        self._elapsed, self._idle, self._bytes = _Numbers(LONGEST), _Numbers(LATEST), _Numbers(HIGHEST)
        self._coarse = _Coarse()
        self._labels = labels
        self._rows = count()
        self._clear()

    def _clear(self) -> None:
        self._lines, self._outside = 0, 0
        self._seen: dict[str, None] = {}
        self._bases: dict[str, int] = {}
        self._times: Counter[int] = Counter()
        self._over_time: Counter[tuple[int, int]] = Counter()
        self._errors: Counter[tuple[str, int, bool, str]] = Counter()
        self._moved: dict[int, int] = {}
        self._last: dict[str, tuple[int, str, int, int, int]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the counts take so much memory that they must be taken."""
        counts = max(len(self._times), len(self._over_time), len(self._errors))
        return counts > MOST_COUNTS or len(self._last) > MOST_THREADS

    def add(self, text: str) -> None:
        """Counts a block.

        Raises:
            ValueError, csv.Error: a row needs a closer look. Nothing of the block was counted.
        """
        self._count(self._read(text))
        self._lines += text.count("\n")

    def take(self) -> Counts:
        """Returns the counts since the last call."""
        last = [(thread, *sample[1:]) for thread, sample in sorted(self._last.items(), key=itemgetter(1))]
        counts = Counts(
            self._lines,
            list(self._seen),
            list(self._bases),
            dict(self._times),
            dict(self._over_time),
            dict(self._errors),
            self._moved,
            self._outside,
            last,
        )
        self._clear()
        return counts

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
        different = dict.fromkeys(labels)
        self._labels.learn(label for label in different if label not in self._labels.known)
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
        self._seen.update(different)
        return _Block(labels, took, ended, good, codes, messages, moved)

    def _count(self, block: _Block) -> None:
        begin, start, end = self._begin, self._start, self._end
        labels, took, ended, good, codes, messages, moved = block
        if min(ended) < begin or max(ended) >= end:
            inside = [begin <= one < end for one in ended]
            self._outside += inside.count(False)
            labels, good = list(compress(labels, inside)), list(compress(good, inside))
            took, ended = list(compress(took, inside)), list(compress(ended, inside))
            codes = codes and list(compress(codes, inside))
            messages = messages and list(compress(messages, inside))
            moved = moved and list(compress(moved, inside))
        if not labels:
            return
        numbers = self._bases
        for label in dict.fromkeys(labels):
            numbers.setdefault(label, len(numbers) << _BITS)
        bases = list(map(numbers.__getitem__, labels))
        if False in good:
            self._count_errors(labels, ended, list(map(not_, good)), codes, messages)
            bases, took, ended = (list(compress(column, good)) for column in (bases, took, ended))
            moved = moved and list(compress(moved, good))
        self._over_time.update(zip(_seconds(ended), map(add, bases, map(self._coarse.__getitem__, took))))
        if bases and min(ended) < start:
            measured = [one >= start for one in ended]
            self._outside += measured.count(False)
            bases, took = list(compress(bases, measured)), list(compress(took, measured))
            moved = moved and list(compress(moved, measured))
        self._times.update(map(add, bases, took))
        if moved:
            sizes = self._moved
            for base, size in zip(bases, moved):
                sizes[base] = sizes.get(base, 0) + size

    def _count_errors(
        self,
        labels: Sequence[str],
        ended: list[int],
        bad: list[bool],
        codes: Sequence[str] | None,
        messages: Sequence[str] | None,
    ) -> None:
        texts = repeat("") if messages is None else compress(messages, bad)
        kinds = repeat("failed") if codes is None else map(error_kind, compress(codes, bad), texts)
        # In the order of the log, which decides about names of kinds.
        self._errors.update(
            zip(
                compress(labels, bad),
                _seconds(compress(ended, bad)),
                (one >= self._start for one in compress(ended, bad)),
                kinds,
            )
        )


class Pool(Protocol):
    """Processes that count parts of a log.

    Attributes:
        most: the most parts to be counted at a time.
    """

    most: int

    def is_behind(self) -> bool:
        """Checks whether so much of the log is there that processes are worth their cost."""

    def count(self, text: str) -> Future[Counts | None]:
        """Counts whole rows: None if one of them needs a closer look."""


class Columns:
    """A reader of all rows that need no closer look.

    Args:
        counted: what to add to.
        remember: takes the last sample of each thread, in the order in which the log has them.
        stamped_at_end: JMeter saved the end of each sample as its timestamp.
        pool: None to count everything in this process.
        settles_every: seconds after which counts are added, for those who look at them meanwhile.

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
        pool: Pool | None = None,
        settles_every: float = math.inf,
    ) -> None:
        self.lines = 0
        self._settles_every, self._settled_at = settles_every, time.monotonic()
        self._window, self._counted, self._remember, self._pool = window, counted, remember, pool
        self._labels = Labels(finds_parts=layout.finds_parts)
        self._tally = Tally(layout, window, self._labels, stamped_at_end=stamped_at_end)
        self._parts: deque[tuple[str, Future[Counts | None]]] = deque()
        self._last: dict[str, tuple[str, int, int, int]] = {}

    def take_from(self, log: TextIO) -> Iterator[str]:
        """Counts the rows up to the first that needs a closer look; returns the lines that it read beyond them."""
        rest = ""
        if self._window.begin >= 0 and self._window.end < LATEST_SECOND:
            rest = self._take(log)
        for thread, (label, began, ended, took) in self._last.items():
            self._remember(thread, Sample(label, began, ended, took, None, 0))
        return iter(io.StringIO(rest, newline=""))

    def _take(self, log: TextIO) -> str:
        """Counts rows; returns what it read and did not count."""
        pool = self._pool
        while True:
            if pool is not None and pool.is_behind():
                self._add(self._tally.take())  # before what follows in the log
                text = _block(log, PART)
                if text:
                    self._parts.append((text, pool.count(text)))
                ready = len(self._parts) if not text else int(len(self._parts) >= pool.most)
                if not self._settle(ready):
                    return self._unsettled()
                if not text:
                    return ""
                continue
            if not self._settle(len(self._parts)):
                return self._unsettled()
            text = _block(log, BLOCK)
            try:
                if text:
                    self._tally.add(text)
            except (ValueError, csv.Error):
                self._add(self._tally.take())
                return text
            if not text or self._tally.is_full or self._is_due():
                self._add(self._tally.take())
            if not text:
                return ""

    def _is_due(self) -> bool:
        if time.monotonic() - self._settled_at < self._settles_every:
            return False
        self._settled_at = time.monotonic()
        return True

    def _settle(self, number: int) -> bool:
        """Adds the counts of the first parts that other processes count; stops and returns false at an odd one."""
        for _ in range(number):
            try:
                counts = self._parts[0][1].result()
            except BrokenExecutor:  # a process was killed: the rest is counted here
                return False
            if counts is None:
                return False
            try:
                self._labels.learn(label for label in counts.seen if label not in self._labels.known)
            except _OddError:  # as the process could not know
                return False
            self._parts.popleft()
            self._add(counts)
        return True

    def _unsettled(self) -> str:
        text = "".join(text for text, _ in self._parts)
        self._parts.clear()
        return text

    def _add(self, counts: Counts) -> None:
        """Adds counts to the operations, in the order of the log."""
        counted, start, begin = self._counted, self._window.start, self._window.begin
        self.lines += counts.lines
        counted.outside += counts.outside
        operations = list(map(counted.operation, counts.labels))
        for (label, second, is_measured, kind), number in counts.errors.items():
            counted.error(label, max(second, start if is_measured else begin), kind, number)
        for key, number in counts.times.items():
            operations[key >> _BITS].times.record(1000 * (key & _TIME), number)
        places: dict[tuple[int, int], dict[int, int]] = {}
        for (second, key), number in counts.over_time.items():
            place = second, key >> _BITS
            buckets = places.get(place)
            if buckets is None:
                buckets = places[place] = {}
            buckets[key & _TIME] = number
        for (second, label_number), buckets in places.items():
            operation = operations[label_number]
            operation.per_second.count[second - self._window.first] += sum(buckets.values())
            if operation.over_time is not None:
                operation.over_time.add_buckets(second, buckets)
        for key, size in counts.moved.items():
            operations[key >> _BITS].bytes += size
        for thread, label, began, ended, took in counts.last:
            self._last.pop(thread, None)
            self._last[thread] = label, began, ended, took
        if len(self._last) > MOST_THREADS:
            self._last = dict(list(self._last.items())[-MOST_REMEMBERED:])


def counts_of(tally: Tally, text: str) -> Counts | None:
    """Counts whole rows: None if one of them needs a closer look."""
    blocks = io.StringIO(text, newline="")
    try:
        while block := _block(blocks, BLOCK):
            tally.add(block)
    except (ValueError, csv.Error):
        tally.take()
        return None
    return tally.take()


def _block(log: TextIO, size: int) -> str:
    """Reads whole lines of about ``size`` characters, of which all quotes are closed, if they are closed at all."""
    parts = [log.read(size), log.readline()]
    quotes = sum(part.count('"') for part in parts)
    while quotes % 2 and parts[-1] and sum(map(len, parts[1:])) <= LONGEST_FIELD:
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
