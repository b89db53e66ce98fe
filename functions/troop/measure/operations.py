"""What a node's operations came to: times in a histogram, errors by kind, counts by second, bytes."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troop.measure import histogram
from troop.measure.histogram import Histogram

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
"""Of an operation, and of a kind of error."""
MOST_NAMES = 64
"""Of operations, and of an operation's kinds of errors: what a script makes up must not grow without bound."""
LONGEST_SECONDS = 2 * 24 * 3600
"""Of counts by second."""


class OperationsError(ValueError):
    """A document that cannot be read; the message says what must be how."""


@dataclass
class PerSecond:
    """How many operations ended in each second, and how many of them in an error.

    Attributes:
        start: the first second, as seconds since 1970.
        count: successes; one entry a second from ``start``.
        errors: as many entries.
    """

    start: int = 0
    count: list[int] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)

    def add(self, other: PerSecond) -> None:
        """Second by second; afterwards it covers both.

        Raises:
            OperationsError: both together would cover more than :data:`LONGEST_SECONDS`.
        """
        if not other.count:
            return
        if not self.count:
            self.start, self.count, self.errors = other.start, list(other.count), list(other.errors)
            return
        start = min(self.start, other.start)
        length = max(self.start + len(self.count), other.start + len(other.count)) - start
        if length > LONGEST_SECONDS:
            raise OperationsError(f"per_second of two nodes is {length} seconds apart: check their clocks")
        self.count = aligned_sum(start, length, (self.start, self.count), (other.start, other.count))
        self.errors = aligned_sum(start, length, (self.start, self.errors), (other.start, other.errors))
        self.start = start

    def document(self) -> dict[str, Any]:
        return {"from": self.start, "count": list(self.count), "errors": list(self.errors)}


def aligned_sum(start: int, length: int, *series: tuple[int, list[int]]) -> list[int]:
    """The sum of series that each begin at a number of their own, within the ``length`` numbers from ``start``."""
    totals = [0] * length
    for first, values in series:
        at = first - start
        totals[at : at + len(values)] = map(operator.add, totals[at : at + len(values)], values)
    return totals


@dataclass
class Operation:
    """One kind of operation, such as ``read``.

    Attributes:
        times: of successes, in microseconds.
        errors: how many, by kind; they have no time in the histogram.
        bytes: moved by successes.
    """

    times: Histogram = field(default_factory=Histogram)
    errors: dict[str, int] = field(default_factory=dict)
    per_second: PerSecond = field(default_factory=PerSecond)
    bytes: int = 0

    def add(self, other: Operation) -> None:
        self.times.add(other.times)
        for kind, count in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + count
        self.per_second.add(other.per_second)
        self.bytes += other.bytes

    def document(self) -> dict[str, Any]:
        return {
            "histogram": self.times.document(),
            "errors": dict(sorted(self.errors.items())),
            "per_second": self.per_second.document(),
            "bytes": self.bytes,
        }


Operations = dict[str, Operation]


def add_all(totals: Operations, more: Mapping[str, Operation]) -> None:
    """Adds each operation of ``more`` to the one of its name, which is made when there is none."""
    for name, operation in more.items():
        totals.setdefault(name, Operation()).add(operation)


def document_of(operations: Mapping[str, Operation]) -> dict[str, Any]:
    """``{name: {"histogram", "errors", "per_second", "bytes"}}``, sorted by name."""
    return {name: operations[name].document() for name in sorted(operations)}


def parse(document: Any, where: str = "operations") -> Operations:
    """The reverse of :func:`document_of`.

    Args:
        where: what messages call the document.

    Raises:
        OperationsError: something is missing, of the wrong kind, or contradicts itself.
    """
    return {name: _operation(value, f"{where}.{name}") for name, value in _named(document, where).items()}


def _operation(document: Any, where: str) -> Operation:
    if not isinstance(document, Mapping):
        raise OperationsError(f"{where} must be an object")
    try:
        times = histogram.from_document(document.get("histogram"))
    except histogram.HistogramError as error:
        raise OperationsError(f"{where}.histogram: {error}") from None
    errors = {
        kind: whole(n, f"{where}.errors.{kind}")
        for kind, n in _named(document.get("errors"), f"{where}.errors").items()
    }
    moved = whole(document.get("bytes"), f"{where}.bytes")
    return Operation(times, errors, _per_second(document.get("per_second"), f"{where}.per_second"), moved)


def _per_second(document: Any, where: str) -> PerSecond:
    if not isinstance(document, Mapping):
        raise OperationsError(f"{where} must be an object")
    count, errors = (_counts(document.get(name), f"{where}.{name}") for name in ("count", "errors"))
    if len(count) != len(errors):
        raise OperationsError(f"{where}: count and errors must be of one length")
    return PerSecond(whole(document.get("from"), f"{where}.from"), count, errors)


def _counts(values: Any, where: str) -> list[int]:
    if not isinstance(values, list) or len(values) > LONGEST_SECONDS:
        raise OperationsError(f"{where} must be a list of at most {LONGEST_SECONDS} counts")
    if not set(map(type, values)) <= {int} or min(values, default=0) < 0:
        raise OperationsError(f"{where} must hold whole numbers from 0")
    return values


def _named(document: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping) or len(document) > MOST_NAMES:
        raise OperationsError(f"{where} must be an object of at most {MOST_NAMES} names")
    for name in document:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise OperationsError(f"{where}: {str(name)[:80]!r} is no name: {NAME.pattern}")
    return document


def whole(value: Any, where: str) -> int:
    """``value`` when it is a whole number from 0; true is none.

    Raises:
        OperationsError: it is not.
    """
    if type(value) is not int or value < 0:
        raise OperationsError(f"{where} must be a whole number from 0")
    return value
