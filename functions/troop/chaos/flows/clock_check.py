"""Checks a function's clock against the workflow's."""

from __future__ import annotations

from datetime import datetime, timedelta

from troop.shared import moments
from troop.shared.errors import TroopError
from troop.shared.settings import OLDEST_TICK

SKEW = timedelta(minutes=1)
"""The most by which a function's clock may be behind the workflow's."""


class ClockError(TroopError):
    """The clocks of the function and the workflow disagree; a retry may run on another machine."""


def is_stale(stamped: datetime, now: datetime) -> bool:
    """Checks whether a workflow's timestamp is too old, or one of the two clocks is wrong. In both cases the step must
    do nothing.
    """
    return not -SKEW <= now - stamped <= OLDEST_TICK


def check(stamped: datetime, now: datetime) -> None:
    """Raises ClockError if a step that the workflow has just started seems stale."""
    if is_stale(stamped, now):
        raise ClockError(f"the workflow's clock shows {moments.iso(stamped)}, this function's {moments.iso(now)}")
