"""Caps: what one unit is granted counts against the rest of its tick, and nobody is looked at for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, LAST_TICK, SALT, account, fleet, reasons, settings, tick, units
from troop.chaos.decisions import TERMINATE, Decision, decide, decide_all
from troop.chaos.facts import Account, Counts, Facts, Switch, UnitState, facts_of_units
from troop.chaos.roll import roll
from troop.shared.settings import Settings

# ------------------------------------------------------------------ caps inside a tick


@pytest.mark.parametrize(
    ("caps", "counted", "granted", "refusal", "detail"),
    [
        ({"max_in_flight": 5}, Counts(), 5, "in-flight", "5 hits in flight, max_in_flight 5"),
        ({"max_in_flight": 5}, Counts(in_flight=3), 2, "in-flight", "5 hits in flight, max_in_flight 5"),
        ({"max_in_flight": 5}, Counts(in_flight=9), 0, "in-flight", "9 hits in flight, max_in_flight 5"),
        (
            {"max_in_flight": 9, "max_per_day": 4},
            Counts(),
            4,
            "day-cap",
            "4 hits on 2026-11-20, max_per_day 4",
        ),
        (
            {"max_in_flight": 9, "max_per_day": 4},
            Counts({FRIDAY: 3, date(2026, 11, 19): 4}),
            1,
            "day-cap",
            "4 hits on 2026-11-20, max_per_day 4",
        ),
        ({"max_in_flight": 5, "max_per_day": 5}, Counts(), 5, "day-cap", "5 hits on 2026-11-20, max_per_day 5"),
    ],
)
def test_grant_to_one_unit_counts_against_the_rest(
    caps: dict[str, int], counted: Counts, granted: int, refusal: str, detail: str
) -> None:
    decisions = tick(account(*fleet(12), counts=counted), settings(**caps))
    assert reasons(decisions) == {**({TERMINATE: granted} if granted else {}), refusal: 12 - granted}
    assert {d.detail for d in decisions.values() if d.reason == refusal} == {detail}


def test_days_are_capped_one_by_one() -> None:
    """Two calendars in one run may stand on two local days."""
    auckland = {**settings().calendars, "nz": replace(settings().calendars["default"], time_zone="Pacific/Auckland")}
    both = replace(settings(max_per_day=1, max_in_flight=9), calendars=auckland)
    now = datetime.fromisoformat("2026-11-18T22:30Z")  # Wednesday 14:30 in Los Angeles, Thursday 11:30 in Auckland
    items = {f"service-{n:02}": {"calendar": "nz"} for n in range(0, 12, 2)}
    decisions = tick(account(*fleet(12), items=items), both, now)
    done = [d for d in decisions.values() if d.reason == TERMINATE]
    assert {d.day for d in done} == {date(2026, 11, 18), date(2026, 11, 19)}
    assert len(done) == 2


# ------------------------------------------------------------------ the closer look


class Looker:
    """Looks, and keeps whom it was asked for."""

    def __init__(self, **details: Any) -> None:
        self.units: list[str] = []
        self.details = {"refreshing": frozenset(), "alarms": {}, **details}

    def __call__(self, due: list[Facts]) -> list[Facts]:
        self.units += [f.unit for f in due]
        return [replace(f, **self.details) for f in due]


def decisions_of(read: Account, looker: Looker, chosen: Settings | None = None) -> dict[str, Decision]:
    facts = list(facts_of_units(read, chosen or settings(), SALT, LAST_TICK))
    return {d.unit: d for d in decide_all(facts, looker)}


def test_details_are_read_only_for_units_that_are_due() -> None:
    looker = Looker()
    decisions_of(account(*fleet(4), items={"service-01": {"opt_out": True}}), looker)
    assert sorted(looker.units) == ["service-00", "service-02", "service-03"]


def test_details_can_refuse_a_unit() -> None:
    decisions = decisions_of(account(*fleet(2)), Looker(refreshing=frozenset({"service-00"})))
    assert {u: d.reason for u, d in decisions.items()} == {"service-00": "refreshing", "service-01": TERMINATE}
    item = {"service-01": {"stop_alarms": "errors"}}
    decisions = decisions_of(account(*fleet(2), items=item), Looker())
    assert decisions["service-01"].detail == "stop alarm errors is unknown: there is no such alarm"


def test_nobody_is_looked_at_whom_a_cap_refuses_anyway() -> None:
    looker = Looker()
    decisions = decisions_of(account(*fleet(40), counts=Counts(in_flight=3)), looker)
    assert reasons(decisions) == {TERMINATE: 2, "in-flight": 38}
    assert sorted(looker.units) == units(decisions, TERMINATE)


def test_each_is_looked_at_once() -> None:
    looker = Looker(refreshing=frozenset(f"service-{n:02}" for n in range(0, 40, 2)))
    decisions_of(account(*fleet(40)), looker)
    assert len(looker.units) == len(set(looker.units))


LEASH = Switch(halted=False, leashed=True)


def test_a_leashed_deployment_looks_too() -> None:
    first = min((f"service-{n:02}" for n in range(8)), key=lambda unit: roll(SALT, FRIDAY, unit))
    looker = Looker(refreshing=frozenset({first}))
    decisions = decisions_of(account(*fleet(8), switch=LEASH), looker)
    assert reasons(decisions) == {"leashed": 5, "refreshing": 1, "in-flight": 2}
    assert decisions[first].reason == "refreshing"


def test_a_leashed_deployment_records_no_more_than_would_have_been_terminated() -> None:
    """Nor looks at more: of ten thousand due, an unleashed one looks at a handful, too."""
    looker = Looker()
    states: dict[str, UnitState] = {}
    for _ in range(6):
        decisions = decisions_of(account(*fleet(40), states=states, switch=LEASH), looker)
        states |= {unit: UnitState(leashed_day=FRIDAY) for unit in units(decisions, "leashed")}
    assert len(states) == settings().max_per_day == 20
    assert reasons(decisions) == {"leashed": 20, "day-cap": 20}
    assert sorted(looker.units) == sorted(states)


def test_leashed_record_blocks_no_unit_after_unleashing() -> None:
    states = {f"service-{n:02}": UnitState(leashed_day=FRIDAY) for n in range(40)}
    decisions = decisions_of(account(*fleet(40), states=states), Looker())
    assert reasons(decisions) == {TERMINATE: 5, "in-flight": 35}


def test_the_record_of_another_day_is_none_of_todays() -> None:
    states = {f"service-{n:02}": UnitState(leashed_day=date(2026, 11, 19)) for n in range(40)}
    decisions = decisions_of(account(*fleet(40), states=states, switch=LEASH), Looker())
    assert reasons(decisions) == {"leashed": 5, "in-flight": 35}


@given(
    probabilities=st.lists(st.sampled_from([0.0, 0.3, 0.9, 1.0]), min_size=1, max_size=12),
    flying=st.integers(0, 6),
    today=st.integers(0, 21),
    refreshed=st.sets(st.integers(0, 11)),
    leashed=st.booleans(),
)
def test_tick_decides_each_unit_as_if_alone_after_earlier_grants(
    probabilities: Sequence[float], flying: int, today: int, refreshed: set[int], leashed: bool
) -> None:
    """The rule itself, without any of the shortcuts."""
    read = account(
        *fleet(len(probabilities)),
        items={f"service-{n:02}": {"probability": p} for n, p in enumerate(probabilities)},
        counts=Counts({FRIDAY: today}, flying),
        switch=Switch(halted=False, leashed=leashed),
    )
    looker = Looker(refreshing=frozenset(f"service-{n:02}" for n in refreshed))
    counts, expected = read.counts, {}
    facts = list(facts_of_units(read, settings(), SALT, LAST_TICK))
    for unit in sorted(facts, key=lambda f: roll(SALT, FRIDAY, f.unit)):
        decision = decide(replace(unit, counts=counts))
        if decision.reason in (TERMINATE, "leashed"):  # nobody need look at what is refused anyway
            [seen] = looker([replace(unit, counts=counts)])
            decision = decide(seen)
        expected[unit.unit] = decision
        if expected[unit.unit].target:
            counts = counts.plus_one(FRIDAY)
    decided = decisions_of(read, looker)
    assert {u: (d.reason, d.detail, d.target) for u, d in decided.items()} == {
        u: (d.reason, d.detail, d.target) for u, d in expected.items()
    }
