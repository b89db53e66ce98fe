"""Checks whether a unit recovered slowly, by its own history: slower than before. Pure.

A recovery is compared with the unit's :data:`LATEST` recoveries before it, alike (see :func:`likeness`) and of at most
:data:`RECENT` before. Notifications, the page, reports and the letter all use this definition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Generic, TypeVar

T = TypeVar("T")

LATEST = 20
"""The number of a unit's latest recoveries that count: older ones are not representative."""

RECENT = timedelta(days=365)
"""The time before a recovery in which earlier ones count."""

ENOUGH = 5
"""The fewest recoveries from which to estimate the usual time."""

TIMES = 2.0
MORE_SECONDS = 60.0


def likeness(method: str, stays: bool) -> str:
    """Returns what recoveries must have in common to be compared: the method and, after a lasting fault, whether the
    instance stays. A group that keeps its instances is whole at once, and one that replaces one takes minutes.
    """
    return f"{method}, the instance stays" if stays else method


def usual(earlier: Sequence[float]) -> float | None:
    """Returns the usual recovery time of a unit, in seconds: the median of its recoveries; None if they are too few.

    Args:
        earlier: seconds of the unit's recoveries that are alike, newest first.
    """
    latest = earlier[:LATEST]
    return float(median(latest)) if len(latest) >= ENOUGH else None


def is_slow(seconds: float, usually: float | None) -> bool:
    """Checks whether a recovery took more than twice the usual time, and more than a minute longer: double a few
    seconds is not news.
    """
    return usually is not None and seconds > max(TIMES * usually, usually + MORE_SECONDS)


@dataclass(frozen=True, slots=True)
class Compared(Generic[T]):
    """A recovery, compared with the earlier ones of its unit.

    Attributes:
        subject: what the caller has added.
        seconds: its time.
        usually: see :func:`usual`.
    """

    subject: T
    seconds: float
    usually: float | None

    @property
    def is_slow(self) -> bool:
        return is_slow(self.seconds, self.usually)

    @property
    def times(self) -> float:
        """How many times the usual time, of at least a second, it took; 0 without a usual time."""
        return 0.0 if self.usually is None else self.seconds / max(1.0, self.usually)


class Slowness(Generic[T]):
    """Compares the recoveries of many units, in one pass from the newest to the oldest.

    It stores at most LATEST + 1 recoveries of a unit that are alike.

    Attributes:
        waiting: how many recoveries with a subject still lack earlier ones to be compared with.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._recoveries: dict[tuple[str, str], deque[tuple[datetime, float, T | None]]] = {}

    def add(
        self, unit: str, like: str, at: datetime, seconds: float, subject: T | None = None
    ) -> Iterator[Compared[T]]:
        """Adds a recovery, and yields the one that has all its earlier ones with it, if there is one.

        Args:
            like: see :func:`likeness`.
            at: when it was claimed: the order of recoveries, none newer than those before.
            subject: what its comparison is for; None for a recovery that is only compared with.
        """
        recoveries = self._recoveries.setdefault((unit, like), deque())
        recoveries.append((at, seconds, subject))
        self.waiting += subject is not None
        if len(recoveries) > LATEST:
            yield from self._compare(recoveries)

    def rest(self) -> Iterator[Compared[T]]:
        """Yields all others, once the oldest recovery is added."""
        for recoveries in self._recoveries.values():
            while recoveries:
                yield from self._compare(recoveries)

    def _compare(self, recoveries: deque[tuple[datetime, float, T | None]]) -> Iterator[Compared[T]]:
        at, seconds, subject = recoveries.popleft()
        if subject is not None:
            self.waiting -= 1
            since = at - RECENT
            yield Compared(subject, seconds, usual([before for then, before, _ in recoveries if then >= since]))
