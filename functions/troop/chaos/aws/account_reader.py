"""Reads the facts of units: of all units for a tick or a plan, and of one unit for a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.balancers import Balancers, BalancersOfATick
from troop.chaos.aws.change_calendars import read_period, read_periods
from troop.chaos.aws.groups import alarm_states, protected_instances, read_groups, refreshing
from troop.chaos.aws.inside_reads import first_reached, read_consents
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.aws.termination_protection import LimitedEc2, UnknownProtectionError, without_protected
from troop.chaos.change_calendars import Changes
from troop.chaos.events import Event
from troop.chaos.facts import Account, Counts, Facts
from troop.chaos.groups import Group
from troop.chaos.guards import BEFORE_CAPS, Refusal, candidates, pass_guards
from troop.chaos.inside import Inside, consent_of
from troop.chaos.policy import effective_policy
from troop.chaos.roll import by_rank
from troop.shared.aws.dynamo import plain
from troop.shared.choice import Choice
from troop.shared.settings import Settings


@dataclass(frozen=True)
class AccountReader:
    """Reads the account and the tables ``GroupTags`` and ``State``.

    Attributes:
        client: returns a service's client; only those that a read needs are created.
    """

    settings: Settings
    client: Callable[[str], Any]
    policies: PolicyTable
    state: StateTable

    @property
    def autoscaling(self) -> Any:
        return self.client("autoscaling")

    @property
    def ec2(self) -> Any:
        return self.client("ec2")

    def account(self) -> Account:
        """Reads all groups, both tables, and which instances are protected; with the setting, also which may have
        faults inside.
        """
        view, allowed = self.state.view(), self.settings.inside_instances
        return Account(
            groups=read_groups(self.autoscaling),
            items=self.policies.all(),
            states=view.units,
            switch=view.switch,
            counts=view.counts,
            protected_instances=protected_instances(self.ec2),
            strays=view.strays,
            inside=Inside(read_consents(self.ec2), view.hits) if allowed else Inside(),
        )

    def changes(self, names: Iterable[str], now: datetime) -> Changes:
        """Reads the current periods of the SSM Change Calendars that these calendars name; 1 call for each calendar
        with one. One that cannot be read counts as closed.
        """
        named = self._change_calendars(names)
        return {name: (read_period(self.client("ssm"), one, now),) for name, one in named.items()}

    def changes_between(self, first: datetime, last: datetime) -> Changes:
        """Reads all periods that a forecast needs, by :func:`read_periods`; a call for each."""
        named = self._change_calendars(self.settings.calendars)
        return {name: read_periods(self.client("ssm"), one, first, last) for name, one in named.items()}

    def _change_calendars(self, names: Iterable[str]) -> dict[str, str]:
        named = {name: self.settings.calendars[name].change_calendar for name in names}
        return {name: one for name, one in named.items() if one}

    def details_reader(self) -> Callable[[list[Facts]], list[Facts]]:
        """Returns a function that adds details to the facts of units that are due: instance refreshes, one call a
        group; the states of their alarms; the health in the traffic sources, one call for each; for a lasting fault,
        which candidates Systems Manager reaches, one or a few calls a unit; and which candidates EC2 protects, two or a
        few more calls a unit.

        The function is for one tick or plan: it limits the calls, and makes none after an error that affects all units.
        """
        return partial(self._details, BalancersOfATick(Balancers(self.client)), LimitedEc2(self.ec2))

    def _details(self, balancers: BalancersOfATick, ec2: LimitedEc2, due: list[Facts]) -> list[Facts]:
        under_way = refreshing(self.autoscaling, sorted({g.name for f in due for g in f.groups}))
        states = _alarm_states(self.client("cloudwatch"), [f.policy.hypothesis.alarms for f in due])
        seen = [replace(f, refreshing=under_way, alarms=states) for f in due]
        return [_without_protected(ec2, self._reached(_balanced(balancers, f))) for f in seen]

    def _reached(self, facts: Facts) -> Facts:
        """Adds which candidates for a lasting fault Systems Manager reaches. One unit about which it cannot be asked
        must not fail the tick of all others.
        """
        passed = pass_guards(facts, BEFORE_CAPS)
        if facts.choice.lasting is None or isinstance(passed, Refusal):
            return facts
        try:
            return _with_reachable(self.client("ssm"), facts, passed.groups)
        except (BotoCoreError, ClientError) as error:
            return replace(facts, inside=replace(facts.inside, unread=f"{type(error).__name__}: {error}"))

    def read_unit(
        self,
        unit: str,
        groups: Sequence[Group],
        members: Sequence[Group],
        item: Mapping[str, Any],
        salt: bytes,
        now: datetime,
        requested: Choice | None = None,
        claimed: Event | None = None,
    ) -> Facts:
        """Reads all current facts of a unit, before a claim. An error is raised, as a claim needs every fact.

        Args:
            groups: the groups from which an instance is selected.
            members: all groups of the unit: its policy is the strictest of theirs.
            item: the unit's item in ``GroupTags``, in DynamoDB's types.
            salt: the key of the order of instances.
            requested: the fault that somebody requests; None for the fault of the day.
            claimed: the event of the unit that is already claimed: its fault counts as requested, and its record of the
                instance's lasting fault does not count. None before the claim.
        """
        calendars, balancers = self.settings.calendars, Balancers(self.client)
        near = self.state.strays().near.get(unit, ())
        policy = effective_policy(members, plain(item), self.settings, lambda c: calendars[c].at(now).day, near)
        calendar = calendars.get(policy.calendar.value)
        if claimed:
            parameters = claimed.injection.parameters if claimed.injection else {}
            requested = Choice(claimed.method, tuple(parameters.items()))
        facts = Facts(
            unit=unit,
            now=now,
            salt=salt,
            settings=self.settings,
            switch=self.state.switch(),
            groups=tuple(sorted(groups, key=lambda g: g.name)),
            policy=policy,
            state=self.state.unit_state(unit),
            counts=self.state.counts(calendar.at(now).day) if calendar else Counts(),
            protected_instances=protected_instances(self.ec2),
            refreshing=refreshing(self.autoscaling, [g.name for g in groups]),
            alarms=alarm_states(self.client("cloudwatch"), policy.hypothesis.alarms),
            balanced={k: ids for group in groups for k, ids in balancers.healthy(group).items()},
            requested=requested,
        )
        return self._with_inside(facts, claimed)

    def read_participation(
        self, unit: str, groups: Sequence[Group], members: Sequence[Group], item: Mapping[str, Any], now: datetime
    ) -> Facts:
        """Reads whether a unit takes part, and what is protected: nothing that the health of its groups can change.
        Args as for :meth:`read_unit`.
        """
        calendars, near = self.settings.calendars, self.state.strays().near.get(unit, ())
        return Facts(
            unit=unit,
            now=now,
            salt=b"",
            settings=self.settings,
            switch=self.state.switch(),
            groups=tuple(groups),
            policy=effective_policy(members, plain(item), self.settings, lambda c: calendars[c].at(now).day, near),
            state=self.state.unit_state(unit),
            counts=Counts(),
            protected_instances=protected_instances(self.ec2),
        )

    def _with_inside(self, facts: Facts, claimed: Event | None) -> Facts:
        consenting = [group for group in facts.groups if consent_of(group)]
        if facts.policy.problems or not (consenting and self.settings.inside_instances and facts.choice.lasting):
            return facts
        consents = read_consents(self.ec2, [group.name for group in consenting])
        hits = self.state.hits(sorted(consents))
        if claimed and hits.get(claimed.instance_id) == claimed.event_id:
            del hits[claimed.instance_id]
        facts = replace(facts, inside=Inside(consents, hits))
        if claimed:
            reached = first_reached(self.client("ssm"), [claimed.instance_id])
            return replace(facts, inside=replace(facts.inside, reachable=reached))
        return _with_reachable(self.client("ssm"), facts, consenting)


def _with_reachable(ssm: Any, facts: Facts, groups: Iterable[Group]) -> Facts:
    ranked = by_rank(facts.salt, facts.day, (i for group in groups for i in candidates(facts, group)))
    reached = first_reached(ssm, [instance.instance_id for instance in ranked])
    return replace(facts, inside=replace(facts.inside, reachable=reached))


def _alarm_states(cloudwatch: Any, named: list[tuple[str, ...]]) -> dict[str, str]:
    """Returns states by name of the alarms that units have named. If CloudWatch rejects a name, each unit's alarms are
    read separately. Units whose alarms cannot be read are skipped, because an unknown state is not OK.
    """
    try:
        return alarm_states(cloudwatch, {name for names in named for name in names})
    except ClientError as error:
        if not _invalid(error):
            raise
    states: dict[str, str] = {}
    for names in named:
        try:
            states |= alarm_states(cloudwatch, names)
        except ClientError as error:
            if not _invalid(error):
                raise
    return states


def _invalid(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in ("ValidationError", "InvalidParameterValue")


def _balanced(balancers: BalancersOfATick, facts: Facts) -> Facts:
    """Adds the health in the traffic sources, or why it could not be read. Makes no call for a unit that is refused by
    now.
    """
    if isinstance(pass_guards(facts, BEFORE_CAPS), Refusal):
        return facts
    healthy, unread = balancers.healthy(facts.groups)
    return replace(facts, unread=unread) if unread else replace(facts, balanced=healthy)


def _without_protected(ec2: LimitedEc2, facts: Facts) -> Facts:
    # The claim checks again, and terminates nothing if it cannot read this. One instance that this role cannot read
    # must not fail the tick of all other units.
    with suppress(BotoCoreError, ClientError, UnknownProtectionError):
        return without_protected(ec2, facts, BEFORE_CAPS)
    return facts
