"""Reads units: pages of groups, and all data about one unit. Every read is bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.change_table import ChangeFilter, ChangeTable
from troop.chaos.aws.decision_queries import DecisionQueries, DecisionRecord
from troop.chaos.aws.event_queries import EventFilter, EventQueries
from troop.chaos.aws.groups import alarm_states, groups_page, groups_tagged, protected_instances, read_groups
from troop.chaos.aws.inside_reads import MOST_LOOKED_UP, reached, read_consents
from troop.chaos.aws.state_table import DeploymentState, PolicyTable, StateTable, read_units
from troop.chaos.changes import Change
from troop.chaos.events import Event
from troop.chaos.facts import Facts, UnitState
from troop.chaos.groups import Group
from troop.chaos.guards import may_be_hit
from troop.chaos.inside import Fitness, Inside, consent_of, fitness
from troop.chaos.outlook import Outlook, outlook, policy_at
from troop.chaos.participation import effective_participation
from troop.chaos.policy import Policy
from troop.chaos.units import LONGEST_GROUP_NAME, unit_of
from troop.shared.aws.dynamo import plain
from troop.shared.malformed import Malformed
from troop.shared.settings import Settings
from troop.shared.state_keys import UNIT
from troop.shared.tags import UNIT_TAG

MOST_GROUPS = 100
"""The most groups of a unit's last decision that are read; further ones are ignored."""

MOST_PAGES = 2
"""The most pages of groups that are read by the tags of the units of a page; further groups are ignored."""

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


def fitness_of(ec2: Any, ssm: Any, state: StateTable, groups: Sequence[Group]) -> dict[str, Fitness]:
    """Returns whether lasting faults can hit groups, by their names, as far as AWS answers.

    No call if no group consents; otherwise two to EC2, one for each 100 instances that consent to DynamoDB, and one for
    each 50 of the first 200 to Systems Manager.
    """
    consenting = [group for group in groups if consent_of(group)]
    inside, spared = None, frozenset[str]()
    with suppress(BotoCoreError, ClientError):  # reading and changing a unit must still work
        if consenting:
            spared = protected_instances(ec2)
            consents = read_consents(ec2, [group.name for group in consenting])
            left = [i.instance_id for group in consenting for i in group.instances if may_be_hit(i, spared)]
            left = [one for one in left if one in consents][:MOST_LOOKED_UP]
            hits = state.hits(left)
            inside = Inside(consents, hits, reached(ssm, [one for one in left if one not in hits]))
    return {
        group.name: fitness(group, [i.instance_id for i in group.instances if may_be_hit(i, spared)], inside)
        for group in groups
    }


@dataclass(frozen=True)
class GroupRow:
    """A group in a listing, and its unit.

    Attributes:
        policy: this group's contribution to its unit, whose other groups can be stricter; see
            :func:`troop.chaos.participation.effective_participation`.
        outlook: the unit's, from all its groups.
        members: all groups of the unit.
        unit_policy: the unit's, as ``policy``.
    """

    group: Group
    unit: str
    policy: Policy
    state: UnitState
    outlook: Outlook
    members: tuple[Group, ...]
    unit_policy: Policy


@dataclass(frozen=True)
class UnitView:
    """All data about a unit.

    Attributes:
        known: whether the unit has a group, a decision, an event or a termination; an item alone may precede its group,
            or be misspelled.
        policy: the effective one, see :func:`troop.chaos.participation.effective_participation`.
        item: the unit's item in plain values, empty if there is none.
        outlook: see :func:`troop.chaos.outlook.outlook`.
        events, changes: the last few, newest first.
        malformed: decisions, events and changes among them that cannot be read.
    """

    unit: str
    known: bool
    groups: tuple[Group, ...]
    policy: Policy
    item: Mapping[str, Any]
    state: UnitState
    outlook: Outlook
    decision: DecisionRecord | None
    events: tuple[Event, ...]
    changes: tuple[Change, ...]
    malformed: tuple[Malformed, ...] = ()


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
        """Returns at most ``limit`` (up to 50) groups, and the token of the next page.

        Two calls, and those for the other groups of the units, see :meth:`_members`. Omits Troop's own fleets, which
        have no unit.

        Raises:
            BadToken: the token is not from an earlier page, or has expired.
        """
        listed, following = groups_page(self.autoscaling, limit, token)
        groups = [group for group in listed if not group.is_own_fleet]
        units = {group.name: self._unit_of(group) for group in groups}
        members = self._members(set(units.values()), groups)
        items, states = read_units(self.policies, self.state, units.values())
        deployment = self._deployment(now)
        seen = {
            unit: self._seen(unit, members[unit], items.get(unit, {}), states.get(unit, UnitState()), deployment, now)
            for unit in members
        }
        rows = []
        for group in groups:
            unit = units[group.name]
            near = deployment.strays.near.get(unit, ())
            own = policy_at([group], items.get(unit, {}), self.settings, now, near)
            policy, state, outlook_of_unit = seen[unit]
            rows.append(
                GroupRow(
                    group=group,
                    unit=unit,
                    policy=effective_participation([group], own),
                    state=state,
                    outlook=outlook_of_unit,
                    members=members[unit],
                    unit_policy=policy,
                )
            )
        return rows, following

    def view(self, unit: str, now: datetime) -> UnitView:
        """Returns everything about a unit, which may be unknown. Two items, one call for the deployment's, three
        queries, and the calls for its groups, see :meth:`_members`.
        """
        item = plain(self.policies.raw(unit))
        decided = self.decisions.unit_page(unit, None, 1)
        decision = next(iter(decided.decisions), None)
        groups = self._members({unit}, [], {unit: decision})[unit]
        policy, state, outlook_of_unit = self._seen(
            unit, groups, item, self.state.unit_state(unit), self._deployment(now), now
        )
        events = self.events.page(EventFilter(unit), LATEST)
        changes = self.changes.page(ChangeFilter(UNIT + unit), LATEST)
        malformed = (*decided.malformed, *events.malformed, *changes.malformed)
        return UnitView(
            unit=unit,
            known=bool(groups or decision or events.events or malformed or state != UnitState()),
            groups=groups,
            policy=policy,
            item=item,
            state=state,
            outlook=outlook_of_unit,
            decision=decision,
            events=events.events,
            changes=changes.changes,
            malformed=malformed,
        )

    def _deployment(self, now: datetime) -> DeploymentState:
        return self.state.deployment(calendar.at(now).day for calendar in self.settings.calendars.values())

    def _seen(
        self,
        unit: str,
        groups: tuple[Group, ...],
        item: Mapping[str, Any],
        state: UnitState,
        deployment: DeploymentState,
        now: datetime,
    ) -> tuple[Policy, UnitState, Outlook]:
        """Returns a unit's policy with its effective participation, its state, and its outlook."""
        near = deployment.strays.near.get(unit, ())
        policy = policy_at(groups, item, self.settings, now, near)
        facts = Facts(
            unit=unit,
            now=now,
            salt=b"",
            settings=self.settings,
            switch=deployment.switch,
            groups=groups,
            policy=policy,
            state=state,
            counts=deployment.counts,
        )
        return effective_participation(groups, policy), state, outlook(facts, item)

    def responsible(self, unit: str, now: datetime) -> str:
        """Returns the owner of a unit by its item or the tags of its groups; "" if it has none, or if the groups cannot
        be read, because no change may fail for that. One item, and the calls for its groups, see :meth:`_members`, if
        the item names no owner.
        """
        item = plain(self.policies.raw(unit))
        groups: tuple[Group, ...] = ()
        if not item.get("owner"):
            with suppress(BotoCoreError, ClientError):
                groups = self._members({unit}, [])[unit]
        return policy_at(groups, item, self.settings, now).owner.value

    def owner(self, name: str) -> str | None:
        """Returns the unit of the group of that name; None if there is no such group, or it is one of Troop's own
        fleets. One call.
        """
        groups = read_groups(self.autoscaling, [name]) if len(name) <= LONGEST_GROUP_NAME else []
        units = (unit_of(group.name, group.tags, self.settings.units) for group in groups if not group.is_own_fleet)
        return next(units, None)

    def _members(
        self,
        units: AbstractSet[str],
        known: Sequence[Group],
        decisions: Mapping[str, DecisionRecord | None] | None = None,
    ) -> dict[str, tuple[Group, ...]]:
        """Returns all groups of units, in order of their names.

        A group belongs to a unit by its tag (at most MOST_PAGES calls), by its name, or by a pattern. Auto Scaling has
        no globs, so the last decision names a pattern's groups: a query for each such unit, and a call for 50 names.

        Args:
            known: groups that are read already.
            decisions: the last one by unit, if they are read already.
        """
        if not units:
            return {}
        by_name = {group.name: group for group in known}
        tagged = groups_tagged(self.autoscaling, UNIT_TAG, units, MOST_PAGES)
        by_name |= {group.name: group for group in tagged}
        names = {unit for unit in units if len(unit) <= LONGEST_GROUP_NAME}
        for unit in units & {named for _, named in self.settings.units}:
            decision = decisions.get(unit) if decisions is not None else self.decisions.latest(unit)
            names |= set(decision.groups[:MOST_GROUPS]) if decision else set()
        if missing := sorted(names - by_name.keys()):
            by_name |= {group.name: group for group in read_groups(self.autoscaling, missing)}
        groups: dict[str, list[Group]] = {unit: [] for unit in units}
        for _, group in sorted(by_name.items()):
            if not group.is_own_fleet and (unit := self._unit_of(group)) in groups:
                groups[unit].append(group)
        return {unit: tuple(members) for unit, members in groups.items()}

    def _unit_of(self, group: Group) -> str:
        return unit_of(group.name, group.tags, self.settings.units)
