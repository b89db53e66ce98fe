"""Claims a termination on demand, so that the response names the instance; a workflow carries it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.aws.claim_transaction import ClaimRefused, ClaimTransaction
from troop.chaos.aws.event_table import EventTable
from troop.chaos.aws.groups import read_groups
from troop.chaos.aws.on_demand_executions import OnDemandExecutions
from troop.chaos.aws.request_key import RequestKey
from troop.chaos.aws.termination_protection import without_protected
from troop.chaos.aws.unit_groups import read_members
from troop.chaos.change_calendars import period_at
from troop.chaos.claim_rules import deadline, may_carry_out
from troop.chaos.events import Event, Status, on_demand_id
from troop.chaos.facts import Facts
from troop.chaos.flows import clock_check
from troop.chaos.groups import Group
from troop.chaos.guards import Refusal, Target, candidates, judge
from troop.chaos.inside import injection_of
from troop.chaos.on_demand import ON_DEMAND, UNDER_LOAD, refuse_if_in_flight
from troop.chaos.roll import choose
from troop.chaos.units import unit_of
from troop.faults.crash import CRASH
from troop.shared import moments
from troop.shared.choice import Choice
from troop.shared.errors import MissingGroupError, TroopError

TRIES = 3
"""The number of tries of a claim while its preconditions change between check and claim."""

_CHANGED = frozenset({"policy-changed", "unit-changed"})
_NONE_LEFT = frozenset({"too-small", "unhealthy", "protected-instances"})


class NotAllowedError(TroopError):
    """The deployment accepts no requests to terminate."""

    def __init__(self) -> None:
        super().__init__("this deployment terminates nothing on demand: its setting troop:on_demand is false")


class RefusedError(TroopError):
    """A guard or the claim refuses.

    Attributes:
        reason: one of :data:`troop.chaos.guards.REASONS`, or that of a :class:`ClaimRefused`.
        none_left: the group has no instance that may be terminated.
        desired: the group's desired capacity; None for a refusal by the claim.
    """

    def __init__(self, reason: str, detail: str, none_left: bool = False, desired: int | None = None) -> None:
        self.reason, self.detail, self.none_left, self.desired = reason, detail, none_left, desired
        super().__init__(f"{reason}: {detail}")


class OtherGroupError(TroopError):
    """The key was used for another group of the unit."""


@dataclass(frozen=True)
class TerminationRequest:
    """The event of a request. ``repeated``: it existed before."""

    event: Event
    repeated: bool


@dataclass(frozen=True)
class OnDemand:
    """Claims terminations and starts their workflow.

    Attributes:
        settle: lets the settings' state of the switch take effect; see :mod:`troop.chaos.flows.initial_switch`.
    """

    reader: AccountReader
    claims: ClaimTransaction
    events: EventTable
    executions: OnDemandExecutions
    settle: Callable[[], None]
    clock: Callable[[], datetime]

    def request(
        self, group: str, key: str, received: datetime, choice: Choice | None = None, *, terminates: bool = False
    ) -> TerminationRequest:
        """Claims an instance of the group and starts its workflow. For a repeated key, returns the recorded event, even
        if the group has another unit by now, or is gone.

        If a request ends before its workflow starts, the next request of the same key starts it.

        Args:
            group: name of an Auto Scaling group.
            key: the key of the request, unique within the unit.
            received: when the request arrived, by API Gateway's clock.
            choice: the fault; None for one that the unit's policy allows.
            terminates: whether a request without a choice is for a termination: one that the policy allows, otherwise a
                crash.

        Raises:
            NotAllowedError: the setting ``on_demand`` is off.
            MissingGroupError: there is no such group.
            RefusedError: a guard refuses.
            OtherGroupError: the key belongs to another group of the unit.
            ClockError: this function's clock is wrong, so its claims would have a wrong time.
            ClientError: AWS refused; a retry with the same key is safe.
        """
        if not self.reader.settings.on_demand:
            raise NotAllowedError
        clock_check.check(received, self.clock())
        request_key = RequestKey(group, key)
        event = self._requested_event(request_key)
        repeated = event is not None
        if event is None:
            unit, members, named = self._members(group)
            event = self.events.get(on_demand_id(unit, key))  # of another group of the unit
            repeated = event is not None
            if event is None:
                self.settle()
                event, repeated = self._claimed(unit, request_key, members, [named], choice, terminates=terminates)
        if event.group != group:
            raise OtherGroupError(f"the key {key!r} was used for group {event.group} of the same unit: choose another")
        return self._started(event, repeated)

    def request_under_load(
        self,
        unit: str,
        key: str,
        requested_at: datetime,
        latest: datetime,
        benchmark: str,
        choice: Choice | None = None,
    ) -> TerminationRequest:
        """Claims an instance of the unit for a benchmark that loads it, and starts its workflow. For a repeated key,
        returns the recorded event, as :meth:`request` does.

        Unlike other requests it needs the owner's agreement, and the unit's window must be open.

        Args:
            requested_at: when the caller asked, by its clock.
            latest: after this moment, only an event that exists is returned, and no workflow starts.
            benchmark: the run.
            choice: the fault; None for one that the unit's policy allows.

        Raises:
            NotAllowedError, RefusedError, ClockError, ClientError: as :meth:`request`; a unit without groups, too.
        """
        if not self.reader.settings.on_demand:
            raise NotAllowedError
        clock_check.check(requested_at, self.clock())
        request_key, is_late = RequestKey(unit, key), self.clock() > latest
        event, repeated = self._requested_event(request_key), True
        if event is None:
            if is_late:
                raise RefusedError("too-late", f"no request was claimed until {moments.iso(latest)}")
            members = read_members(self.reader.autoscaling, unit, self.reader.settings.units)
            if not members:
                raise RefusedError("no-groups", f"no Auto Scaling group belongs to the unit {unit}")
            event, repeated = self._claimed(unit, request_key, members, members, choice, benchmark=benchmark)
        return TerminationRequest(event, repeated) if is_late else self._started(event, repeated)

    def _started(self, event: Event, repeated: bool) -> TerminationRequest:
        if event.status is Status.CLAIMED:
            self.executions.start(event.event_id, _work(event))
        return TerminationRequest(event, repeated)

    def _requested_event(self, request_key: RequestKey) -> Event | None:
        """Returns the event of an earlier request with the key of the group."""
        event_id = self.reader.state.raw(request_key.place).get("event_id")
        return self.events.get(event_id["S"]) if event_id else None

    def _members(self, name: str) -> tuple[str, list[Group], Group]:
        """Returns the unit of the named group, all groups of the unit, and the named one. A new group may be the one
        that has opted out.
        """
        for _ in range(TRIES):
            groups = read_groups(self.reader.autoscaling, [name])
            if not groups:
                raise MissingGroupError(name)
            unit = unit_of(name, groups[0].tags, self.reader.settings.units)
            members = read_members(self.reader.autoscaling, unit, self.reader.settings.units)
            # The later read counts: the first one only finds the unit.
            if named := next((group for group in members if group.name == name), None):
                return unit, members, named
        raise RefusedError("unit-changed", f"the unit of {name} keeps changing: check its tags, and try again")

    def _claimed(
        self,
        unit: str,
        request_key: RequestKey,
        members: Sequence[Group],
        named: Sequence[Group],
        choice: Choice | None,
        *,
        terminates: bool = False,
        benchmark: str = "",
    ) -> tuple[Event, bool]:
        """Returns the event, and whether another request with the same key has claimed it in the meantime.

        Args:
            members: all groups of the unit.
            named: those from which an instance is selected.
        """
        event_id, settings = on_demand_id(unit, request_key.key), self.reader.settings
        guards = UNDER_LOAD if benchmark else ON_DEMAND
        for left in range(TRIES - 1, -1, -1):
            now, item = self.clock(), self.reader.policies.raw(unit)
            # The order of instances needs no secret here: it depends on the key, so that a retry finds the same one.
            facts = self.reader.read_unit(unit, named, members, item, event_id.encode(), now, requested=choice)
            if benchmark and facts.has_day:
                name = facts.policy.calendar.value
                facts = replace(facts, change=period_at(self.reader.changes([name], now).get(name, ()), now))
            if terminates and choice is None:
                facts = replace(facts, requested=_termination(facts))
            facts = without_protected(self.reader.ec2, facts, guards)
            last = self.events.get(facts.state.last_event) if facts.state.last_event else None
            verdict = judge(facts, guards)
            if isinstance(verdict, Target):
                verdict = refuse_if_in_flight(last) or verdict
            if isinstance(verdict, Refusal):
                none_left = verdict.reason in _NONE_LEFT and not any(candidates(facts, one) for one in named)
                raise RefusedError(verdict.reason, verdict.detail, none_left, sum(one.desired for one in named))
            event = self._event(event_id, facts, verdict, benchmark)
            if not may_carry_out(event, now):
                raise RefusedError("outside-window", "too close to the end of the window to be carried out")
            try:
                event = self.claims.make(
                    event, item, facts.state, settings.max_per_day, settings.max_in_flight, request_key
                )
            except ClaimRefused as refused:
                # Another request with the same key was faster, or the response to our own claim was lost.
                if (present := self._requested_event(request_key) or self.events.get(event_id)) is not None:
                    return present, True
                if refused.reason not in _CHANGED or not left:
                    raise RefusedError(refused.reason, "it changed during the claim: check it, and try again") from None
                continue
            return event, False
        raise AssertionError("the last try returns or raises")

    def _event(self, event_id: str, facts: Facts, target: Target, benchmark: str) -> Event:
        choice, instance = facts.choice, target.instance
        injection = injection_of(choice, target.group, instance.instance_id, facts.inside)
        takes = choice.takes(injection is not None and injection.installs)
        return Event(
            event_id=event_id,
            unit=facts.unit,
            day=facts.day,
            status=Status.CLAIMED,
            at=facts.now,
            group=target.group.name,
            instance_id=instance.instance_id,
            zone=instance.zone,
            method=choice.name,
            rolled=None,
            probability=None,
            desired=target.group.desired,
            deadline=deadline(facts.now, facts.calendar if benchmark else None, facts.change, takes),
            execution=self.executions.execution(event_id),
            build=instance.build,
            owner=facts.policy.owner.value,
            hypothesis=facts.policy.hypothesis,
            injection=injection,
            benchmark=benchmark,
        )


def _termination(facts: Facts) -> Choice:
    """Returns a termination that the unit's policy allows, otherwise a crash."""
    allowed = [choice for choice in facts.policy.method.value if choice.lasting is None]
    return choose(facts.salt, facts.now.date(), facts.unit, allowed or [Choice(CRASH.name)])


def _work(event: Event) -> dict[str, Any]:
    """Builds the workflow's input from the recorded event: the same for every request with the event's key."""
    return {
        "event_id": event.event_id,
        "unit": event.unit,
        "day": str(event.day),
        "groups": [event.group],
        "tick": moments.iso(event.at),
        "execution": event.execution,
    }
