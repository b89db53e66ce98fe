"""Recovery, measured: when does a group serve as much as it should again?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.chaos.events import Event, Status, Watch
from troop.chaos.groups import Group

CHECKS_NEEDED = 2
"""A group is recovered when it was seen whole this many times in a row."""

FIRST_WAIT, LONGEST_WAIT, CONFIRM_WAIT = 45, 120, 3
"""Seconds before the first look (before that, a replacement has hardly ever been noticed to be needed, launched and
booted), at most between two looks, and before the second good one."""

BACKOFF = 1.5
"""From look to look the time since the termination grows by this factor, until a wait would be the longest. So a
recovery after the first look is measured at most half too long, and one before it at most as long as the first wait.
Looks are what chaos costs most: 45, 67, 100, 150, 225, 338 seconds are six of them."""


@dataclass(frozen=True)
class Assessment:
    """The outcome of a look.

    Attributes:
        status: None while the watch goes on, else the event's final status.
        recovered_at: when it recovered; None unless the status says so.
        detail: a sentence with the numbers.
        wait_seconds: until the next look.
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
    """Looks once at the group of a terminated instance.

    Recovered means: the victim no longer serves, and the capacity in service, in the group's own units, is at least
    the smaller of what was desired at the kill and what is desired now, twice in a row. An instance counts as in
    service when it is healthy in all that the group gets traffic from. A group that a late look finds whole is
    recovered: nobody can say that it was not in time.

    Args:
        event: with ``terminated_at``, and the looks before this one in ``watch``.
        group: as it is now; None when it no longer exists.
        healthy: ids of healthy instances for each of the group's sources of traffic, see :attr:`Group.sources`.
        timeout: from the termination; after it the group is unrecovered.
    """
    checks = event.watch.checks + 1
    not_whole = Watch(checks, checked_at=now)
    if group is None:
        return Assessment(Status.GROUP_DELETED, not_whole, f"group {event.group} was deleted")
    needed = min(event.desired, group.desired)
    serving = group.served(healthy)
    capacity = sum(i.weight for i in serving)
    victim_serves = any(i.instance_id == event.instance_id for i in serving)
    detail = f"capacity {capacity} of {needed} in service" + (", the victim among it" if victim_serves else "")
    since = event.terminated_at or event.at
    if capacity >= needed and not victim_serves:
        seen = Watch(checks, event.watch.whole + 1, event.watch.whole_since or now, now)
        if seen.whole >= CHECKS_NEEDED:
            return Assessment(Status.RECOVERED, seen, detail, recovered_at=seen.whole_since)
        return Assessment(None, seen, detail, wait_seconds=CONFIRM_WAIT)
    if now - since > timeout:
        minutes = timeout.total_seconds() / 60
        return Assessment(Status.UNRECOVERED, not_whole, f"{detail} after {minutes:g} minutes")
    return Assessment(None, not_whole, detail, wait_seconds=_wait(checks, (now - since).total_seconds()))


def wait_before(check: int) -> int:
    """Seconds to wait before look number ``check`` (the first is 0)."""
    if check == 0:
        return FIRST_WAIT
    # min() before the power: a watch of days must not overflow.
    return int(min(LONGEST_WAIT, FIRST_WAIT * (BACKOFF - 1) * BACKOFF ** (min(check, 50) - 1)))


def _wait(checks: int, after: float) -> int:
    """Seconds until the next look. Looks out of turn (to confirm, or a sweep's) count too: they must not make those
    that follow rarer than the time since the termination, ``after``, allows.
    """
    return int(min(wait_before(checks), max(FIRST_WAIT, after) * (BACKOFF - 1)))


LOST_AFTER = timedelta(minutes=5)


def watch_lost(event: Event, now: datetime) -> bool:
    """Whether nobody has looked after a terminated event for so long that its watch must have died."""
    last = event.watch.checked_at or event.terminated_at
    return event.status is Status.TERMINATED and last is not None and now - last > LOST_AFTER
