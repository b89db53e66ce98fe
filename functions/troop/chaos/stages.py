"""Defines the stages of a recovery: when the group noticed the loss, launched, and had its capacity again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

SUCCESSFUL = "Successful"
MOST_ACTIVITIES = 100
"""The most activities that are read, the newest ones."""

FAILED = frozenset({"Failed", "Cancelled"})
"""The statuses of activities that have ended. A status message says why one failed."""

_LAUNCH = re.compile(r"Launching a new EC2 instance: +(i-[0-9a-f]+)")
_END = re.compile(r"Terminating EC2 instance: +(i-[0-9a-f]+)")
"""The descriptions that AWS publishes; only they name the instance. Any other text tells nothing."""


@dataclass(frozen=True, slots=True)
class Activity:
    """A scaling activity of a group.

    Attributes:
        description: a text that names the instance.
        status: such as ``InProgress``, :data:`SUCCESSFUL` or one of :data:`FAILED`.
        ended: None while it is in progress.
        message: why it failed, or what it waits for; "" for nothing.
    """

    description: str
    status: str
    started: datetime
    ended: datetime | None = None
    message: str = ""

    @property
    def launches(self) -> str:
        """The id of the instance that it launches; "" for none, and if that is not known."""
        return _instance(_LAUNCH, self.description)

    @property
    def ends(self) -> str:
        """The id of the instance that it terminates; "" for none, and if that is not known."""
        return _instance(_END, self.description)


@dataclass(frozen=True, slots=True)
class HealthySince:
    """When a check found the replacement healthy in a traffic source, see :attr:`troop.chaos.groups.Group.sources`;
    AWS records no moment for it. None: not known.
    """

    source: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of the first replacement. A moment is None if it is not known.

    Attributes:
        noticed: when Auto Scaling began to end the terminated instance (StartTime of that activity).
        launched: when Auto Scaling began to launch the replacement (StartTime of that activity).
        running: when EC2 reported the replacement as running (the event's time).
        in_service: when Auto Scaling put the replacement into service (EndTime of its launch).
        healthy: the replacement's health in each traffic source; empty for a group without any.
    """

    noticed: datetime | None = None
    launched: datetime | None = None
    running: datetime | None = None
    in_service: datetime | None = None
    healthy: tuple[HealthySince, ...] = ()


def source_name(source: str) -> str:
    """Returns the short name of a traffic source: in the ARN of a target group, that of the group.

    >>> source_name("arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/6d0ecf831eec9f09")
    'web'
    """
    return source.partition("targetgroup/")[2].partition("/")[0] or source


def observe(
    earlier: Stages | None,
    activities: Iterable[Activity],
    victim: str,
    since: datetime,
    running: Mapping[str, datetime],
    healthy: Mapping[str, frozenset[str]],
    now: datetime,
) -> Stages:
    """Returns the stages that are known now.

    Args:
        earlier: those that were known before; None before the first check.
        activities: the group's; they may no longer contain what was known before.
        victim: the id of the terminated instance.
        since: when its termination was requested. Auto Scaling's moments can be whole seconds.
        running: when EC2 reported instances as running, by id.
        healthy: ids of the healthy instances by traffic source.
        now: the moment of the check.
    """
    known, activities = earlier or Stages(), tuple(activities)
    noticed = min((one.started for one in activities if one.ends == victim), default=known.noticed)
    launch = _first_launch(activities, since)
    if launch is None:
        sources = known.healthy or tuple(HealthySince(source) for source in healthy)
        return Stages(noticed, known.launched, known.running, known.in_service, sources)
    if known.launched != launch.started:  # the instance that was launched before has failed
        known = Stages()
    ran = running.get(launch.launches)
    if ran and ran == launch.started.replace(microsecond=0):  # EC2 states whole seconds
        ran = launch.started
    since_by_source = {one.source: one.at for one in known.healthy}
    return Stages(
        noticed=noticed,
        launched=launch.started,
        running=ran or known.running,
        in_service=launch.ended if launch.status == SUCCESSFUL else known.in_service,
        healthy=tuple(
            HealthySince(source, since_by_source.get(source) or (now if launch.launches in ids else None))
            for source, ids in healthy.items()
        ),
    )


def last_failure(activities: Iterable[Activity], since: datetime) -> str:
    """Returns Auto Scaling's message about the last activity since then that failed; "" if none did."""
    failed = [one for one in activities if one.status in FAILED and one.started >= since]
    return max(failed, key=lambda one: one.started).message if failed else ""


def first_return(activities: Iterable[Activity], since: datetime) -> datetime | None:
    """Returns when the first launch ended well since then, so that the group had no more capacity before. None if that
    is not known: without a launch, and if another kind of activity can have added capacity.
    """
    every, from_second = tuple(activities), since.replace(microsecond=0)
    later = [one for one in every if one.ended is None or one.ended >= from_second]
    if len(later) >= MOST_ACTIVITIES or not all(one.launches or one.ends for one in later):
        return None
    return min((one.ended for one in later if one.launches and one.status == SUCCESSFUL and one.ended), default=None)


def _first_launch(activities: Iterable[Activity], since: datetime) -> Activity | None:
    from_second = since.replace(microsecond=0)
    launches = [one for one in activities if one.launches and one.status not in FAILED and one.started >= from_second]
    return min(launches, key=lambda one: one.started, default=None)


def _instance(pattern: re.Pattern[str], description: str) -> str:
    match = pattern.match(description)
    return match[1] if match else ""
