"""Reads units: pages of groups, and all data about one unit. Every read is bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.chaos.changes import ChangeTable
from troop.aws.chaos.decision_queries import Decided, DecisionQueries
from troop.aws.chaos.event_queries import EventFilter, EventQueries
from troop.aws.chaos.groups import alarm_states, groups_page, groups_tagged, read_groups
from troop.aws.chaos.state import PolicyTable, StateTable, read_units
from troop.aws.dynamo import plain
from troop.chaos.changes import Change
from troop.chaos.events import Event
from troop.chaos.facts import UnitState
from troop.chaos.groups import Group
from troop.chaos.outlook import next_possible, policy_at
from troop.chaos.participation import effective_participation
from troop.chaos.policy import Policy
from troop.chaos.units import LONGEST_GROUP_NAME, unit_of
from troop.settings import Settings
from troop.state_keys import UNIT
from troop.tags import UNIT_TAG

MOST_GROUPS = 100
"""The most groups of a unit that are read; further ones are ignored."""

LATEST = 5
"""The number of events and changes in the view of a unit."""


def missing_alarms(cloudwatch: Any, names: Collection[str]) -> list[str] | None:
    """Returns the names without an alarm, each of which prevents its unit's terminations; None if CloudWatch does not
    answer.

    One call for 100 names, none without names.
    """
    try:
        states = alarm_states(cloudwatch, names)
    except (BotoCoreError, ClientError):  # reading and changing a unit must still work
        return None
    return [name for name in names if name not in states]


@dataclass(frozen=True)
class GroupRow:
    """A group in a listing. ``policy`` is this group's contribution to its unit, whose other groups can be stricter;
    see :func:`troop.chaos.participation.effective_participation`. ``item``: the unit's, in plain values, empty if there
    is none. ``near``: see :func:`troop.chaos.policy.effective_policy`.
    """

    group: Group
    unit: str
    policy: Policy
    state: UnitState
    item: Mapping[str, Any] = field(default_factory=dict)
    near: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitView:
    """All data about a unit.

    Attributes:
        known: whether the unit has a group, a decision, an event or a termination; an item alone may precede its group,
            or be misspelled.
        policy: the effective one, see :func:`troop.chaos.participation.effective_participation`.
        item: the unit's item in plain values, empty if there is none.
        next_possible: see :func:`troop.chaos.outlook.next_possible`.
        events, changes: the last few, newest first.
    """

    unit: str
    known: bool
    groups: tuple[Group, ...]
    policy: Policy
    item: Mapping[str, Any]
    state: UnitState
    next_possible: datetime | None
    decision: Decided | None
    events: tuple[Event, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Units:
    """Reads units and their groups."""

    settings: Settings
    autoscaling: Any
    policies: PolicyTable
    state: StateTable
    decisions: DecisionQueries
    events: EventQueries
    changes: ChangeTable

    def page(self, limit: int, token: str | None, now: datetime) -> tuple[list[GroupRow], str | None]:
        """Returns at most ``limit`` (up to 50) groups, and the token of the next page. Two calls.

        Omits Troop's own fleets, which have no unit.

        Raises:
            BadToken: the token is not from an earlier page, or has expired.
        """
        members, following = groups_page(self.autoscaling, limit, token)
        groups = [group for group in members if not group.is_own_fleet]
        units = {group.name: unit_of(group.name, group.tags, self.settings.units) for group in groups}
        items, states = read_units(self.policies, self.state, units.values())
        near = self.state.strays().near
        rows = [
            GroupRow(
                group=group,
                unit=units[group.name],
                policy=effective_participation(
                    [group],
                    policy_at(
                        [group],
                        items.get(units[group.name], {}),
                        self.settings,
                        now,
                        near.get(units[group.name], ()),
                    ),
                ),
                state=states.get(units[group.name], UnitState()),
                item=items.get(units[group.name], {}),
                near=near.get(units[group.name], ()),
            )
            for group in groups
        ]
        return rows, following

    def view(self, unit: str, now: datetime) -> UnitView:
        """Returns everything about a unit, which may be unknown. Two items, three queries, at most four calls for its
        groups.
        """
        item = plain(self.policies.raw(unit))
        state = self.state.unit(unit)
        near = self.state.strays().near.get(unit, ())
        decision = self.decisions.latest(unit)
        groups = self._groups(unit, decision)
        events = self.events.page(EventFilter(unit), LATEST).events
        return UnitView(
            unit=unit,
            known=bool(groups or decision or events or state != UnitState()),
            groups=groups,
            policy=effective_participation(groups, policy_at(groups, item, self.settings, now, near)),
            item=item,
            state=state,
            next_possible=next_possible(groups, item, self.settings, state, now, near),
            decision=decision,
            events=events,
            changes=tuple(self.changes.latest(UNIT + unit, LATEST)),
        )

    def owner(self, name: str) -> str | None:
        """Returns the unit of the group of that name; None if there is no such group, or it is one of Troop's own
        fleets. One call.
        """
        groups = read_groups(self.autoscaling, [name]) if len(name) <= LONGEST_GROUP_NAME else []
        units = (unit_of(group.name, group.tags, self.settings.units) for group in groups if not group.is_own_fleet)
        return next(units, None)

    def _groups(self, unit: str, decision: Decided | None) -> tuple[Group, ...]:
        """Returns the last decision's groups that still exist; without any, those with the unit's tag, or the one of
        that name.
        """
        groups: list[Group] = []
        if decision and decision.groups:
            groups = self._of(unit, read_groups(self.autoscaling, decision.groups[:MOST_GROUPS]))
        if not groups:
            groups = self._of(unit, groups_tagged(self.autoscaling, UNIT_TAG, unit, MOST_GROUPS))
        if not groups and len(unit) <= LONGEST_GROUP_NAME:
            groups = self._of(unit, read_groups(self.autoscaling, [unit]))
        return tuple(sorted(groups, key=lambda group: group.name))

    def _of(self, unit: str, groups: list[Group]) -> list[Group]:
        patterns = self.settings.units
        return [g for g in groups if not g.is_own_fleet and unit_of(g.name, g.tags, patterns) == unit]
