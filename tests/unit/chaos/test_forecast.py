"""Forecasts: the day as ticks would go through it, and the short cut that years are simulated by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.unit.chaos.build import (
    FRIDAY,
    SALT,
    account,
    at,
    calendars,
    fleet,
    group,
    instance,
    raw_calendar,
    settings,
    tagged,
)
from tests.unit.chaos.test_rules_hold import OPT_OUT, worlds
from troop.chaos.change_calendars import ChangePeriod
from troop.chaos.decisions import TERMINATE, Decision
from troop.chaos.facts import Account, Counts, Facts, Switch, UnitState
from troop.chaos.forecast import UnitDay, go_through, plan, skip_through, ticks_between
from troop.chaos.inside import Inside
from troop.chaos.roll import due_at
from troop.shared.settings import Settings

MONDAY = date(2026, 11, 23)


def day_of(read: Account, chosen: Settings, day: date = FRIDAY, **more: Any) -> dict[str, UnitDay]:
    unit_days = plan(read, chosen, SALT, 15, dict.fromkeys(chosen.calendars, day), **more)
    return {unit.decisions[0].unit: unit for unit in unit_days}


def outcomes(days: Iterable[list[Decision]], chosen: Settings) -> dict[tuple[str, date | None], tuple[Any, ...]]:
    """By unit and local day: what was terminated and when, else the last reason."""
    by_unit: dict[tuple[str, date | None], tuple[Any, ...]] = {}
    for decisions in days:
        for d in decisions:
            calendar = chosen.calendars.get(str(d.policy.calendar.value)) or chosen.calendars["default"]
            key = d.unit, calendar.at(d.tick).day
            if by_unit.get(key, ("",))[0] != TERMINATE:
                when = (d.tick, d.target.instance.instance_id) if d.reason == TERMINATE and d.target else ()
                by_unit[key] = (d.reason, *when)
    return by_unit


# ------------------------------------------------------------------ a day


def test_unit_is_terminated_at_the_first_tick_after_its_minute_and_only_once() -> None:
    chosen = settings()
    (unit,) = day_of(account(group()), chosen).values()
    due = due_at(SALT, FRIDAY, "web", chosen.calendars["default"])
    assert unit.due == due
    assert unit.outcome.reason == TERMINATE
    assert due <= unit.outcome.tick < due + timedelta(minutes=15)
    reasons = [d.reason for d in unit.decisions]
    assert len(reasons) == 24
    hit = reasons.index(TERMINATE)
    assert set(reasons[:hit]) <= {"not-yet"}
    assert set(reasons[hit + 1 :]) <= {"already-today"}


def test_caps_count_the_terminations_of_the_day_and_those_in_flight_until_next_tick() -> None:
    days = day_of(account(*fleet(12)), settings(max_per_day=5, max_in_flight=1))
    hits = sorted(u.outcome.tick for u in days.values() if u.outcome.reason == TERMINATE)
    assert len(hits) == len(set(hits)) == 5
    assert Counter(u.outcome.reason for u in days.values()) == {TERMINATE: 5, "day-cap": 7}


def test_earlier_counts_and_unit_states_hold() -> None:
    read = account(
        *fleet(3),
        counts=Counts({FRIDAY: 1}, in_flight=5),
        states={"service-00": UnitState(last_day=FRIDAY), "service-01": UnitState(unrecovered="2026-11-02#x")},
    )
    reasons = {unit: u.outcome.reason for unit, u in day_of(read, settings(max_per_day=1)).items()}
    assert reasons == {"service-00": "already-today", "service-01": "unrecovered", "service-02": "day-cap"}


def test_ticks_of_two_calendars_at_one_moment_share_what_may_be_in_flight() -> None:
    chosen = settings(calendars={**calendars(), "other": raw_calendar()}, max_in_flight=1, max_per_day=100)
    groups = [tagged(f"{c}-{n}", calendar=c) for c in chosen.calendars for n in range(15)]
    days = day_of(account(*groups), chosen)
    hits = [u.outcome.tick for u in days.values() if u.outcome.reason == TERMINATE]
    assert len(hits) == len(set(hits)) > 10


def test_a_closed_day_says_why() -> None:
    thanksgiving = date(2026, 11, 26)
    chosen = settings(calendars=calendars(freezes=[{"from": str(MONDAY), "to": str(MONDAY), "reason": "release"}]))
    for day, reason, detail in (
        (FRIDAY + timedelta(days=1), "weekend", "Saturday is not a working day of calendar default"),
        (MONDAY, "freeze", "release"),
        (thanksgiving, "holiday", "Thanksgiving Day"),
    ):
        (unit,) = day_of(account(group()), chosen, day).values()
        assert (unit.outcome.reason, unit.outcome.detail, unit.due) == (reason, detail, None)


def test_a_leash_is_the_outcome_with_the_instance_that_it_saves() -> None:
    (unit,) = day_of(account(group(), switch=Switch(halted=False, leashed=True)), settings()).values()
    first = next(d for d in unit.decisions if d.reason == "leashed")
    assert unit.outcome == first
    assert unit.outcome.target


def test_a_leashed_day_keeps_to_the_caps_as_its_records_do() -> None:
    """What is on record from an earlier tick has its place under the cap, however low another unit has rolled."""
    read, chosen = account(*fleet(12)), settings(max_per_day=5, max_in_flight=1)
    loose = day_of(read, chosen)
    leashed = day_of(replace(read, switch=Switch(halted=False, leashed=True)), chosen)
    assert Counter(u.outcome.reason for u in leashed.values()) == {"leashed": 5, "day-cap": 7}
    for unit, day in leashed.items():
        assert (day.outcome.target, day.outcome.tick if day.outcome.target else None) == (
            loose[unit].outcome.target,
            loose[unit].outcome.tick if loose[unit].outcome.target else None,
        )


def test_ticks_that_are_over_terminate_nothing() -> None:
    chosen = settings()
    (unit,) = day_of(account(group()), chosen).values()
    (later,) = day_of(account(group()), chosen, after=unit.outcome.tick).values()
    assert later.decisions[0].tick == unit.outcome.tick + timedelta(minutes=15)
    assert later.outcome.reason == TERMINATE  # what is overdue goes at the next tick
    (none_left,) = day_of(account(group()), chosen, after=at("14:45")).values()
    assert (none_left.outcome.reason, none_left.outcome.target) == ("outside-window", None)
    assert none_left.outcome.detail == "no tick is left on 2026-11-20"


def test_unit_has_the_ticks_of_its_calendar_or_else_of_the_default() -> None:
    chosen = settings(calendars={**calendars(), "vienna": raw_calendar(time_zone="Europe/Vienna", close="10:00")})
    days = day_of(account(tagged("a", calendar="vienna"), tagged("b"), tagged("c", calendar="moon")), chosen)
    assert {unit: (u.calendar, len(u.decisions)) for unit, u in days.items()} == {
        "a": ("vienna", 4),
        "b": ("default", 24),
        "c": ("default", 24),
    }
    assert days["c"].outcome.reason == "malformed"


def test_details_are_read_only_at_ticks_of_due_units() -> None:
    seen: list[str] = []

    def read_details(due: list[Facts]) -> list[Facts]:
        seen.extend(f.unit for f in due)
        return [replace(f, refreshing=frozenset({"busy"}), alarms={}) for f in due]

    days = day_of(
        account(group("busy"), group("idle", first=10), group("out", first=20)), settings(), read_details=read_details
    )
    assert days["busy"].outcome.reason == "refreshing"
    assert days["idle"].outcome.reason == TERMINATE
    assert seen.count("idle") == 1


# ------------------------------------------------------------------ many days


def test_ticks_are_in_order_over_all_calendars() -> None:
    chosen = settings(calendars={**calendars(), "vienna": raw_calendar(time_zone="Europe/Vienna")})
    ticks = ticks_between(chosen, 15, FRIDAY, MONDAY)
    assert ticks == sorted(ticks)
    assert Counter(name for _, name in ticks) == {"default": 48, "vienna": 48}


def both(read: Account, chosen: Settings, first: date, last: date) -> tuple[Any, Any, int, int]:
    ticks = ticks_between(chosen, 15, first, last)
    full, short = list(go_through(read, chosen, SALT, ticks)), list(skip_through(read, chosen, SALT, ticks))
    return outcomes(full, chosen), outcomes(short, chosen), sum(map(len, full)), sum(map(len, short))


@pytest.mark.slow
def test_the_short_cut_meets_every_reason_of_the_long_way() -> None:
    """Property: whatever the account, every unit and day ends alike, at the same tick, with the same instance."""
    seen: Counter[str] = Counter()

    @hypothesis_settings(max_examples=25)
    @given(
        world=worlds(),
        days=st.integers(0, 5),
        caps=st.sampled_from([(1, 1), (2, 1), (4, 3), (20, 5)]),
        probability=st.sampled_from([0.3, 1.0]),
    )
    def search(world: Any, days: int, caps: tuple[int, int], probability: float) -> None:
        read, _, now = world
        chosen = replace(OPT_OUT, max_per_day=caps[0], max_in_flight=caps[1], probability=probability)
        crowd = [tagged(f"crowd-{n}", calendar=c, min_days_between=str(n)) for n in range(3) for c in chosen.calendars]
        crowd = [replace(g, name=f"{g.name}-{g.tags['troop:calendar']}") for g in crowd]
        read = replace(read, groups=[*read.groups, *crowd])
        full, short, _, _ = both(read, chosen, now.date(), now.date() + timedelta(days=days))
        assert short == full
        seen.update(reason for reason, *_ in full.values())

    search()
    assert {TERMINATE, "day-cap", "not-rolled", "opted-out", "too-soon"} <= set(seen), seen


def test_the_short_cut_is_one() -> None:
    full, short, long_way, short_way = both(account(*fleet(5)), settings(probability=0.2), FRIDAY, date(2027, 2, 1))
    assert short == full
    assert short_way < long_way / 15


def test_the_short_cut_looks_again_when_a_change_calendar_opens() -> None:
    chosen = settings(calendars=calendars(change_calendar="prod"), probability=0.5)
    edges = [at("08:00"), at("11:20"), at("13:00"), at("16:00", MONDAY), at("09:00", date(2026, 11, 24))]
    periods = tuple(
        ChangePeriod("prod", start, end, is_open=bool(n % 2)) for n, (start, end) in enumerate(pairwise(edges))
    )
    read = account(*fleet(30), changes={"default": periods})
    full, short, _, _ = both(read, chosen, FRIDAY, date(2026, 11, 24))
    assert short == full
    assert {reason for reason, *_ in full.values()} >= {TERMINATE, "change-calendar"}
    hits = [moment for reason, *(moment, _) in (v for v in full.values() if v[0] == TERMINATE)]
    assert {moment.date() for moment in hits} == {FRIDAY}
    assert all(at("11:20") <= moment < at("13:00") for moment in hits)


def test_unit_refused_by_the_in_flight_cap_is_terminated_at_the_next_tick() -> None:
    full, short, _, _ = both(account(*fleet(30)), settings(max_in_flight=1, max_per_day=100), FRIDAY, MONDAY)
    assert short == full
    assert Counter(reason for reason, *_ in full.values())[TERMINATE] > 40


# ------------------------------------------------------------------ lasting faults


def consenting(method: str, size: int = 3) -> Account:
    read = replace(tagged(method=method, inside="yes"), propagated=frozenset({"troop:inside"}))
    read = replace(read, instances=tuple(instance(n) for n in range(size)), desired=size)
    return account(read, inside=Inside({one.instance_id: "yes" for one in read.instances}))


@pytest.mark.parametrize("method", ["cpu seconds=900", "crash, cpu seconds=900"])
def test_short_cut_and_long_way_agree_on_lasting_faults(method: str) -> None:
    full, short, _, _ = both(consenting(method), settings(inside_instances=True), FRIDAY, date(2026, 12, 11))
    assert short == full
    assert {reason for reason, *_ in full.values()} >= {TERMINATE}


def test_each_instance_has_one_lasting_fault_until_it_is_replaced() -> None:
    chosen = settings(inside_instances=True)
    ticks = ticks_between(chosen, 15, FRIDAY, FRIDAY + timedelta(days=28))
    only = [d for some in go_through(consenting("cpu"), chosen, SALT, ticks) for d in some if d.target]
    assert sorted(d.target.instance.instance_id for d in only if d.target) == [
        instance(n).instance_id for n in range(3)
    ]
    mixed = [d for some in go_through(consenting("crash, cpu"), chosen, SALT, ticks) for d in some if d.target]
    hits: set[str] = set()
    for decision in mixed:
        assert decision.target
        assert decision.choice
        hit = decision.target.instance.instance_id
        if decision.choice.lasting:
            assert hit not in hits
            hits.add(hit)
        else:
            hits.discard(hit)
    assert sum(bool(d.choice and d.choice.lasting) for d in mixed) > 3  # of three instances: some were replaced


def test_a_plan_gives_the_minute_of_a_lasting_fault_with_time_for_its_proof() -> None:
    chosen = settings(inside_instances=True, calendars=calendars(open="09:00", close="09:34"))
    (unit,) = plan(consenting("cpu seconds=900"), chosen, SALT, 1, {"default": FRIDAY})
    assert unit.due == at("09:00")  # of 34 minutes, 18 are for the fault and 15 for delays
    assert unit.outcome.reason == TERMINATE
    assert unit.outcome.tick == at("09:00")
