"""Estimates how far this node's clock is from S3's: the Date of each answer, cut to the second, bounds the offset.

One answer leaves an uncertainty of a second; several at different fractions of a second leave little more than a round
trip.
"""

from __future__ import annotations

from collections import deque
from email.utils import parsedate_to_datetime

from troop.measure.summary import Clock

MOST_ANSWERS = 40
"""The number of answers to remember; older ones are useless after a clock has drifted or was set."""
SLACK = 0.05
"""Seconds by which S3's hosts may disagree."""


class ClockWatch:
    """Bounds of the offset from recent answers."""

    def __init__(self) -> None:
        self._bounds: deque[tuple[float, float]] = deque(maxlen=MOST_ANSWERS)

    def saw(self, date: str, sent: float, received: float) -> None:
        """Adds an answer's Date header with this node's time before and after. Ignores an invalid date."""
        try:
            theirs = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return
        if received >= sent:  # otherwise the clock was set back meanwhile
            self._bounds.append((sent - theirs - 1, received - theirs))

    def estimate(self) -> Clock | None:
        """Returns the middle of the range that all answers allow; None before the first answer."""
        if not self._bounds:
            return None
        while True:
            low = max(bounds[0] for bounds in self._bounds)
            high = min(bounds[1] for bounds in self._bounds)
            if low <= high + SLACK or len(self._bounds) == 1:
                return Clock(round((low + high) / 2, 4), round(max((high - low) / 2, 0) + SLACK, 4))
            self._bounds.popleft()  # the clock was set after this answer


def correction(clock: Clock | None) -> float:
    """Returns the seconds to add to S3's time to get this node's time; 0 unless the clock is certainly wrong."""
    return 0.0 if clock is None else clock.ahead
