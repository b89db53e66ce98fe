"""Runs a tick: decides for every unit of a calendar, and records every decision before any termination."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.aws.decision_table import DecisionTable
from troop.chaos.aws.event_table import EventTable
from troop.chaos.aws.stray_table import StrayTable
from troop.chaos.decisions import TERMINATE, Decision, calendar_of, decide_all
from troop.chaos.events import Event, Status
from troop.chaos.facts import Account, UnitState, facts_of_units
from troop.chaos.flows.clock_check import is_stale
from troop.chaos.inside import Inside, injection_of
from troop.chaos.strays import StrayRecord, find, next_record
from troop.chaos.units import by_unit
from troop.shared import moments
from troop.shared.errors import TroopError
from troop.shared.garbage import without_collections


class UnknownCalendarError(TroopError):
    """A schedule names a calendar that the settings do not have."""


@dataclass(frozen=True)
class TickResult:
    """What a tick has done.

    Attributes:
        decisions: the decisions about every unit on its calendar; none for a tick that is too old.
        work: one work item for each instance to terminate.
        strays: the stray items of all calendars that it found.
    """

    decisions: list[Decision]
    work: list[dict[str, Any]]
    strays: StrayRecord = field(default_factory=StrayRecord)


@dataclass(frozen=True)
class Tick:
    """Decides for a tick. Calls ``salt`` only if there is a decision to make.

    Attributes:
        settle: lets the settings' state of the switch take effect; see :mod:`troop.chaos.flows.initial_switch`.
    """

    reader: AccountReader
    decisions: DecisionTable
    events: EventTable
    strays: StrayTable
    settle: Callable[[], None]
    salt: Callable[[], bytes]
    clock: Callable[[], datetime]

    def run(self, calendar: str, execution: str, started: datetime) -> TickResult:
        """Decides for all units on one calendar, as of the start of the execution.

        Raises:
            UnknownCalendarError: the settings have no such calendar.
        """
        settings = self.reader.settings
        if calendar not in settings.calendars:
            raise UnknownCalendarError(
                f"there is no calendar {calendar!r}: must be one of {', '.join(settings.calendars)}"
            )
        if is_stale(started, self.clock()):
            return TickResult([], [])
        self.settle()
        account = replace(self.reader.account(), changes=self.reader.changes([calendar], started))
        salt = self.salt()
        with without_collections():
            facts = (f for f in facts_of_units(account, settings, salt, started) if calendar_of(f) == calendar)
            decisions = decide_all(facts, self.reader.details_reader())
        self.decisions.write(decisions, settings.calendars[calendar].at(started).day)
        for decision in decisions:
            if decision.reason == "leashed" and decision.target and not _on_record(decision, account.states):
                self.events.record_leashed(_leashed_event(decision, execution, account.inside))
        work = [_work(d, execution) for d in decisions if d.reason == TERMINATE]
        return TickResult(decisions, work, self._record_strays(account, started))

    def _record_strays(self, account: Account, started: datetime) -> StrayRecord:
        units = by_unit(account.groups, self.reader.settings.units)
        strays = find(account.items, units)
        record = next_record(account.strays, strays, account.items, units, started)
        if record is None:
            return account.strays
        self.strays.write(record)
        return record


def _on_record(decision: Decision, states: Mapping[str, UnitState]) -> bool:
    return decision.unit in states and states[decision.unit].leashed_day == decision.day


def _work(decision: Decision, execution: str) -> dict[str, Any]:
    return {
        "event_id": decision.event_id,
        "unit": decision.unit,
        "day": str(decision.day),
        "groups": list(decision.groups),
        "tick": moments.iso(decision.tick),
        "execution": execution,
    }


def _leashed_event(decision: Decision, execution: str, inside: Inside) -> Event:
    assert decision.target is not None
    assert decision.choice is not None
    assert decision.day is not None
    group, instance, choice = decision.target.group, decision.target.instance, decision.choice
    happened = f"had the fault {choice.text}" if choice.lasting else "been terminated"
    return Event(
        event_id=decision.event_id,
        unit=decision.unit,
        day=decision.day,
        status=Status.LEASHED,
        at=decision.tick,
        group=group.name,
        instance_id=instance.instance_id,
        zone=instance.zone,
        method=choice.name,
        rolled=decision.rolled,
        probability=float(decision.policy.probability.value),
        desired=group.desired,
        execution=execution,
        detail=f"would have {happened}, were the deployment not leashed",
        owner=decision.policy.owner.value,
        injection=injection_of(choice, group, instance.instance_id, inside),
    )
