"""Guards: each refuses for its own reason, in words that a user understands, and lets everything else pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from tests.unit.chaos.build import FRIDAY, LAST_TICK, at, calendars, facts, raw_calendar, settings
from tests.unit.chaos.guard_cases import CASES, DUE, Case, ill
from troop.chaos.decisions import decide
from troop.chaos.facts import Counts, Facts, Switch, UnitState
from troop.chaos.guards import (
    CAPS,
    REASONS,
    SCHEDULED,
    Refusal,
    day_cap,
    in_flight,
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.detail)
def test_a_guard_refuses_for_its_reason_and_in_its_words(case: Case) -> None:
    refused = facts(**case.refused)
    assert case.guard(refused) == Refusal(case.reason, case.detail)
    decision = decide(refused)
    assert (decision.reason, decision.detail) == (case.reason, case.detail)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.detail)
def test_a_guard_lets_the_nearest_harmless_thing_pass(case: Case) -> None:
    passed = facts(**case.passed)
    assert case.guard(passed) is None
    assert decide(passed).reason == "terminate"


def test_every_reason_is_tried_here_and_listed_in_order() -> None:
    assert {case.reason for case in CASES} == set(REASONS)
    in_order = sorted(CASES, key=lambda case: SCHEDULED.index(case.guard))
    assert in_order == CASES
    assert {case.guard for case in CASES} == set(SCHEDULED)


# ------------------------------------------------------------------ order


WORSE: list[tuple[str, Callable[[Facts], Facts]]] = [
    ("leashed", lambda f: replace(f, switch=replace(f.switch, leashed=True))),
    ("in-flight", lambda f: replace(f, counts=Counts(f.counts.by_day, 5))),
    ("day-cap", lambda f: replace(f, counts=Counts({FRIDAY: 20}, 5))),
    ("already-today", lambda f: replace(f, state=UnitState(last_day=FRIDAY))),
    ("not-yet", lambda f: replace(f, now=at("09:00"))),
    ("not-rolled", lambda f: with_item(f, probability=0)),
    (
        "too-soon",
        lambda f: replace(with_item(f, probability=0, min_days_between=9), state=UnitState(date(2026, 11, 19))),
    ),
    ("stop-alarm", lambda f: with_item(f, probability=0, min_days_between=9, stop_alarms="x")),
    ("protected-instances", lambda f: each(f, instances=ill(3, total=3, scale_in_protected=True))),
    ("unhealthy", lambda f: each(f, instances=ill(3, total=3, health="Unhealthy"))),
    ("too-small", lambda f: each(f, instances=())),
    ("refreshing", lambda f: replace(f, refreshing=frozenset({"web"}))),
    ("suspended", lambda f: each(f, suspended_processes=frozenset({"Launch"}))),
    ("operated", lambda f: each(f, operator="eks.amazonaws.com")),
    ("unrecovered", lambda f: replace(f, state=replace(f.state, unrecovered="2026-11-02#web"))),
    ("opted-out", lambda f: with_item(f, probability=0, min_days_between=9, stop_alarms="x", opt_out=True)),
    ("weekend", lambda f: replace(f, now=at("09:00", date(2026, 11, 21)))),
    ("halted", lambda f: replace(f, switch=Switch(halted=True, leashed=True))),
    ("malformed", lambda f: with_item(f, probability="x", opt_out=True)),
    ("protected", lambda f: each(f, tags={"troop:protected": ""})),
]


def with_item(unit: Facts, **item: Any) -> Facts:
    return replace(unit, policy=facts(item=item, groups=unit.groups).policy)


def each(unit: Facts, **changes: Any) -> Facts:
    return replace(unit, groups=tuple(replace(g, **changes) for g in unit.groups))


def test_the_first_refusal_is_the_reason_however_much_else_speaks_against_it() -> None:
    unit = facts()
    assert decide(unit).reason == "terminate"
    for reason, worsen in WORSE:
        unit = worsen(unit)
        assert decide(unit).reason == reason


def test_details_not_read_yet_refuse_nothing() -> None:
    unlooked = facts(item={"stop_alarms": "errors"}, refreshing=None, alarms=None)
    assert decide(unlooked).reason == "terminate"


def test_the_due_minute_stays_secret_until_it_has_come() -> None:
    details = {decide(facts(now=at(clock), unit=unit)).detail for unit in ("a", "b", "c") for clock in ("09:00",)}
    assert details == {"rolled for a minute later than 09:00, before 14:45"}


def test_a_roll_is_due_from_its_minute_until_the_window_ends() -> None:
    for hour in range(9, 15):
        for minute in (0, 15, 30, 45):
            now = at(f"{hour:02}:{minute:02}")
            assert decide(facts(now=now)).reason == ("terminate" if now >= DUE else "not-yet")


def test_caps_are_the_deployments() -> None:
    assert (day_cap, in_flight) == CAPS
    few = settings(max_per_day=1, max_in_flight=1)
    assert decide(facts(chosen=few, counts=Counts({FRIDAY: 1}))).reason == "day-cap"
    assert decide(facts(chosen=few, counts=Counts({}, 1))).reason == "in-flight"
    assert decide(facts(chosen=few)).reason == "terminate"


def test_the_calendar_is_the_units() -> None:
    both = settings(calendars={**calendars(), "vienna": raw_calendar(time_zone="Europe/Vienna", country="AT")})
    assert (
        decide(facts(chosen=both, item={"calendar": "vienna"})).detail
        == "23:45 is outside 09:00 to 15:00 Europe/Vienna"
    )
    monday = at("14:45", date(2026, 10, 26), "Europe/Vienna")
    assert decide(facts(chosen=both, item={"calendar": "vienna"}, now=monday)).detail == "National Day"
    assert decide(facts(chosen=both, now=LAST_TICK)).reason == "terminate"
