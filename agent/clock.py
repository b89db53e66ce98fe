"""How far this node's clock is from S3's: every answer's Date, cut to the second, bounds it.

One answer leaves a second of doubt; several at different fractions of a second leave little more than a round trip.
"""

from __future__ import annotations

from collections import deque
from email.utils import parsedate_to_datetime

from troop.measure.summary import Clock

MOST_ANSWERS = 40
"""Answers; older ones say nothing about a clock that drifts or is set."""
SLACK = 0.05
"""Seconds by which S3's own hosts may disagree."""


class ClockWatch:
    """Bounds from the answers seen."""

    def __init__(self) -> None:
        self._bounds: deque[tuple[float, float]] = deque(maxlen=MOST_ANSWERS)

    def saw(self, date: str, sent: float, received: float) -> None:
        """An answer's Date header, and this node's time before and after. A date that is none is ignored."""
        try:
            theirs = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return
        if received >= sent:  # else the clock was set back meanwhile
            self._bounds.append((sent - theirs - 1, received - theirs))

    def estimate(self) -> Clock | None:
        """The middle of what all answers allow; None before the first one."""
        if not self._bounds:
            return None
        while True:
            low = max(bounds[0] for bounds in self._bounds)
            high = min(bounds[1] for bounds in self._bounds)
            if low <= high + SLACK or len(self._bounds) == 1:
                return Clock(round((low + high) / 2, 4), round(max((high - low) / 2, 0) + SLACK, 4))
            self._bounds.popleft()  # the clock was set since then


def correction(clock: Clock | None) -> float:
    """Seconds to add to an instant of S3's to have it on this node's clock: 0 unless that is certainly wrong."""
    return 0.0 if clock is None else clock.ahead
