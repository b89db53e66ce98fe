"""What a function's own clock is worth: it is held against the workflow's."""

from __future__ import annotations

from datetime import datetime, timedelta

from troop import moments
from troop.errors import TroopError
from troop.settings import OLDEST_TICK

SKEW = timedelta(minutes=1)
"""How far a function's clock may be behind the workflow's."""


class ClockError(TroopError):
    """The function's clock and the workflow's disagree; another try may run on another machine."""


def is_stale(stamped: datetime, now: datetime) -> bool:
    """Whether what the workflow has stamped is too old, or one of the two clocks is wrong: in both cases nothing is to
    be done.
    """
    return not -SKEW <= now - stamped <= OLDEST_TICK


def check(stamped: datetime, now: datetime) -> None:
    """Raises ClockError when a step that the workflow has just entered seems stale."""
    if is_stale(stamped, now):
        raise ClockError(f"the workflow says {moments.iso(stamped)}, this function's clock {moments.iso(now)}")
