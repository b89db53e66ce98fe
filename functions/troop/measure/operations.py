"""Counts a node's operations: times in a histogram and over time, errors by kind, counts by second, bytes.

Values over time begin with the warm-up; all others cover only the measured time.
"""

from __future__ import annotations

import operator
import re
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Callable, Final

from troop.measure import histogram
from troop.measure.histogram import MOST, Histogram
from troop.measure.histogram_rows import MOST_LANES, RowError, column, from_column
from troop.measure.windows import Windows, WindowsError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
"""Names of operations and of kinds of errors."""
MOST_NAMES = 257
"""The most operations of a node, with :data:`OTHER`: names come from scripts and must be bounded."""
MOST_FAILURES = 64
"""The most kinds of errors of an operation, with :data:`OTHER`."""
OTHER = "other"
"""The name for all names beyond the limit."""
MOST_LISTED = 128
"""The most names of operations to list that are counted as :data:`OTHER`: the first in order."""
UNFINISHED = "unfinished"
"""The kind of error of operations that an open loop was to send, and that had not ended at the end."""
TOTAL = "all operations"
"""The name of the total over all operations of a role. Names from scripts have no spaces, so none can be the same."""
RESPONSE: Final = "response"
SERVICE: Final = "service"
MIXED: Final = "mixed"
"""Meanings of times: RESPONSE runs from the moment when an operation was due, so it contains the wait for its turn.
SERVICE runs from the moment when it was sent. MIXED are both in one histogram.
"""
TIMINGS = (RESPONSE, SERVICE, MIXED)
MOST_TOOLS = 8
"""The most tools of an operation to list: the first in order."""
LONGEST_SECONDS = 2 * 24 * 3600
"""The limit of counts by second."""
MOST_OVER_TIME = 300_000
"""The most buckets of all steps and operations of a node: nine very busy operations, or many others; a few
megabytes.
"""


class OperationsError(ValueError):
    """A document is invalid, or operations cannot be added up; the message says why."""


@dataclass
class PerSecond:
    """Operations and errors that ended in each second, including the warm-up.

    Attributes:
        start: the first second, as seconds since 1970.
        count: successes; one entry per second from ``start``.
        errors: errors, as many entries.
        kinds: errors of each kind, as many entries; None if not recorded, as in phases without faults.
    """

    start: int = 0
    count: list[int] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    kinds: dict[str, list[int]] | None = None

    def add(self, other: PerSecond) -> None:
        """Adds another series second by second; the result covers both.

        Raises:
            OperationsError: both together would cover more than :data:`LONGEST_SECONDS`.
        """
        if not other.count:
            return
        if not self.count:
            self.start, self.count, self.errors = other.start, list(other.count), list(other.errors)
            self.kinds = None if other.kinds is None else {kind: list(its) for kind, its in other.kinds.items()}
            return
        start, length = self.span(other)
        self.count = aligned_sum(start, length, (self.start, self.count), (other.start, other.count))
        self.errors = aligned_sum(start, length, (self.start, self.errors), (other.start, other.errors))
        if self.kinds or other.kinds:
            mine, more = self.kinds or {}, other.kinds or {}
            self.kinds = {
                kind: aligned_sum(start, length, (self.start, mine.get(kind, [])), (other.start, more.get(kind, [])))
                for kind in {**mine, **more}
            }
        self.start = start

    def span(self, other: PerSecond) -> tuple[int, int]:
        """Returns the first second and the number of seconds that cover both; zeros if one of them is empty.

        Raises:
            OperationsError: as :meth:`add`.
        """
        if not self.count or not other.count:
            return 0, 0
        start = min(self.start, other.start)
        length = max(self.start + len(self.count), other.start + len(other.count)) - start
        if length > LONGEST_SECONDS:
            raise OperationsError(f"per_second of two nodes is {length} seconds apart: check their clocks")
        return start, length

    def document(self, packed: bool = False) -> dict[str, Any]:
        stored: Callable[[list[int]], Any] = column if packed else list
        kinds = {"kinds": {kind: stored(self.kinds[kind]) for kind in sorted(self.kinds)}} if self.kinds else {}
        return {"from": self.start, "count": stored(self.count), "errors": stored(self.errors), **kinds}


def aligned_sum(start: int, length: int, *series: tuple[int, list[int]]) -> list[int]:
    """Adds up series that start at different numbers, within the ``length`` numbers from ``start``."""
    (first, values), *others = series
    totals = [0] * (first - start) + values
    totals += [0] * (length - len(totals))
    for first, values in others:
        at = first - start
        if not at and len(values) == length:
            totals = list(map(operator.add, totals, values))
            continue
        totals[at : at + len(values)] = map(operator.add, totals[at : at + len(values)], values)
    return totals


@dataclass(frozen=True)
class Rate:
    """The rate that a tool reports without the times of its operations, such as iozone's.

    All are whole numbers, so that sums over nodes do not depend on the order.

    Attributes:
        per_second_thousandths: operations per second, times 1000; 0 if unknown.
        bytes_per_second: moved by them; 0 if unknown.
        threads: that worked at the same time, each with one operation after the other; 0 if unknown.
        count: of operations; 0 if the tool does not report it.
    """

    per_second_thousandths: int
    bytes_per_second: int = 0
    threads: int = 0
    count: int = 0

    def plus(self, other: Rate) -> Rate:
        """Returns the rate of both, which ran at the same time. Counts and threads are known only if both are."""
        return Rate(
            self.per_second_thousandths + other.per_second_thousandths,
            self.bytes_per_second + other.bytes_per_second,
            self.threads + other.threads if self.threads and other.threads else 0,
            self.count + other.count if self.count and other.count else 0,
        )

    @property
    def per_second(self) -> float:
        """Operations per second."""
        return self.per_second_thousandths / 1000

    @property
    def mean_ms(self) -> float | None:
        """The mean service time in milliseconds, derived: threads that never pause complete ``threads / time``
        operations per second. None without threads or operations.
        """
        if not self.threads or not self.per_second_thousandths:
            return None
        return self.threads * 1_000_000 / self.per_second_thousandths


@dataclass(frozen=True)
class Gaps:
    """What values over time lack, of the measured time: some tools and nodes do not report all of them.

    Attributes:
        times: successes that are not in the times over time.
        successes: that are not in the counts by second.
        errors: likewise.
    """

    times: int = 0
    successes: int = 0
    errors: int = 0

    def plus(self, other: Gaps) -> Gaps:
        return Gaps(self.times + other.times, self.successes + other.successes, self.errors + other.errors)


@dataclass
class Operation:
    """One kind of operation, such as ``read``.

    Attributes:
        times: of successes, in microseconds.
        errors: counts by kind; errors have no time in the histogram.
        bytes: moved by successes.
        over_time: times of successes, including the warm-up; None if not recorded.
        rate: of a tool that reports no times; otherwise None.
        names: of the operations that are counted here together, beyond :data:`MOST_NAMES`; at most
            :data:`MOST_LISTED` of them, the first in order.
        timing: what the times mean, one of :data:`TIMINGS`; None if unknown, as in documents of earlier versions.
        service: service times of the same successes; None if ``times`` are service times, or if they are unknown.
        tools: that measured it, such as ``jtl``; at most :data:`MOST_TOOLS`.
        gaps: of the parts that were added up; see :attr:`lacks`.
        counts_failures: False if a tool of some part does not count failures, so that more may have failed.
    """

    times: Histogram = field(default_factory=Histogram)
    errors: dict[str, int] = field(default_factory=dict)
    per_second: PerSecond = field(default_factory=PerSecond)
    bytes: int = 0
    over_time: Windows | None = None
    rate: Rate | None = None
    names: frozenset[str] = frozenset()
    timing: str | None = None
    service: Histogram | None = None
    tools: frozenset[str] = frozenset()
    gaps: Gaps = Gaps()
    counts_failures: bool = True

    @property
    def count(self) -> int:
        """The number of successes; 0 if a tool does not report it."""
        return self.times.count or (self.rate.count if self.rate else 0)

    @property
    def has_times(self) -> bool:
        """Whether there are times that ``timing`` describes, of the measured time or of the warm-up."""
        return bool(self.times.count or (self.over_time and self.over_time.steps))

    @property
    def service_times(self) -> Histogram | None:
        """Service times of all successes; None if they are unknown."""
        return self.service if self.timing in (RESPONSE, MIXED) and self.times.count else self.times

    @property
    def lacks(self) -> Gaps:
        """What the values over time lack. The warm-up of one part never stands for the measured time of another."""
        return Gaps(
            self.gaps.times if self.over_time is not None and self.over_time.steps else self.times.count,
            max(self.gaps.successes, self.times.count - sum(self.per_second.count)),
            max(self.gaps.errors, sum(self.errors.values()) - sum(self.per_second.errors)),
        )

    def add(self, other: Operation) -> None:
        """Adds another operation. If only one has times over time, the sum keeps those, and :attr:`lacks` the others.

        Raises:
            OperationsError: as :meth:`check`; then nothing was added.
        """
        self.check(other)
        self.gaps = self.lacks.plus(other.lacks)
        self.counts_failures = self.counts_failures and other.counts_failures
        self._add_timing(other)
        self.times.add(other.times)
        for kind, count in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + count
        self.per_second.add(other.per_second)
        self.bytes += other.bytes
        if other.rate is not None:
            self.rate = other.rate if self.rate is None else self.rate.plus(other.rate)
        self.note(other.names)
        if other.over_time is None:
            return
        if self.over_time is None:
            self.over_time = other.over_time.copy()
        else:
            self.over_time.add(other.over_time)

    def _add_timing(self, other: Operation) -> None:
        """Combines what the times of both mean, before the times are added up."""
        self.tools = frozenset(sorted(self.tools | other.tools)[:MOST_TOOLS])
        timing = joined(one.timing for one in (self, other) if one.has_times)
        service: Histogram | None = None
        if timing in (RESPONSE, MIXED):
            known = [one.service_times for one in (self, other) if one.has_times]
            if None not in known:
                service = Histogram()
                for times in known:
                    service.add(times or Histogram())
        self.timing, self.service = timing, service

    def note(self, names: Iterable[str]) -> None:
        """Adds names of operations that are counted here together."""
        if not self.names.issuperset(names):
            self.names = frozenset(sorted(self.names.union(names))[:MOST_LISTED])

    def fail(self, second: int, kind: str, count: int = 1, is_measured: bool = True) -> None:
        """Counts errors that ended in a second since 1970, which must be one of those of ``per_second``.

        Args:
            kind: counted as :data:`OTHER` if it is no name, or if there are too many.
            is_measured: False in the warm-up, whose errors only count over time.
        """
        its = self.per_second
        known: Collection[str] = self.errors if its.kinds is None else its.kinds
        most = MOST_FAILURES if kind == UNFINISHED else MOST_FAILURES - 2  # it never counts as other
        if kind not in known and (len(known) >= most or not NAME.fullmatch(kind)):
            kind = OTHER
        its.errors[second - its.start] += count
        if its.kinds is not None:
            its.kinds.setdefault(kind, [0] * len(its.errors))[second - its.start] += count
        if is_measured:
            self.errors[kind] = self.errors.get(kind, 0) + count

    def bound_kinds(self) -> None:
        """Counts the last kinds of errors together as :data:`OTHER`, if there are more than :data:`MOST_FAILURES`."""
        kinds = self.per_second.kinds or {}
        for kind in _last({**self.errors, **kinds}, MOST_FAILURES):
            if kind in self.errors:
                self.errors[OTHER] = self.errors.get(OTHER, 0) + self.errors.pop(kind)
            if kind in kinds:
                rest = kinds.pop(kind)
                kinds[OTHER] = list(map(operator.add, kinds[OTHER], rest)) if OTHER in kinds else rest

    def check(self, other: Operation) -> None:
        """Checks whether the operations can be added up.

        Raises:
            OperationsError: they are too far apart, or their steps over time differ.
        """
        self.per_second.span(other.per_second)
        if self.over_time is not None and other.over_time is not None:
            try:
                self.over_time.span(other.over_time)
            except WindowsError as error:
                raise OperationsError(f"over_time: {error}") from None

    def earlier(self, seconds: float) -> Operation:
        """Returns the operation moved back by about ``seconds``: by whole seconds and steps, and not before 1970.
        Shares the counts with this one.
        """
        per_second = replace(self.per_second, start=max(0, self.per_second.start - round(seconds)))
        return replace(self, per_second=per_second, over_time=self.over_time and self.over_time.earlier(seconds))

    def document(self, packed: bool = False) -> dict[str, Any]:
        """Returns the document that :func:`document_of` describes.

        Args:
            packed: whether histograms and counts are in columns.
        """
        rate = {"rate": asdict(self.rate)} if self.rate else {}
        names = {"names": sorted(self.names)} if self.names else {}
        timing = {"timing": self.timing} if self.timing else {}
        service = {"service": self.service.document(packed)} if self.service is not None else {}
        tools = {"tools": sorted(self.tools)} if self.tools else {}
        gaps = {"gaps": asdict(self.gaps)} if self.gaps != Gaps() else {}
        counts_failures = {} if self.counts_failures else {"counts_failures": False}
        return {
            "histogram": self.times.document(packed),
            "errors": dict(sorted(self.errors.items())),
            "per_second": self.per_second.document(packed),
            "bytes": self.bytes,
            "over_time": self.over_time.document(packed) if self.over_time and self.over_time.steps else None,
            **rate,
            **names,
            **timing,
            **service,
            **tools,
            **gaps,
            **counts_failures,
        }


def joined(timings: Iterable[str | None]) -> str | None:
    """Returns what times mean together. Unknown ones count as service times, as in earlier versions."""
    kinds = set(timings)
    if len(kinds) < 2:
        return next(iter(kinds), None)
    return MIXED if kinds & {RESPONSE, MIXED} else None


Operations = dict[str, Operation]


def add_all(totals: Operations, more: Mapping[str, Operation]) -> None:
    """Adds each operation of ``more`` to the one of the same name, which is created if missing.

    Names are not limited, so order and grouping of nodes do not change the result.
    """
    for name, operation in more.items():
        totals.setdefault(name, Operation()).add(operation)


def total_of(operations: Collection[Operation]) -> Operation | None:
    """Adds up different operations, without their values over time: histograms bucket by bucket, errors by kind.

    Returns:
        None for a single operation. Also None if a tool reports only rates, because such tools do one kind of operation
        after the other.
    """
    if len(operations) < 2 or any(one.rate for one in operations):
        return None
    total = Operation()
    for one in operations:
        alone = Operation(times=one.times, errors=one.errors, bytes=one.bytes, counts_failures=one.counts_failures)
        total.add(replace(alone, timing=one.timing, service=one.service, tools=one.tools))
    return total


def add_bounded(totals: Operations, more: Mapping[str, Operation]) -> None:
    """Adds operations of the same node.

    If there are more than :data:`MOST_NAMES` operations, or :data:`MOST_FAILURES` kinds of errors of an operation, the
    first keep their names and the others are counted together as :data:`OTHER`.

    Raises:
        OperationsError: they cannot be added up; then nothing of ``more`` was added.
    """
    last = _last({**totals, **more}, MOST_NAMES)
    moved = [name for name in totals if name in last]
    parts: Operations = {}
    for name, operation in [*((name, totals[name]) for name in moved), *more.items()]:
        part = parts.setdefault(OTHER if name in last else name, Operation())
        part.add(operation)
        if name in last:
            part.note([name])
    for name, part in parts.items():
        if name in totals:
            totals[name].check(part)
    for name in moved:
        del totals[name]
    add_all(totals, parts)
    for name in parts:
        totals[name].bound_kinds()


def _last(names: Mapping[str, Any], most: int) -> set[str]:
    """Returns the names beyond the limit; one of the names below it is reserved for :data:`OTHER`."""
    return set([name for name in names if name != OTHER][most - 1 :]) if len(names) > most else set()


def bound_over_time(operations: Mapping[str, Operation], most: int = MOST_OVER_TIME) -> list[str]:
    """Removes times over time of the rarest operations until all have at most ``most`` buckets in total.

    Returns:
        The names of the operations without times over time.
    """
    left = {name: one.over_time.buckets for name, one in operations.items() if one.over_time}
    rarest = sorted(left, key=lambda name: (sum(operations[name].per_second.count), name))
    gone = []
    while sum(left.values()) > most:
        gone.append(rarest.pop(0))
        del left[gone[-1]]
        operations[gone[-1]].over_time = None
    return gone


def document_of(operations: Mapping[str, Operation], packed: bool = False) -> dict[str, Any]:
    """Returns ``{name: {"histogram", "errors", "per_second", "bytes", "over_time", "rate", "names", "timing",
    "service", "tools", "gaps", "counts_failures"}}``, sorted by name; ``rate`` only where a tool reports no times, the
    others after it only if known, and the last one only if it is false.
    """
    return {name: operations[name].document(packed) for name in sorted(operations)}


def parse(document: Any, where: str = "operations") -> Operations:
    """Reads a document of :func:`document_of`.

    Args:
        where: the document's name in messages.

    Raises:
        OperationsError: a value is missing, of the wrong type, or inconsistent.
    """
    operations, size = dict[str, Operation](), 0
    for name, value in named(document, where).items():
        one = operations[name] = _operation(value, f"{where}.{name}")
        counted = (one.times, one.service, one.over_time)
        size += (2 + len(one.per_second.kinds or ())) * len(one.per_second.count)
        size += sum(part.size for part in counted if part)
        if size > 2 * MOST_LANES:
            raise OperationsError(f"{where} have too many counts: packed, they need few bytes, but not in memory")
    return operations


def _operation(document: Any, where: str) -> Operation:
    if not isinstance(document, Mapping):
        raise OperationsError(f"{where} must be an object")
    try:
        times = histogram.from_document(document.get("histogram"))
    except histogram.HistogramError as error:
        raise OperationsError(f"{where}.histogram: {error}") from None
    try:
        over_time = Windows.from_document(windows) if (windows := document.get("over_time")) is not None else None
    except WindowsError as error:
        raise OperationsError(f"{where}.over_time: {error}") from None
    errors = errors_in(document, where)
    moved = whole(document.get("bytes"), f"{where}.bytes")
    per_second = _per_second(document.get("per_second"), f"{where}.per_second")
    rate, names = rate_in(document, where), _listed(document.get("names", []), f"{where}.names", MOST_LISTED)
    timing, service = timing_in(document, where)
    tools = _listed(document.get("tools", []), f"{where}.tools", MOST_TOOLS)
    gaps, counts_failures = gaps_in(document, where), document.get("counts_failures", True)
    if type(counts_failures) is not bool:
        raise OperationsError(f"{where}.counts_failures must be true or false")
    measured = (times, errors, per_second, moved, over_time, rate)
    return Operation(*measured, names, timing, service, tools, gaps, counts_failures)


def timing_in(document: Mapping[str, Any], where: str) -> tuple[str | None, Histogram | None]:
    """Reads from an operation's document what its times mean, and its service times apart.

    Raises:
        OperationsError: they are invalid.
    """
    timing, service = timing_of(document, where), document.get("service")
    if service is None:
        return timing, None
    if timing not in (RESPONSE, MIXED):
        raise OperationsError(f"{where}.service needs a timing of {RESPONSE} or {MIXED}")
    try:
        return timing, histogram.from_document(service)
    except histogram.HistogramError as error:
        raise OperationsError(f"{where}.service: {error}") from None


def rate_in(document: Mapping[str, Any], where: str) -> Rate | None:
    """Reads the rate of an operation's document; None if its tool reports times.

    Raises:
        OperationsError: it is not a rate.
    """
    rate, where = document.get("rate"), f"{where}.rate"
    if rate is None:
        return None
    if not isinstance(rate, Mapping):
        raise OperationsError(f"{where} must be an object or null")
    return Rate(**{one.name: whole(rate.get(one.name), f"{where}.{one.name}") for one in fields(Rate)})


def gaps_in(document: Mapping[str, Any], where: str) -> Gaps:
    """Reads what the values over time of an operation's document lack; nothing if an earlier version wrote it.

    Raises:
        OperationsError: it is invalid.
    """
    gaps, where = document.get("gaps", {}), f"{where}.gaps"
    if not isinstance(gaps, Mapping):
        raise OperationsError(f"{where} must be an object")
    return Gaps(**{one.name: whole(gaps.get(one.name, 0), f"{where}.{one.name}") for one in fields(Gaps)})


def timing_of(document: Mapping[str, Any], where: str) -> str | None:
    """Reads what the times of a document mean.

    Raises:
        OperationsError: it is none of :data:`TIMINGS`.
    """
    timing = document.get("timing")
    if timing is not None and timing not in TIMINGS:
        raise OperationsError(f"{where}.timing must be one of {', '.join(TIMINGS)}, or null")
    return timing


def _listed(names: Any, where: str, most: int) -> frozenset[str]:
    if not isinstance(names, list) or len(names) > most:
        raise OperationsError(f"{where} must be a list of at most {most} names")
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise OperationsError(f"{where}: {str(name)[:80]!r} must match {NAME.pattern}")
    return frozenset(names)


def errors_in(document: Mapping[str, Any], where: str) -> dict[str, int]:
    """Reads the counts by kind in a document's ``errors``.

    Raises:
        OperationsError: they are missing or invalid.
    """
    errors = named(document.get("errors"), f"{where}.errors", MOST_FAILURES)
    return {kind: whole(count, f"{where}.errors.{kind}") for kind, count in errors.items()}


def _per_second(document: Any, where: str) -> PerSecond:
    if not isinstance(document, Mapping):
        raise OperationsError(f"{where} must be an object")
    count, errors = (_counts(document.get(name), f"{where}.{name}") for name in ("count", "errors"))
    if len(count) != len(errors):
        raise OperationsError(f"{where}: count and errors must have the same length")
    kinds = {
        kind: _counts(counts, f"{where}.kinds.{kind}")
        for kind, counts in named(document.get("kinds", {}), f"{where}.kinds", MOST_FAILURES).items()
    }
    if any(len(counts) != len(errors) for counts in kinds.values()):
        raise OperationsError(f"{where}: kinds and errors must have the same length")
    return PerSecond(whole(document.get("from"), f"{where}.from"), count, errors, kinds or None)


def _counts(values: Any, where: str) -> list[int]:
    if isinstance(values, Mapping):
        try:
            return array("Q", bytes(from_column(values, LONGEST_SECONDS))).tolist()
        except RowError as error:
            raise OperationsError(f"{where}: {error}") from None
    if not isinstance(values, list) or len(values) > LONGEST_SECONDS:
        raise OperationsError(f"{where} must be a list of at most {LONGEST_SECONDS} counts")
    if not set(map(type, values)) <= {int} or min(values, default=0) < 0 or max(values, default=0) > MOST:
        raise OperationsError(f"{where} must hold whole numbers from 0, below 2^63")
    return values


def named(document: Any, where: str, most: int = MOST_NAMES) -> Mapping[str, Any]:
    """Returns ``document`` if it is an object of at most ``most`` keys that match :data:`NAME`.

    Raises:
        OperationsError: it is not.
    """
    if not isinstance(document, Mapping) or len(document) > most:
        raise OperationsError(f"{where} must be an object of at most {most} names")
    for name in document:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise OperationsError(f"{where}: {str(name)[:80]!r} must match {NAME.pattern}")
    return document


def whole(value: Any, where: str) -> int:
    """Returns ``value`` if it is a whole number from 0 to :data:`~troop.measure.histogram.MOST`, and not a Boolean.

    Raises:
        OperationsError: it is not.
    """
    if type(value) is not int or not 0 <= value <= MOST:
        raise OperationsError(f"{where} must be a whole number from 0, below 2^63")
    return value
