"""Reads all current facts of one unit before a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from troop.aws.chaos.balancers import Balancers
from troop.aws.chaos.groups import alarm_states, protected_instances, refreshing
from troop.aws.chaos.state import StateTable
from troop.aws.dynamo import plain
from troop.chaos.facts import Counts, Facts
from troop.chaos.groups import Group
from troop.chaos.policy import effective_policy
from troop.settings import Settings


class Reads(Protocol):
    """The settings and clients that :func:`read_facts` uses."""

    @property
    def settings(self) -> Settings: ...
    @property
    def autoscaling(self) -> Any: ...
    @property
    def cloudwatch(self) -> Any: ...
    @property
    def ec2(self) -> Any: ...
    @property
    def balancers(self) -> Balancers: ...
    @property
    def state(self) -> StateTable: ...


def read_facts(
    reads: Reads,
    unit: str,
    groups: Sequence[Group],
    members: Sequence[Group],
    item: Mapping[str, Any],
    salt: bytes,
    now: datetime,
) -> Facts:
    """Reads the facts of a unit.

    Args:
        groups: those from which an instance is selected.
        members: all groups of the unit: its policy is the strictest of theirs.
        item: the unit's item in ``GroupTags``, in DynamoDB's types.
        salt: the key of the order of instances.
    """
    calendars = reads.settings.calendars
    policy = effective_policy(members, plain(item), reads.settings, lambda c: calendars[c].at(now).day)
    calendar = calendars.get(policy.calendar.value)
    return Facts(
        unit=unit,
        now=now,
        salt=salt,
        settings=reads.settings,
        switch=reads.state.switch(),
        groups=tuple(sorted(groups, key=lambda g: g.name)),
        policy=policy,
        state=reads.state.unit(unit),
        counts=reads.state.counts(calendar.at(now).day) if calendar else Counts(),
        protected_instances=protected_instances(reads.ec2),
        refreshing=refreshing(reads.autoscaling, [g.name for g in groups]),
        alarms=alarm_states(reads.cloudwatch, policy.stop_alarms.value),
        balanced={k: ids for group in groups for k, ids in reads.balancers.healthy(group).items()},
    )
