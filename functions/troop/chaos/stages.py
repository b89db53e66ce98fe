"""Defines the stages of a recovery: when the group noticed the loss, launched, and had its capacity again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
