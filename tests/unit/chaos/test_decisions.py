"""Decisions: a function of what was read; repeated, late and doubled ticks change nothing; caps hold inside a tick."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations

from tests.unit.chaos.build import FRIDAY, LAST_TICK, SALT, account, at, facts, fleet, group, reasons, settings, tick
from troop.chaos.decisions import TERMINATE, Decision, decide, decide_all
from troop.chaos.events import scheduled_id
from troop.chaos.facts import Account, Switch, UnitState, facts_of_units
from troop.chaos.roll import by_rank, due_at, roll

# ------------------------------------------------------------------ what a decision says


def test_a_termination_names_group_instance_and_event() -> None:
    decision = decide(facts())
    chosen = by_rank(SALT, FRIDAY, group().instances)[0]
    assert decision.target is not None
    assert (decision.target.group, decision.target.instance) == (group(), chosen)
    assert decision.detail == f"{chosen.instance_id} of web is to be terminated"
    assert decision.event_id == "2026-11-20#web" == scheduled_id(FRIDAY, "web")
    assert (decision.day, decision.tick, decision.groups) == (FRIDAY, LAST_TICK, ("web",))
    assert decision.rolled == roll(SALT, FRIDAY, "web")


def test_a_refusal_has_no_target() -> None:
    assert decide(facts(item={"opt_out": True})).target is None


def test_a_leashed_deployment_says_what_it_would_have_terminated() -> None:
    leashed, loose = (decide(facts(switch=Switch(halted=False, leashed=leash))) for leash in (True, False))
    assert (leashed.reason, loose.reason) == ("leashed", TERMINATE)
    assert leashed.target == loose.target is not None


def test_a_unit_without_a_calendar_that_exists_has_no_day_and_no_roll() -> None:
    decision = decide(facts(item={"calendar": "moon"}))
    assert (decision.reason, decision.day, decision.rolled) == ("malformed", None, None)


def test_the_day_of_a_decision_is_the_local_one() -> None:
    decision = decide(facts(now=datetime.fromisoformat("2026-11-21T03:00Z")))
    assert (decision.day, decision.rolled) == (FRIDAY, roll(SALT, FRIDAY, "web"))


# ------------------------------------------------------------------ what a tick reads


def test_each_unit_gets_what_is_stored_for_it_and_nothing_else() -> None:
    read = account(
        *fleet(4),
        items={"service-01": {"opt_out": True}, "service-99": {"opt_out": True}},
        states={"service-02": UnitState(unrecovered="x")},
        protected_instances=frozenset(i.instance_id for i in fleet(4)[3].instances),
    )
    assert {u: d.reason for u, d in tick(read).items()} == {
        "service-00": TERMINATE,
        "service-01": "opted-out",
        "service-02": "unrecovered",
        "service-03": "protected-instances",
    }


def test_the_policy_that_units_without_one_share_is_the_one_each_would_have_had() -> None:
    tagged = group("tagged", tags={"troop:probability": "0.5"})
    capital = group("capital", tags={"TROOP:opt_out": "true"})
    policies = {
        f.unit: f.policy for f in facts_of_units(account(*fleet(2), tagged, capital), settings(), SALT, LAST_TICK)
    }
    assert policies["service-00"] == policies["service-01"] == facts("service-00").policy
    assert policies["tagged"].probability.value == 0.5
    assert policies["capital"].problems


def test_decisions_come_in_the_order_of_the_units() -> None:
    units = list(facts_of_units(account(*reversed(fleet(9))), settings(), SALT, LAST_TICK))
    assert [d.unit for d in decide_all(units)] == [f"service-{n:02}" for n in range(9)]


def test_nothing_to_decide_is_no_decision() -> None:
    assert decide_all([]) == []


# ------------------------------------------------------------------ again, late, twice


def test_the_same_inputs_give_the_same_decisions() -> None:
    read = account(*fleet(30), items={"service-03": {"probability": 0.1}})
    assert tick(read) == tick(read)
    for order in ([3, 1, 2, 0], [2, 0, 3, 1]):
        mixed = account(*(fleet(4)[n] for n in order))
        assert tick(mixed) == tick(account(*fleet(4)))


def claimed(read: Account, decisions: dict[str, Decision]) -> Account:
    """The account after every termination of a tick was claimed and its group replaced the instance."""
    done = [d for d in decisions.values() if d.reason == TERMINATE]
    counts, states, groups = read.counts, dict(read.states), {g.name: g for g in read.groups}
    for d in done:
        assert d.day
        assert d.target
        counts = replace(counts.plus_one(d.day), in_flight=0)
        states[d.unit] = UnitState(last_day=d.day)
        old = groups[d.target.group.name]
        number = int(max(i.instance_id for i in old.instances)[2:], 16) + 1
        replacement = replace(d.target.instance, instance_id=f"i-{number:017x}")
        groups[old.name] = replace(old, instances=(*(i for i in old.instances if i != d.target.instance), replacement))
    return replace(read, counts=counts, states=states, groups=list(groups.values()))


def test_a_tick_that_comes_twice_terminates_nothing_more() -> None:
    read = account(*fleet(5))
    first = tick(read)
    assert reasons(first) == {TERMINATE: 5}
    assert reasons(tick(claimed(read, first))) == {"already-today": 5}


def test_an_overdue_roll_fires_at_the_next_tick_of_the_day_whichever_that_is() -> None:
    read = account(group())
    due = due_at(SALT, FRIDAY, "web", settings().calendars["default"])
    ticks = [at("09:00") + timedelta(minutes=15 * n) for n in range(24)]
    expected = tick(read, now=LAST_TICK)["web"]
    for now in ticks:
        decision = tick(read, now=now)["web"]
        assert decision.reason == (TERMINATE if now >= due else "not-yet")
        assert decision.rolled == expected.rolled
        assert decision.target in (expected.target, None)


def test_if_all_ticks_are_late_nothing_is_terminated() -> None:
    assert tick(account(group()), now=at("15:00"))["web"].reason == "outside-window"


def test_ticks_in_any_order_terminate_once() -> None:
    moments = [at("09:00"), at("12:00"), LAST_TICK, LAST_TICK]
    for order in permutations(moments):
        read, count = account(group()), 0
        for now in order:
            decisions = tick(read, now=now)
            count += reasons(decisions)[TERMINATE]
            read = claimed(read, decisions)
        assert count == 1
