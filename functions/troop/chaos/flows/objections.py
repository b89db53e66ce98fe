"""Reads what speaks against a fault that was claimed: minutes can pass until it is carried out, and while it lasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.groups import alarm_states, protected_instances, read_groups
from troop.chaos.aws.inside_reads import read_consents
from troop.chaos.aws.termination_protection import is_protected
from troop.chaos.aws.unit_groups import read_members
from troop.chaos.claim_rules import switched_off
from troop.chaos.events import AbandonReason, Event
from troop.chaos.groups import Group
from troop.chaos.guards import (
    CAPS,
    Refusal,
    candidates,
    left_chaos,
    malformed,
    opted_out,
    pass_guards,
    protected,
    protecting_tag,
)
from troop.chaos.injection_rules import Objection
from troop.chaos.inside import no_consent
from troop.chaos.on_demand import guards_of
from troop.chaos.verdict_rules import ALARM
from troop.shared.tags import INSIDE_TAG

LASTING = (protected, malformed, opted_out, left_chaos)
"""The guards that a lasting fault must pass while it lasts. Its unit may be unhealthy then."""


@dataclass(frozen=True)
class Objections:
    """Reads the unit of an event again."""

    reader: AccountReader

    def to_claim(self, event: Event, now: datetime) -> str:
        """Returns the objection to an instance that was claimed, "" for none.

        Raises:
            ClientError, BotoCoreError: it is not known.
        """
        members = read_members(self.reader.autoscaling, event.unit, self.reader.settings.units)
        named = [group for group in members if group.name == event.group]
        if not named:
            return f"{event.group} is no longer a group of {event.unit}"
        item = self.reader.policies.raw(event.unit)
        facts = self.reader.read_unit(event.unit, named, members, item, b"", now, claimed=event)
        # The counts include the claim.
        passed = pass_guards(facts, [guard for guard in guards_of(event) if guard not in CAPS])
        if isinstance(passed, Refusal):
            return f"{passed.reason}: {passed.detail}"
        fit = {i.instance_id for one in passed.groups for i in candidates(passed, one)}
        if event.instance_id not in fit:
            return f"{event.instance_id} is no longer fit to be terminated"
        protected_now = is_protected(self.reader.ec2, event.instance_id)
        return f"{event.instance_id} is protected by EC2 now" if protected_now else ""

    def to_injection(self, event: Event, now: datetime) -> Objection:
        """Returns the objection to a lasting fault that is about to be injected.

        Raises:
            ClientError, BotoCoreError: it is not known.
        """
        if why := self._switch():
            return Objection(why, AbandonReason.SWITCHED_OFF)
        states = alarm_states(self.reader.client("cloudwatch"), event.hypothesis.alarms) if event.hypothesis else {}
        if event.hypothesis and (why := event.hypothesis.objection(states)):
            return Objection(why, AbandonReason.ALARM)
        return Objection(self.to_claim(event, now))

    def to_lasting(self, event: Event, now: datetime) -> Objection:
        """Returns why a lasting fault must end now: chaos is halted or leashed, an alarm of the unit is on, the unit no
        longer takes part, its owner no longer consents, or the group or the instance is protected.

        Raises:
            ClientError, BotoCoreError: it is not known.
        """
        if why := self._switch():
            return Objection(why)
        named = event.hypothesis.alarms if event.hypothesis else ()
        states = alarm_states(self.reader.client("cloudwatch"), named) if named else {}
        if on := [name for name in named if states.get(name) == ALARM]:
            return Objection(f"alarm {on[0]} is on")
        members = read_members(self.reader.autoscaling, event.unit, self.reader.settings.units)
        group = next((one for one in members if one.name == event.group), None)
        if group is None:
            return Objection(f"{event.group} is no longer a group of {event.unit}", absent=True)
        facts = self.reader.read_participation(event.unit, [group], members, self.reader.policies.raw(event.unit), now)
        absent = all(one.instance_id != event.instance_id for one in group.instances)
        passed = pass_guards(facts, LASTING)
        if isinstance(passed, Refusal):
            return Objection(f"{passed.reason}: {passed.detail}", absent=absent)
        if why := no_consent(group):
            return Objection(f"{group.name} {why}", absent=absent)
        if absent:
            return Objection(f"{event.instance_id} is not in {group.name} any more", absent=True)
        if event.instance_id not in read_consents(self.reader.ec2, [group.name]):
            return Objection(f"{event.instance_id} no longer runs with the tag {INSIDE_TAG}")
        return Objection(self.protection(event, group, facts.protected_instances))

    def protection(self, event: Event, group: Group, tagged: frozenset[str]) -> str:
        """Returns why the instance is protected from Troop; "" if it is not.

        Args:
            tagged: the instances with the tag that protects them.
        """
        own = next((one for one in group.instances if one.instance_id == event.instance_id), None)
        if tag := protecting_tag(group):
            return f"{group.name} is tagged {tag} now"
        if event.instance_id in tagged:
            return f"{event.instance_id} is protected by its tag now"
        if own and own.scale_in_protected:
            return f"{event.instance_id} is protected from scale-in now"
        return (
            f"{event.instance_id} is protected by EC2 now" if is_protected(self.reader.ec2, event.instance_id) else ""
        )

    def to_repair(self, event: Event) -> str:
        """Returns why an instance must not be terminated although its fault is not proven to be over: it is protected,
        or its group would not do without it; "" for no reason.

        Raises:
            ClientError, BotoCoreError: it is not known.
        """
        group = next(iter(read_groups(self.reader.autoscaling, [event.group])), None)
        if group is None or all(one.instance_id != event.instance_id for one in group.instances):
            return f"{event.instance_id} is not in {event.group} any more, which would not replace it"
        if why := self.protection(event, group, protected_instances(self.reader.ec2)):
            return why
        served = group.served(Balancers(self.reader.client).healthy(group))
        if all(one.instance_id == event.instance_id for one in served):
            return f"no other healthy instance of {event.group} is in service"
        return ""

    def _switch(self) -> str:
        switch = self.reader.state.switch()
        return switched_off(switch) if switch.halted or switch.leashed else ""
