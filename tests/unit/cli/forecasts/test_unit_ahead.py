"""The next days of one unit: odds for everybody, and what happens for those who may read the salt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from cli.forecasts import calendar_ahead, unit_ahead
from cli.forecasts.calendar_ahead import Basis
from tests.unit.cli.web.page_world import NOW, Ahead, World
from troop.chaos.facts import Switch, UnitState
from troop.chaos.inside import Inside

HALVES = {"web": {"unit": "web", "version": 1, "probability": 0.5}}


@pytest.fixture
def basis() -> Basis:
    basis = Ahead(World(), "web", "ledger").basis()
    return replace(basis, account=replace(basis.account, items=HALVES, switch=Switch(halted=False, leashed=False)))


def without_salt(basis: Basis, **item: Any) -> Basis:
    items = {"web": {**HALVES["web"], **item}}
    return replace(basis, salt=None, no_salt="you may not read it", account=replace(basis.account, items=items))


def test_days_of_a_unit_agree_with_the_calendar_of_all(basis: Basis) -> None:
    days = unit_ahead.document(basis, "web", NOW)["days"]
    assert len(days) == 14
    hit_days = [day for day in days if day["expected"] and day["expected"]["hit"]]
    hits = [(day["day"], day["expected"]["at"], day["expected"]["instance_id"]) for day in hit_days]
    calendar = calendar_ahead.document(basis, NOW, 3)["expected"]
    assert hits == [
        (hit["day"], hit["at"], hit["instance_id"])
        for hit in calendar
        if hit["unit"] == "web" and hit["day"] <= days[-1]["day"]
    ]
    assert len(hits) >= 2
    for day in hit_days:
        first, *others = day["expected"]["rank"]
        assert first == day["expected"]["instance_id"]
        assert others


def test_without_the_salt_each_open_day_has_its_odds_and_closed_days_a_reason(basis: Basis) -> None:
    document = unit_ahead.document(without_salt(basis), "web", NOW)
    assert (document["not_expected"], document["probability"]) == ("you may not read it", 0.5)
    assert {day["expected"] for day in document["days"]} == {None}
    by_day = {day["day"]: (day["chance"], day["reason"]) for day in document["days"]}
    assert by_day["2026-11-24"] == (0.5, None)
    assert by_day["2026-11-28"] == (0.0, "weekend")
    opened = sum(reason is None for _, reason in by_day.values())
    assert document["chance_of_any"] == pytest.approx(1 - 0.5**opened, rel=0.01)


def test_rest_after_a_termination_lowers_the_odds_of_the_next_days(basis: Basis) -> None:
    """With two business days of rest: 1/2, 1/2 of the half without a hit, then all that had none in the last two."""
    start = datetime(2026, 11, 23, tzinfo=UTC)
    document = unit_ahead.document(without_salt(basis, min_days_between=2), "web", start)
    chances = [day["chance"] for day in document["days"] if day["reason"] is None]
    assert chances[:4] == pytest.approx([0.5, 0.25, 0.5 * (1 - 0.25), 0.5 * (1 - 0.375)])
    rested = replace(basis.account, states={"web": UnitState(last_day=date(2026, 11, 23))})
    tomorrow = unit_ahead.document(
        without_salt(replace(basis, account=rested), min_days_between=2), "web", start + timedelta(days=1)
    )["days"][0]
    assert (tomorrow["reason"], tomorrow["chance"]) == ("too-soon", 0.0)


def test_chance_of_today_falls_while_its_minutes_pass_without_a_termination(basis: Basis) -> None:
    def today(hour: int, probability: float) -> float:
        at = datetime(2026, 11, 24, hour, tzinfo=UTC)
        chance: float = unit_ahead.document(without_salt(basis, probability=probability), "web", at)["days"][0][
            "chance"
        ]
        return chance

    early, noon, late = (today(hour, 0.5) for hour in (6, 12, 13))
    assert early == 0.5
    assert early > noon > late
    assert today(13, 1.0) == 1.0  # it must still come


def test_units_that_cannot_be_hit_say_why_on_every_open_day(basis: Basis) -> None:
    opted_out = without_salt(basis, opt_out=True, reason="a migration", until="2026-11-25")
    days = {day["day"]: day for day in unit_ahead.document(opted_out, "web", NOW)["days"]}
    assert days["2026-11-25"]["detail"] == "opted out by item until 2026-11-25: a migration"
    assert days["2026-11-30"]["reason"] is None
    halted = replace(basis, account=replace(basis.account, switch=Switch(halted=True, leashed=False)))
    document = unit_ahead.document(halted, "web", NOW)
    assert document["halted"]
    assert document["chance_of_any"] == 0
    malformed = unit_ahead.document(without_salt(basis, opt_out="perhaps"), "web", NOW)
    assert malformed["probability"] is None
    assert {day["reason"] for day in malformed["days"]} >= {"malformed"}


def with_method(basis: Basis, method: str, inside_instances: bool = True) -> Basis:
    """The unit, whose owner consents to faults inside its instances."""
    tags = {"troop:inside": "yes"}
    groups = [
        replace(group, tags={**group.tags, **tags}, propagated=frozenset(tags))
        if group.name.startswith("web")
        else group
        for group in basis.account.groups
    ]
    consents = {i.instance_id: "yes" for group in groups for i in group.instances if group.propagated}
    account = replace(
        basis.account, groups=groups, items={"web": {**HALVES["web"], "method": method}}, inside=Inside(consents)
    )
    chosen = replace(basis.settings.chaos, inside_instances=inside_instances)
    return replace(basis, account=account, settings=replace(basis.settings, chaos=chosen))


def test_odds_count_only_the_faults_that_can_hit(basis: Basis) -> None:
    def odds(changed: Basis) -> tuple[Any, Any]:
        days = unit_ahead.document(replace(changed, salt=None), "web", NOW)["days"]
        one = next(day for day in days if day["day"] == "2026-11-24")
        return one["chance"], one["reason"]

    both = with_method(basis, "crash, cpu")
    assert odds(both) == (0.5, None)
    assert odds(with_method(basis, "crash, cpu", inside_instances=False)) == (0.25, None)
    assert odds(with_method(basis, "cpu", inside_instances=False)) == (0.0, "inside")
    nobody = replace(both, account=replace(both.account, inside=Inside()))
    assert odds(nobody) == (0.25, None)
    only = with_method(basis, "cpu, memory")
    assert odds(replace(only, account=replace(only.account, inside=Inside()))) == (0.0, "inside")


def test_a_long_fault_has_less_of_its_day_left(basis: Basis) -> None:
    def chance(method: str) -> float:
        at = datetime(2026, 11, 24, 13, tzinfo=UTC)
        days = unit_ahead.document(replace(with_method(basis, method), salt=None), "web", at)["days"]
        value: float = days[0]["chance"]
        return value

    assert 0 < chance("cpu seconds=900") < chance("crash, cpu seconds=900") < chance("crash") < 0.5


def test_the_rank_of_a_lasting_fault_leaves_out_instances_that_had_one(basis: Basis) -> None:
    changed = with_method(basis, "cpu")
    days = unit_ahead.document(changed, "web", NOW)["days"]
    first = next(day["expected"] for day in days if day["expected"] and day["expected"]["hit"])
    hits = {first["instance_id"]: "2026-11-02#web"}
    account = replace(changed.account, inside=replace(changed.account.inside, hits=hits))
    later = unit_ahead.document(replace(changed, account=account), "web", NOW)["days"]
    ranks = [day["expected"]["rank"] for day in later if day["expected"] and day["expected"]["hit"]]
    assert ranks
    assert all(first["instance_id"] not in rank for rank in ranks)
