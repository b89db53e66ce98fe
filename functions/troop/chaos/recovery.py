"""Evaluates recovery checks: whether a group has its capacity again after a termination or a lasting fault. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil

from troop.chaos.events import Event, Status, Watch
from troop.chaos.groups import Group

CHECKS_NEEDED = 2
"""The number of consecutive checks that must find a group whole."""

CONFIRM_WAIT, TARGETS_WAIT = 3, 4
"""The seconds before the check that confirms the first, and before another look at the traffic sources of a group that
has its capacity: no event tells when a target is healthy.
"""

LAG_SECONDS = 8
"""For how long a group is looked at again that is short although Auto Scaling reports a launch: what it describes can
be older than its event.
"""

CALL_SECONDS = 115
"""The most seconds for which one call looks again. The workflow calls again every 120 seconds, so that looks at slow
targets follow one another without a gap.
"""

CLOCKS = timedelta(seconds=2)
"""How far the moments of two services may differ, whole seconds included."""

EARLIER_WAIT = 60
"""The seconds between checks for executions that an earlier version has started: their definition waits by itself."""

EARLIER_SECONDS = 30
"""The most seconds for which a call of such an execution looks again; its definition allows 75 for the call."""


@dataclass(frozen=True)
class Assessment:
    """The result of a recovery check.

    Attributes:
        status: None while the checks continue, otherwise the event's final status.
        recovered_at: when it recovered; None with any other status.
        detail: a sentence with the numbers.
        wait_seconds: until another look can show more; 0 if nothing will change before Auto Scaling changes the group.
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
    began: datetime,
    now: datetime,
    timeout: timedelta,
) -> Assessment:
    """Evaluates one check of the group of an instance that was hit.

    A group has recovered if two consecutive checks find this: the terminated instance no longer serves, and the
    capacity in service is at least the smaller of the desired capacities at the claim and now. An instance whose
    lasting fault is proven to be over by a probe may serve on. Capacity is in the group's units. An instance is in
    service if it is healthy in all the group's traffic sources. A group that a late check finds whole has recovered,
    because nothing proves that it was too late.

    Args:
        event: one that is recovering, with the earlier checks in ``watch``.
        group: the group now; None if it no longer exists.
        healthy: ids of healthy instances for each traffic source, see :attr:`Group.sources`.
        began: when the check began to read. A group that it found short can have become whole at once after that.
        now: when it had read everything. A group that it found whole was whole by then.
        timeout: the time from :attr:`Event.recovers_from` after which the group is unrecovered.
    """
    checks = event.watch.checks + 1
    not_whole = Watch(checks, checked_at=now, short_at=began)
    if group is None:
        return Assessment(Status.GROUP_DELETED, not_whole, f"group {event.group} was deleted")
    needed = min(event.desired, group.desired)
    serving = group.served(healthy)
    capacity = sum(i.weight for i in serving)
    victim_serves = any(i.instance_id == event.instance_id for i in serving)
    detail = f"capacity {capacity} of {needed} in service" + (
        ", including the instance that was hit" if victim_serves else ""
    )
    if capacity >= needed and (event.victim_stays or not victim_serves):
        watch = Watch(checks, event.watch.whole + 1, event.watch.whole_since or now, now, event.watch.short_at)
        if watch.whole >= CHECKS_NEEDED:
            return Assessment(Status.RECOVERED, watch, detail, recovered_at=watch.whole_since)
        return Assessment(None, watch, detail, wait_seconds=CONFIRM_WAIT)
    if now - (event.recovers_from or event.at) > timeout:
        minutes = timeout.total_seconds() / 60
        return Assessment(Status.UNRECOVERED, not_whole, f"{detail} after {minutes:g} minutes")
    waits_for_targets = group.capacity_in_service >= needed and (
        event.victim_stays or not any(i.instance_id == event.instance_id for i in group.serving)
    )
    return Assessment(None, not_whole, detail, wait_seconds=TARGETS_WAIT if waits_for_targets else 0)


def no_sooner(watch: Watch, returned: datetime | None, recovered_at: datetime) -> Watch:
    """Returns the watch of a recovery that cannot have been earlier than an instance returned to service.

    Args:
        returned: when the first instance was in service; None if that is not known. A moment after ``recovered_at``
            tells nothing, but for the difference of two clocks.
    """
    if returned is None or returned > recovered_at + CLOCKS:
        return watch
    returned = min(returned, recovered_at)
    return replace(watch, short_at=max(watch.short_at or returned, returned))


LOST_AFTER = timedelta(minutes=5)


def watch_lost(event: Event, now: datetime) -> bool:
    """Checks whether a recovering event has had no check for so long that its watch must have ended."""
    last = event.watch.checked_at or event.recovers_from
    return event.is_recovering and last is not None and now - last > LOST_AFTER


NEAR = 60
"""Within so many seconds of its moment, a call waits for the verdict itself: by another clock it can be past already,
and the workflow would not wait.
"""


def until_settled(event: Event, now: datetime) -> int:
    """Returns the seconds for which a call waits until an event's verdict can be given; 0 if that is not near."""
    if event.settles_at is None:
        return 0
    seconds = max(1, ceil((event.settles_at - now).total_seconds()))
    return seconds if seconds <= NEAR else 0


def verdict_lost(event: Event, now: datetime) -> bool:
    """Checks whether an event has waited for its verdict for so long that its workflow must have ended."""
    return event.awaits_verdict and event.settles_at is not None and now - event.settles_at > LOST_AFTER
