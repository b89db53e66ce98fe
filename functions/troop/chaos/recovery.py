"""Evaluates recovery checks: whether a group has its capacity again after a termination. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.chaos.events import Event, Status, Watch
from troop.chaos.groups import Group

CHECKS_NEEDED = 2
"""The number of consecutive checks that must find a group whole."""

FIRST_WAIT, LONGEST_WAIT, CONFIRM_WAIT = 45, 120, 3
"""The seconds before the first check (an earlier one would hardly ever find a replacement that has booted), at most
between two checks, and before the confirming check.
"""

BACKOFF = 1.5
"""The factor by which the time since the termination grows from check to check, until a wait reaches the longest. A
recovery after the first check is measured at most half too long, an earlier one at most by the first wait. Checks are
the largest cost of chaos: 45, 67, 100, 150, 225, 338 seconds are six of them.
"""


@dataclass(frozen=True)
class Assessment:
    """The result of a recovery check.

    Attributes:
        status: None while the checks continue, otherwise the event's final status.
        recovered_at: when it recovered; None with any other status.
        detail: a sentence with the numbers.
        wait_seconds: until the next check.
    """

    status: Status | None
    watch: Watch
    detail: str
    recovered_at: datetime | None = None
    wait_seconds: int = 0


def assess(
    event: Event,
    group: Group | None,
    healthy: Mapping[str, frozenset[str]],
    now: datetime,
    timeout: timedelta,
) -> Assessment:
    """Evaluates one check of the group of a terminated instance.

    A group has recovered if two consecutive checks find this: the terminated instance no longer serves, and the
    capacity in service is at least the smaller of the desired capacities at the claim and now. Capacity is in the
    group's units. An instance is in service if it is healthy in all the group's traffic sources. A group that a late
    check finds whole has recovered, because nothing proves that it was too late.

    Args:
        event: the event with ``terminated_at``, and the earlier checks in ``watch``.
        group: the group now; None if it no longer exists.
        healthy: ids of healthy instances for each traffic source, see :attr:`Group.sources`.
        timeout: the time from the termination after which the group is unrecovered.
    """
    checks = event.watch.checks + 1
    not_whole = Watch(checks, checked_at=now)
    if group is None:
        return Assessment(Status.GROUP_DELETED, not_whole, f"group {event.group} was deleted")
    needed = min(event.desired, group.desired)
    serving = group.served(healthy)
    capacity = sum(i.weight for i in serving)
    victim_serves = any(i.instance_id == event.instance_id for i in serving)
    detail = f"capacity {capacity} of {needed} in service" + (", including the victim" if victim_serves else "")
    since = event.terminated_at or event.at
    if capacity >= needed and not victim_serves:
        watch = Watch(checks, event.watch.whole + 1, event.watch.whole_since or now, now)
        if watch.whole >= CHECKS_NEEDED:
            return Assessment(Status.RECOVERED, watch, detail, recovered_at=watch.whole_since)
        return Assessment(None, watch, detail, wait_seconds=CONFIRM_WAIT)
    if now - since > timeout:
        minutes = timeout.total_seconds() / 60
        return Assessment(Status.UNRECOVERED, not_whole, f"{detail} after {minutes:g} minutes")
    return Assessment(None, not_whole, detail, wait_seconds=_wait(checks, (now - since).total_seconds()))


def wait_before(check: int) -> int:
    """Returns the seconds to wait before check number ``check`` (the first is 0)."""
    if check == 0:
        return FIRST_WAIT
    # min() before the power, so that a watch of days does not overflow.
    return int(min(LONGEST_WAIT, FIRST_WAIT * (BACKOFF - 1) * BACKOFF ** (min(check, 50) - 1)))


def _wait(checks: int, after: float) -> int:
    """Returns the seconds until the next check. Additional checks (to confirm, or a sweep's) count too: they must not
    make later ones rarer than the time since the termination, ``after``, allows.
    """
    return int(min(wait_before(checks), max(FIRST_WAIT, after) * (BACKOFF - 1)))


LOST_AFTER = timedelta(minutes=5)


def watch_lost(event: Event, now: datetime) -> bool:
    """Checks whether a terminated event has had no check for so long that its watch must have ended."""
    last = event.watch.checked_at or event.terminated_at
    return event.status is Status.TERMINATED and last is not None and now - last > LOST_AFTER
