"""Defects of verdicts and of the deployment's own halt, and with them all that there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.model import mutants, mutants_of_recoveries
from tests.model.alarms import ALARM, NAMES, OK
from tests.model.bus import Delivery
from tests.model.mutants import Focus, Mutant, Patch
from tests.model.people import People
from tests.model.world import World
from troop.chaos import self_halt, verdict_rules
from troop.chaos.aws.alarm_history import AlarmHistory
from troop.chaos.aws.broken_units import BrokenUnits
from troop.chaos.aws.claim_transaction import ClaimTransaction
from troop.chaos.aws.event_table import EventTable
from troop.chaos.events import Event, Status
from troop.chaos.flows import alarm_stop, judgement, recovery_check
from troop.chaos.flows.alarm_stop import AlarmStop
from troop.chaos.flows.sweep import Sweep
from troop.chaos.flows.termination import Termination
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.recovery import assess
from troop.chaos.self_halt import BrokenEvent
from troop.chaos.verdict import AlarmRecord, AlarmState, VerdictValue
from troop.shared.state_keys import SELF_HALT


def flaps_are_not_seen(patch: Patch) -> None:
    """An alarm is judged by its state now."""

    def record(self: AlarmHistory, name: str, alarm: Any, since: datetime, *rest: datetime) -> tuple[AlarmRecord, bool]:
        states = (AlarmState(since, alarm.state),) if alarm else ()
        return AlarmRecord(name, states, "" if alarm else "there is no such alarm"), False

    patch.setattr(AlarmHistory, "record", record)


def changes_of_alarms_are_not_seen(patch: Patch) -> None:
    def record(self: AlarmHistory, name: str, alarm: Any, *span: datetime) -> tuple[AlarmRecord, bool]:
        seen, is_recent = real(self, name, alarm, *span)
        return replace(seen, doubt="" if alarm else "there is no such alarm"), is_recent

    real = AlarmHistory.record
    patch.setattr(AlarmHistory, "record", record)


def missing_data_is_good_news(patch: Patch) -> None:
    patch.setattr(verdict_rules, "_doubts", lambda records, since, until: ())


def alarms_get_no_time_to_go_off(patch: Patch) -> None:
    patch.setattr(judgement, "settles_at", lambda recovered_at, needs: recovered_at)


def most_time_counts_as_least(patch: Patch) -> None:
    """The recovery took longer than allowed, at most."""

    def failures(event: Event, hypothesis: Hypothesis) -> Iterator[str]:
        bounds, limit = verdict_rules.recovery_bounds(event), hypothesis.recovery_within
        if event.status is Status.UNRECOVERED or (bounds and limit is not None and bounds[1] > limit):
            yield "too long"

    patch.setattr(verdict_rules, "_failures", failures)


def least_time_is_from_the_end_of_a_check(patch: Patch) -> None:
    patch.setattr(
        recovery_check,
        "assess",
        lambda event, group, healthy, began, now, timeout: assess(event, group, healthy, now, now, timeout),
    )


def sweeps_give_no_verdict(patch: Patch) -> None:
    patch.setattr(Sweep, "_judge", lambda self, event_id, started: None)


def broken_units_stay_in_chaos(patch: Patch) -> None:
    def taken_out(self: EventTable, event: Event, left_for: str) -> dict[str, Any]:
        part = real(self, event, left_for)
        if left_for == "broken":
            part["Update"]["Key"] = {"key": {"S": "unit#" + event.unit + "?"}}
        return part

    real = EventTable._unit_taken_out
    patch.setattr(EventTable, "_unit_taken_out", taken_out)


def shared_alarms_count_for_each_unit(patch: Patch) -> None:
    def causes(broken: Sequence[BrokenEvent]) -> list[tuple[BrokenEvent, ...]]:
        return [(event,) for event in broken]

    patch.setattr(self_halt, "causes", causes)


def hours_never_end(patch: Patch) -> None:
    patch.setattr(self_halt, "WINDOW", timedelta(days=1))


def verdicts_at_one_time_count_once(patch: Patch) -> None:
    def broken(self: BrokenUnits, version: Any, events: Any) -> dict[str, Any]:
        body = real(self, version, events)["Update"]
        return {"Update": mutants.tidy({**body, "ConditionExpression": "attribute_not_exists(zzz)"})}

    real = BrokenUnits._broken
    patch.setattr(BrokenUnits, "_broken", broken)


def alarms_are_read_only_for_the_claim(patch: Patch) -> None:
    patch.setattr(Termination, "_alarm", lambda self, event: "an alarm went off" if event.abort else "")


def alarms_are_not_heard(patch: Patch) -> None:
    patch.setattr(AlarmStop, "went_off", lambda self, alarm, at: [])


def old_alarms_stop_new_events(patch: Patch) -> None:
    patch.setattr(alarm_stop, "GRACE", timedelta(days=1))


def stopped_events_are_attempted_again(patch: Patch) -> None:
    def step(self: EventTable, event: Event, update: str, condition: str, values: dict[str, Any], **more: str) -> Any:
        if "attempts" in update:
            condition = condition.replace(" AND attribute_not_exists(#abort)", "")
        return real(self, event, update, condition, values, **more)

    real = EventTable.step
    patch.setattr(EventTable, "step", step)
    read = Termination._alarm
    patch.setattr(Termination, "_alarm", lambda self, event: read(self, replace(event, abort=None)))


def own_halt_is_not_in_the_claim(patch: Patch) -> None:
    mutants._without(patch, ClaimTransaction, "_not_halted_by_itself", "attribute_not_exists(#key)")


def good_verdicts_end_the_halt(patch: Patch) -> None:
    def end(self: EventTable, event: Event, parts: list[dict[str, Any]]) -> Event:
        if event.verdict and event.verdict.value is VerdictValue.HELD:
            parts = [*parts, {"Delete": {"TableName": self.state, "Key": {"key": {"S": SELF_HALT}}}}]
        return real(self, event, parts)

    real = EventTable._end
    patch.setattr(EventTable, "_end", end)


def _expecting(world: World) -> None:
    """Every unit has alarms, and little time."""
    for unit in ("web", "db", "api"):
        item = world.dynamo.item("GroupTags", unit) | {"unit": {"S": unit}}
        item |= {"success_alarms": {"S": world.dice.choice(NAMES)}, "recovery_within": {"N": "60"}}
        world.dynamo.write("GroupTags", item)


def _halting(after: int) -> Focus:
    """The deployment halts itself after so many causes."""

    def focus(world: World) -> None:
        _expecting(world)
        world.settings = replace(world.settings, halt_after_broken=after)
        object.__setattr__(world.events, "halt_after", after)

    return focus


def _shared(world: World) -> None:
    """All units have one alarm, which goes off with every termination."""
    _halting(2)(world)
    for unit in ("web", "db", "api"):
        world.dynamo.write("GroupTags", {"unit": {"S": unit}, "success_alarms": {"S": "errors"}})
    world.suffers = lambda world, unit: _goes_off(world, "errors")


def _at_once(world: World) -> None:
    """Each unit has an alarm of its own, and all go off at once."""
    _halting(2)(world)
    mutants.faults(slow=0.5)(world)
    alarms = {"web": "web-slow", "db": "db-slow", "api": "errors"}
    for unit, name in alarms.items():
        world.dynamo.write("GroupTags", {"unit": {"S": unit}, "success_alarms": {"S": name}})
    world.suffers = lambda world, unit: _goes_off(world, *alarms.values())


def _goes_off(world: World, *names: str) -> None:
    for name in names:
        for after, state in ((225.0, ALARM), (245.0, OK)):
            world.stage.at(world.stage.now + after, partial(world.cloudwatch.set, name, state))


def _alarmed(world: World) -> None:
    """Alarms go off all the time, also between a claim and its attempt."""
    _expecting(world)
    people = People(world, 40)
    people.changes = (people.alarm,)
    world.people = people.change
    mutants.faults(people=0.2, call=0.15)(world)


def _heard(world: World) -> None:
    mutants_of_recoveries._reliable(world)
    _shared(world)


def _late(world: World) -> None:
    """Alarms go off all the time, and their events are late."""
    _alarmed(world)
    world.delivery = Delivery(0.0, 0.2, 0.8)


def _halting_slowly(world: World) -> None:
    _slow(world)
    _halting(1)(world)


def _slow(world: World) -> None:
    _expecting(world)
    mutants.faults(slow=0.5)(world)


def _aborting(world: World) -> None:
    mutants.faults(call=0.15, abort=0.9)(world)
    _expecting(world)


MUTANTS: dict[Mutant, Focus] = mutants_of_recoveries.MUTANTS | {
    flaps_are_not_seen: _expecting,
    changes_of_alarms_are_not_seen: mutants.only("change_alarm", "delete_alarm"),
    missing_data_is_good_news: _expecting,
    alarms_get_no_time_to_go_off: _expecting,
    most_time_counts_as_least: _expecting,
    least_time_is_from_the_end_of_a_check: _slow,
    sweeps_give_no_verdict: _aborting,
    broken_units_stay_in_chaos: _expecting,
    shared_alarms_count_for_each_unit: _shared,
    hours_never_end: _halting(2),
    verdicts_at_one_time_count_once: _at_once,
    own_halt_is_not_in_the_claim: _halting_slowly,
    good_verdicts_end_the_halt: _halting(1),
    alarms_are_read_only_for_the_claim: _alarmed,
    alarms_are_not_heard: _heard,
    old_alarms_stop_new_events: _late,
    stopped_events_are_attempted_again: _alarmed,
}
"""Each defect, and where to look for it."""
