"""Defects put into the product on purpose: each breaks one of the rules that the model test checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.model.people import People
from tests.model.world import World
from troop.chaos import claim_rules, policy
from troop.chaos.aws import claim_rollback, claim_transaction, event_table, groups, terminator
from troop.chaos.events import Event, Status
from troop.chaos.flows import clock_check, sweep, termination
from troop.chaos.guards import candidates, judge
from troop.chaos.roll import by_rank
from troop.faults.fault import Answer
from troop.shared.settings import Settings

Patch = pytest.MonkeyPatch


def _without(patch: Patch, owner: Any, method: str, *parts: str) -> None:
    """Takes parts out of the condition that a method puts into a transaction."""
    real = getattr(owner, method)

    def weak(*args: Any) -> dict[str, Any]:
        ((kind, body),) = real(*args).items()
        text = body["ConditionExpression"]
        for part in parts:
            assert part in text, (part, text)
            text = text.replace(part, "attribute_not_exists(zzz)")
        return {kind: tidy({**body, "ConditionExpression": text})}

    patch.setattr(owner, method, weak)


def tidy(request: dict[str, Any]) -> dict[str, Any]:
    """Without the names and values that its expressions no longer use."""
    text = " ".join(str(v) for k, v in request.items() if k.endswith("Expression")) + " "
    for field in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        if field in request:
            request[field] = {k: v for k, v in request[field].items() if any(f"{k}{end}" in text for end in " ,).")}
    return request


def nothing_says_that_the_day_has_had_its_claim(patch: Patch) -> None:
    """Three conditions say so, each of which would do: the event's, the unit's item's, and the instance's."""
    real = claim_transaction.ClaimTransaction._unit

    def anything(*args: Any) -> dict[str, Any]:
        body = real(*args)["Update"]
        return {"Update": tidy({**body, "ConditionExpression": "attribute_not_exists(unrecovered)"})}

    patch.setattr(claim_transaction.ClaimTransaction, "_unit", anything)
    _without(
        patch, claim_transaction.ClaimTransaction, "_event", "attribute_not_exists(event_id) OR #status = :leashed"
    )
    instances_are_not_reserved(patch)


def instances_are_not_reserved(patch: Patch) -> None:
    _without(patch, claim_transaction.ClaimTransaction, "_place", "NOT contains(#instances, :id)")


def no_halt_condition(patch: Patch) -> None:
    _without(patch, claim_transaction.ClaimTransaction, "_switch", "attribute_not_exists(halted) OR halted = :no")


def no_leash_condition(patch: Patch) -> None:
    _without(patch, claim_transaction.ClaimTransaction, "_switch", "leashed = :no")


def no_policy_condition(patch: Patch) -> None:
    def anything(self: Any, unit: str, item: Mapping[str, Any]) -> dict[str, Any]:
        key, holds = {"unit": {"S": unit}}, "attribute_not_exists(zzz)"
        return {"ConditionCheck": {"TableName": self.group_tags, "Key": key, "ConditionExpression": holds}}

    patch.setattr(claim_transaction.ClaimTransaction, "_policy", anything)


def no_cap_condition(patch: Patch) -> None:
    _without(patch, claim_transaction.ClaimTransaction, "_counter", "attribute_not_exists(#count) OR #count < :most")


def no_unit_condition(patch: Patch) -> None:
    _without(patch, claim_transaction.ClaimTransaction, "_unit", "attribute_not_exists(unrecovered)")


def no_guards_at_the_claim(patch: Patch) -> None:
    patch.setattr(termination, "judge", lambda facts: judge(facts, ()))


def owners_undercut_the_lowest_minimum(patch: Patch) -> None:
    real = policy._member

    def member(item: Any, tags: Any, settings: Settings, today: Any) -> Any:
        return real(item, tags, replace(settings, lowest_min_healthy=1), today)

    patch.setattr(policy, "_member", member)


def nobody_asks_what_ec2_protects(patch: Patch) -> None:
    patch.setattr(termination, "without_protected", lambda ec2, facts, guards: facts)


def another_instance_at_a_retry(patch: Patch) -> None:
    def run(self: termination.Termination, work: termination.Work) -> termination.Outcome:
        event = self.events.get(work.event_id)
        if event is None or event.status is not Status.CLAIMED or event.execution != work.execution:
            return real(self, work)
        facts = self._facts(work, groups.read_groups(self.reader.autoscaling, [event.group]), {}, self.clock())
        others = [i for g in facts.groups for i in candidates(facts, g) if i.instance_id != event.instance_id]
        chosen = by_rank(facts.salt, facts.day, others)
        if chosen:
            event = replace(event, instance_id=chosen[0].instance_id)
        return termination.Outcome(self._carry_out(event))

    real = termination.Termination.run
    patch.setattr(termination.Termination, "run", run)
    real_attempt = event_table.EventTable.attempt

    def attempt(self: Any, event: Event, now: datetime) -> Event:
        return replace(real_attempt(self, event, now), instance_id=event.instance_id)

    patch.setattr(event_table.EventTable, "attempt", attempt)


def late_ticks_are_carried_out(patch: Patch) -> None:
    patch.setattr(termination, "is_stale", lambda tick, now: False)
    patch.setattr(claim_rules, "deadline", lambda now, calendar: now + claim_rules.LONGEST_CLAIM)
    patch.setattr(termination, "deadline", claim_rules.deadline)


def claims_never_end(patch: Patch) -> None:
    patch.setattr(termination, "may_carry_out", lambda event, now: event.status is Status.CLAIMED)


def time_is_checked_only_before_the_attempt(patch: Patch) -> None:
    real: Callable[[Event, datetime], bool] = claim_rules.may_carry_out
    patch.setattr(termination, "may_carry_out", lambda event, now: event.attempts > 0 or real(event, now))


def halt_is_not_looked_at_before_the_call(patch: Patch) -> None:
    def carry_out(self: termination.Termination, event: Event) -> Event:
        state: Any = _Calm(self.reader.state)
        return real(replace(self, reader=replace(self.reader, state=state)), event)

    real = termination.Termination._carry_out
    patch.setattr(termination.Termination, "_carry_out", carry_out)


class _Calm:
    def __init__(self, state: Any) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def switch(self) -> Any:
        return type("Switch", (), {"halted": False, "leashed": False})


def no_attempt_on_record(patch: Patch) -> None:
    patch.setattr(
        event_table.EventTable, "attempt", lambda self, event, now: replace(event, attempted_at=now, attempts=1)
    )


def every_try_is_the_first(patch: Patch) -> None:
    real = event_table.EventTable.attempt
    patch.setattr(
        event_table.EventTable, "attempt", lambda self, event, now: replace(real(self, event, now), attempts=1)
    )
    attempts_do_not_hold_up_an_end(patch)


def attempts_do_not_hold_up_an_end(patch: Patch) -> None:
    def closing(self: Any, event: Event, closed: Event) -> dict[str, Any]:
        body = real(self, event, closed)["Update"]
        body["ConditionExpression"] = "#status = :from"
        return {"Update": tidy(body)}

    real = event_table.EventTable._closing
    patch.setattr(event_table.EventTable, "_closing", closing)


def a_repeated_call_finds_its_own_work_foreign(patch: Patch) -> None:
    patch.setattr(terminator, "_gone", lambda answer: Answer.GONE)


def the_record_of_a_shutdown_comes_after_the_call(patch: Patch) -> None:
    """So that it is lost where the call's answer is."""
    patch.setattr(event_table.EventTable, "record_os_shutdown", lambda self, event: replace(event, os_shutdown=True))


def nobody_looks_at_the_time_after_a_rejection(patch: Patch) -> None:
    real: Callable[[Event, datetime], bool] = claim_rules.may_carry_out
    patch.setattr(termination, "may_carry_out", lambda event, now: bool(event.os_shutdown) or real(event, now))


def place_never_released(patch: Patch) -> None:
    def nothing(self: Any, event: Event) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": "other"}},
                "UpdateExpression": "SET a = :a",
                "ExpressionAttributeValues": {":a": {"N": "1"}},
            }
        }

    patch.setattr(event_table.EventTable, "_release_place", nothing)


def count_of_the_day_never_reduced(patch: Patch) -> None:
    def nothing(table: str, event: Event) -> dict[str, Any]:
        return {"Update": real(table, replace(event, day=event.day.replace(year=2000)))["Update"] | _ADD_NOTHING}

    real = claim_rollback._count
    patch.setattr(claim_rollback, "_count", nothing)


_ADD_NOTHING = {"ExpressionAttributeValues": {":back": {"N": "0"}}}


def _giving_back(patch: Patch, **always: bool) -> None:
    def back(table: str, event: Event, spends: bool, restoring: bool) -> list[dict[str, Any]]:
        return claim_rollback.rollback_writes(table, event, **({"spends": spends, "restoring": restoring} | always))

    patch.setattr(event_table, "rollback_writes", back)


def last_termination_never_put_back(patch: Patch) -> None:
    _giving_back(patch, restoring=False)


def abandonment_uses_up_no_day(patch: Patch) -> None:
    _giving_back(patch, spends=False)


def aws_request_uses_up_no_day(patch: Patch) -> None:
    """On demand: the scheduled one has a key for the day."""
    real = event_table.EventTable.close

    def close(self: Any, *args: Any, in_doubt: bool = False, **more: Any) -> Event:
        return real(self, *args, **more)

    patch.setattr(event_table.EventTable, "close", close)


def closing_needs_no_status(patch: Patch) -> None:
    def closing(self: Any, event: Event, closed: Event) -> dict[str, Any]:
        body = real(self, event, closed)["Update"]
        del body["ConditionExpression"]
        return {"Update": tidy(body)}

    real = event_table.EventTable._closing
    patch.setattr(event_table.EventTable, "_closing", closing)


def unit_stays_in_chaos_unrecovered(patch: Patch) -> None:
    patch.setattr(
        event_table.EventTable,
        "_unit_taken_out",
        lambda self, event, left_for: {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": "unit#" + event.unit + "?"}},
                "UpdateExpression": "SET unrecovered = :event",
                "ExpressionAttributeValues": {":event": {"S": event.event_id}},
            }
        },
    )


def sweep_is_hasty(patch: Patch) -> None:
    patch.setattr(sweep, "is_stale", lambda event, now: event.status is Status.CLAIMED)


def sweep_trusts_its_clock(patch: Patch) -> None:
    patch.setattr(clock_check, "is_stale", lambda stamped, now: False)


def sweep_ignores_the_instance(patch: Patch) -> None:
    patch.setattr(sweep, "instance_gone", lambda ec2, autoscaling, instance_id: False)


def sweep_knows_no_lifecycle_hooks(patch: Patch) -> None:
    patch.setattr(groups, "LEAVING", "Terminated")


def sweep_takes_over_no_watch(patch: Patch) -> None:
    patch.setattr(sweep, "watch_lost", lambda event, now: False)


def no_sweep_at_all(patch: Patch) -> None:
    patch.setattr(sweep.Sweep, "run", lambda self, started: [])


def looks_trust_their_clock(patch: Patch) -> None:
    patch.setattr(clock_check, "check", lambda entered, now: None)


# Where to look: histories in which a defect would show more often than in any.

Focus = Callable[[World], None]


def only(*names: str) -> Focus:
    """People do only this, and often."""

    def focus(world: World) -> None:
        people = People(world, 8)
        people.changes = tuple(getattr(people, name) for name in names)
        world.people, world.faults = people.change, replace(world.faults, people=0.05)

    return focus


def faults(**faults: float) -> Focus:
    def focus(world: World) -> None:
        world.faults = replace(world.faults, **faults)

    return focus


def _crowded(world: World) -> None:
    """Only one termination is allowed at a time, and requests for more come together."""
    world.settings = replace(world.settings, max_in_flight=1, max_per_day=20)
    object.__setattr__(world.tick.reader, "settings", world.settings)
    world.faults = replace(world.faults, switch=0.9, twin=1.0)


def _held_for_long(world: World) -> None:
    world.faults = replace(world.faults, call=0.15, kill=0.1, abort=0.5)
    for group in world.fleet.groups.values():
        group.hook, group.tags["troop:method"] = 3000.0, "drain"


def _nothing_boots(world: World) -> None:
    world.faults = replace(world.faults, call=0.15, abort=0.5)
    for group in world.fleet.groups.values():
        group.boots = False


def _unanswered(world: World) -> None:
    """Calls that terminate fail, and no others."""
    real = world.call
    world.faults = replace(world.faults, kill=0.0, people=0.0, clock=0.0, abort=0.9)

    def call(backend: Any, operation: str, request: dict[str, Any]) -> Any:
        world.faults = replace(world.faults, call=0.9 if operation.startswith("terminate") else 0.0)
        return real(backend, operation, request)

    world.call = call  # type: ignore[method-assign]


def _no_skips(world: World) -> None:
    """EC2 rejects every crash without a shutdown, and calls are slow and lose their answers."""
    world.fleet.skips = False
    world.faults = replace(world.faults, call=0.15, slow=0.3)


Mutant = Callable[[Patch], None]

MUTANTS: dict[Mutant, Focus] = {
    nothing_says_that_the_day_has_had_its_claim: faults(),
    no_halt_condition: only("halt", "unhalt"),
    no_leash_condition: only("leash", "unleash"),
    no_policy_condition: only("opt_out", "opt_in", "improbable"),
    no_cap_condition: _crowded,
    no_unit_condition: only("take_out", "put_back"),
    no_guards_at_the_claim: faults(),
    owners_undercut_the_lowest_minimum: only("fewer_healthy", "scale"),
    nobody_asks_what_ec2_protects: only("shield"),
    another_instance_at_a_retry: faults(),
    late_ticks_are_carried_out: faults(),
    claims_never_end: faults(),
    time_is_checked_only_before_the_attempt: faults(slow=0.5),
    halt_is_not_looked_at_before_the_call: only("halt", "unhalt"),
    no_attempt_on_record: faults(),
    every_try_is_the_first: faults(),
    attempts_do_not_hold_up_an_end: faults(twin=1.0, switch=0.9),
    a_repeated_call_finds_its_own_work_foreign: faults(call=0.15),
    the_record_of_a_shutdown_comes_after_the_call: _no_skips,
    nobody_looks_at_the_time_after_a_rejection: _no_skips,
    place_never_released: faults(),
    count_of_the_day_never_reduced: faults(),
    last_termination_never_put_back: faults(),
    abandonment_uses_up_no_day: only("leash", "unleash"),
    aws_request_uses_up_no_day: _unanswered,
    closing_needs_no_status: faults(),
    unit_stays_in_chaos_unrecovered: _nothing_boots,
    sweep_is_hasty: faults(switch=0.9),
    sweep_trusts_its_clock: faults(),
    sweep_ignores_the_instance: faults(),
    sweep_knows_no_lifecycle_hooks: _held_for_long,
    sweep_takes_over_no_watch: faults(),
    no_sweep_at_all: faults(),
    looks_trust_their_clock: faults(clock=0.05),
}
"""Each defect, and where to look for it."""
