"""The calendars of the next weeks, and what is to be expected on their days."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cli.commands.ui import CachedForecast
from cli.forecasts.calendar_ahead import Basis, document
from tests.unit.cli.web.page_world import NOW, Ahead, World
from troop.chaos.facts import Switch

SWITCH = {"unleashed": Switch(False, False), "leashed": Switch(False, True), "halted": Switch(True, False)}


@pytest.fixture(scope="module")
def ahead() -> Ahead:
    return Ahead(World(), *(f"unit-{number}" for number in range(12)))


def basis(ahead: Ahead, switch: str = "unleashed") -> Basis:
    return Basis(replace(ahead.account, switch=SWITCH[switch]), ahead.settings, b"salt")


def test_days_say_why_they_are_closed(ahead: Ahead) -> None:
    forecast = document(basis(ahead), NOW, 4)
    days = {day["day"]: day for day in forecast["calendars"][0]["days"]}
    assert (min(days), max(days), len(days)) == ("2026-11-23", "2026-12-20", 28)
    closed = {day: one["closed"] and (one["closed"]["reason"], one["closed"]["detail"]) for day, one in days.items()}
    assert closed["2026-11-27"] == ("holiday", "Company outing")
    assert closed["2026-12-08"] == ("holiday", "Immaculate Conception")
    half = {day: one["half_day"] for day, one in days.items() if one["half_day"]}
    assert half == {"2026-12-04": {"open": "09:00", "close": "12:00", "name": "Inventory"}}
    assert days["2026-12-04"]["ticks"] == days["2026-12-03"]["ticks"] // 2
    assert closed["2026-12-14"] == ("freeze", "Year-end closing")
    assert closed["2026-12-05"][0] == "weekend"
    assert closed["2026-11-24"] is None
    assert days["2026-11-24"]["ticks"] == 24
    assert days["2026-11-23"]["ticks"] == 7  # of 24: the others are over


def test_expected_are_those_that_a_tick_would_decide(ahead: Ahead) -> None:
    hits = document(basis(ahead), NOW, 4)["expected"]
    assert len(hits) > 5
    assert {hit["reason"] for hit in hits} == {"terminate"}
    assert all(hit["tick"] > "2026-11-23T12:00" for hit in hits)
    assert not {hit["day"] for hit in hits} & {"2026-11-27", "2026-12-08", "2026-12-14", "2026-12-05"}
    assert {hit["calendar"] for hit in hits} == {"default"}
    assert len({(hit["day"], hit["unit"]) for hit in hits}) == len(hits)
    first = hits[0]
    assert (first["group"], first["instance_id"][:2]) == (first["unit"], "i-")


@pytest.mark.parametrize(
    ("elsewhere", "now", "last"),
    [("America/New_York", "2026-11-23T02:00", "2026-11-29"), ("Pacific/Auckland", "2026-11-22T12:00", "2026-11-22")],
)
def test_each_calendar_has_its_own_weeks(ahead: Ahead, elsewhere: str, now: str, last: str) -> None:
    """On a Monday it is still Sunday elsewhere, whose weeks end sooner; on a Sunday already Monday."""
    chosen = ahead.settings.chaos
    night = replace(chosen.calendars["night"], time_zone=elsewhere)
    settings = replace(ahead.settings, chaos=replace(chosen, calendars={**chosen.calendars, "night": night}))
    forecast = document(replace(basis(ahead), settings=settings), datetime.fromisoformat(now).replace(tzinfo=UTC), 1)
    days = {one["calendar"]: one["days"][-1]["day"] for one in forecast["calendars"]}
    assert (days["default"], days["night"] == last) == (last, False)
    assert all(hit["day"] <= last for hit in forecast["expected"])
    assert bool(forecast["expected"]) == (last == "2026-11-29")  # after a Sunday nothing is left of its week


def test_forecast_reports_leash_and_halt_and_can_ignore_them(ahead: Ahead) -> None:
    free = document(basis(ahead), NOW, 2)["expected"]
    leashed = document(basis(ahead, "leashed"), NOW, 2)
    assert {hit["reason"] for hit in leashed["expected"]} == {"leashed"}
    assert [(h["unit"], h["tick"]) for h in leashed["expected"]] == [(h["unit"], h["tick"]) for h in free]
    halted = document(basis(ahead, "halted"), NOW, 2)
    assert (halted["expected"], halted["halted"]) == ([], True)
    assert document(basis(ahead, "halted"), NOW, 2, unleashed=True)["expected"] == free


def test_forecast_without_the_salt_has_days_and_no_terminations(ahead: Ahead) -> None:
    forecast = document(replace(basis(ahead), salt=None, no_salt="you may not"), NOW, 1)
    assert (forecast["expected"], forecast["not_expected"]) == (None, "you may not")
    assert len(forecast["calendars"][0]["days"]) == 7


def test_forecast_is_cached_for_a_minute_or_until_a_change(ahead: Ahead) -> None:
    reads: list[float] = []
    now = [0.0]

    def read() -> Basis:
        reads.append(now[0])
        return basis(ahead)

    forecaster = CachedForecast(read, lambda: NOW, lambda: now[0])
    for now[0] in (0.0, 30.0, 61.0):
        forecaster(1, unleashed=False)
    assert reads == [0.0, 61.0]
    forecaster.forget()
    forecaster(1, unleashed=False)
    assert len(reads) == 3


def test_forecast_read_during_a_change_is_not_cached(ahead: Ahead) -> None:
    reads = 0

    def read() -> Basis:
        nonlocal reads
        reads += 1
        if reads == 1:
            forecaster.forget()  # a halt, after the switch was read
        return basis(ahead, "unleashed" if reads == 1 else "halted")

    forecaster = CachedForecast(read, lambda: NOW, lambda: 0.0)
    assert [forecaster(1, unleashed=False)["halted"] for _ in range(3)] == [False, True, True]
    assert reads == 2
