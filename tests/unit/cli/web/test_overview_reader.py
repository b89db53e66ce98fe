"""What the page's overview reads, how often, and a year of terminations."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from cli.chaos import year
from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.commands.ui import CachedSettings
from cli.forecasts import calendar_ahead
from cli.shared.errors import CliError, Exit
from cli.shared.settings_files import TriedSettings
from cli.web import overview_reader
from cli.web.overview_reader import SECONDS, OverviewReader
from tests.patience import PATIENCE
from tests.unit.cli.conftest import ARN, READ, event, risk
from tests.unit.cli.web.page_world import Ahead, World, _deployed, run, termination
from troop.chaos.slowness import ENOUGH
from troop.shared import moments

DENIED = Answer(403, {"Message": "User: x is not authorized to perform: y"})


class Desk:
    """A reader with a clock that the test moves."""

    def __init__(self) -> None:
        self.world, self.at = World(), datetime(2026, 11, 23, 12, tzinfo=UTC)
        self.world.add("web")
        client = TroopClient(self.world, ARN, "Troop", sleep=lambda _: None)
        ahead = Ahead(self.world, "web")
        self.reader = OverviewReader(client, lambda: ahead.settings, ahead.basis, now=lambda: self.at)

    def requests(self, seconds: float = 0) -> list[str]:
        """The paths that another look requests, so much later."""
        self.at += timedelta(seconds=seconds)
        before = len(self.world.calls)
        for name in SECONDS:
            self.reader.part(name)
        return sorted(path for _, path, _ in self.world.calls[before:])


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_each_part_is_read_at_its_own_pace_for_all_tabs(desk: Desk) -> None:
    light = ["benchmarks", "benchmarks", "events", "fleets"]  # the open runs, and those of the month
    opened = ["benchmarks", "fleets"]  # for the overview of many deployments, which shows no costs
    assert desk.requests() == sorted([*light, *opened, "health", "groups", "risks", "events"])
    assert desk.requests(seconds=10) == []
    assert desk.requests(seconds=25) == light
    assert desk.requests(seconds=100) == sorted([*light, *opened, "health"])
    assert "groups" in desk.requests(seconds=600)


def test_risks_of_an_old_or_partial_reading_are_marked(desk: Desk) -> None:
    desk.world.reading = READ | {"unread": ["images could not be read: AccessDenied"]}
    desk.world.risks = [risk("one-zone", "web", "high", unknown="it is not among what could be listed")]
    remarks = desk.reader.part("risks")["value"]["remarks"]
    assert remarks == [
        "The account was last read at 2026-11-20T03:23:00Z: later changes of risks are not known.",
        "1 of these risks could not be checked, and count as before.",
        "Not known: images could not be read: AccessDenied.",
    ]
    desk.world.reading = READ | {"at": "2026-11-23T03:23:00.000Z"}
    desk.at += timedelta(hours=2)
    desk.world.risks = []
    assert desk.reader.part("risks")["value"]["remarks"] == []


def test_a_change_is_seen_at_the_next_request(desk: Desk) -> None:
    desk.requests()
    desk.reader.forget()
    assert desk.requests() == sorted([*["benchmarks"] * 3, *["fleets"] * 2, "events", "groups"])


def test_a_part_that_cannot_be_read_keeps_its_value_with_its_time(desk: Desk) -> None:
    desk.requests()
    first = desk.reader.part("today")["at"]
    desk.world.refusals["GET", "events"] = [DENIED]
    assert "events" in desk.requests(seconds=40)
    part = desk.reader.part("today")
    assert part["at"] == first
    assert part["value"]["by_status"] == {}
    assert "permission denied" in part["error"]
    assert desk.reader.part("health")["error"] is None
    del desk.world.refusals["GET", "events"]
    assert desk.reader.part("today")["error"] is None  # an error is tried again at once


def test_a_year_is_read_once_and_then_only_what_is_new_or_can_change(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.world.events = [event("b", "2026-11-20"), event("a", "2026-11-19", "TERMINATED"), event("c", "2026-11-02")]
    assert desk.reader.part("year")["value"]["days"]["2026-11-19"]["unrecovered"] == 0
    desk.world.events = [event("d", "2026-11-23"), event("a", "2026-11-19", "UNRECOVERED")]
    desk.at += timedelta(hours=1)
    days = desk.reader.part("year")["value"]["days"]
    (*_, last) = [query for _, path, query in desk.world.calls if path == "events"]
    assert last["since"] == "2026-11-19T10:00:00.000Z"  # the oldest that can still change
    assert list(days) == ["2026-11-02", "2026-11-19", "2026-11-20", "2026-11-23"]
    assert days["2026-11-19"] == {"hits": 1, "unrecovered": 1, "leashed": 0}
    monkeypatch.setattr(overview_reader, "MOST_OF_YEAR", 2)
    desk.world.events = [event("f", "2026-11-23"), *desk.world.events]  # earlier ones may be missing between
    desk.at += timedelta(hours=1)
    value = desk.reader.part("year")["value"]
    assert (value["complete_since"], list(value["days"])) == ("2026-11-23", ["2026-11-23"])


def test_a_unit_that_leaves_chaos_is_named_at_once(desk: Desk) -> None:
    desk.world.events = [termination("web", "2026-11-23", verdict=None)]
    assert desk.reader.part("today")["value"]["by_verdict"] == {}
    assert desk.reader.part("units")["value"]["unrecovered"] == []
    broken = termination("web", "2026-11-23")
    broken["verdict"] |= {"value": "BROKEN", "why": "alarm web-5xx went off"}
    desk.world.events = [broken]
    desk.world.units["web"] |= {"unrecovered": broken["event_id"], "left_for": "broken"}
    desk.at += timedelta(seconds=SECONDS["today"])
    assert desk.reader.part("today")["value"]["by_verdict"] == {"BROKEN": 1}
    (left,) = desk.reader.part("units")["value"]["unrecovered"]
    assert (left["unit"], left["left_for"], left["why"]) == ("web", "broken", "alarm web-5xx went off")
    assert "groups" not in desk.requests(seconds=SECONDS["today"])


def test_the_letter_of_the_last_week_follows_late_verdicts(desk: Desk) -> None:
    waiting, earlier = termination("b", "2026-11-20", verdict=None), termination("c", "2026-11-02")
    desk.world.events = [event("d", "2026-11-23"), waiting, termination("a", "2026-11-16", owner="shop"), earlier]
    letter = desk.reader.part("year")["value"]["letter"]
    assert letter[0] == ("2026-11-16 to 2026-11-22: 2 terminations of 2 units, 1 HELD, 1 without a verdict yet.")
    assert {line.partition(":")[0] for line in letter[1:]} == {"shop", "no owner"}
    desk.world.events[1] = termination("b", "2026-11-20")
    desk.at += timedelta(hours=1)
    assert "2 HELD." in desk.reader.part("year")["value"]["letter"][0]

    def refused() -> TriedSettings:
        raise CliError(Exit.FORBIDDEN, "you may not read the template")

    desk.reader.settings = refused
    desk.at += timedelta(hours=1)
    value = desk.reader.part("year")["value"]
    assert (value["letter"], len(value["days"])) == (None, 4)


def test_days_and_weeks_count_what_was_terminated() -> None:
    events = [
        event("a", "2026-11-20", "ABANDONED"),
        event("b", "2026-11-20", "LEASHED"),
        event("c", "2026-11-19", recovery_seconds=10.0),
        event("d", "2026-11-16", recovery_seconds=40.0),
        event("e", "2026-11-13", recovery_seconds=7.0),
    ]
    assert year.days(events)["2026-11-20"] == {"hits": 0, "unrecovered": 0, "leashed": 1}
    assert year.weeks(events) == [
        {"week": "2026-11-09", "recoveries": 1, "median": 7.0, "longest": 7.0},
        {"week": "2026-11-16", "recoveries": 2, "median": 25.0, "longest": 40.0},
    ]


def test_slow_goes_by_earlier_recoveries_of_the_same_method() -> None:
    first = date(2026, 1, 5)
    usual = [event("web", str(first + timedelta(days=n)), recovery_seconds=100.0) for n in range(ENOUGH)]
    drained = event("web", "2026-02-01", method="drain", recovery_seconds=900.0)
    slow = event("web", "2026-02-02", recovery_seconds=201.0)
    lost = event("web", "2026-02-03", "UNRECOVERED")
    document = year.recoveries([lost, slow, drained, *reversed(usual)])
    assert [point["slow"] for point in document["points"]] == [*[False] * (ENOUGH + 1), True, False]
    assert document["points"][-1]["seconds"] is None
    assert document["usual"] == 100.0
    assert year.recoveries(usual[1:])["usual"] is None


def test_recovery_of_more_than_a_year_before_does_not_count() -> None:
    first = date(2025, 11, 20)
    earlier = [event("web", str(first + timedelta(days=n)), recovery_seconds=100.0) for n in range(ENOUGH)]
    for day, slow in (("2026-11-20", True), ("2026-11-21", False)):
        document = year.recoveries([event("web", day, recovery_seconds=300.0), *reversed(earlier)])
        assert document["points"][-1]["slow"] == slow


def test_recovery_and_the_stage_that_became_slower_are_named_with_their_first_event() -> None:
    source, began = random.Random(5), datetime(2026, 9, 1, 9, tzinfo=UTC)
    events = []
    for n in range(40):
        hit = began + timedelta(days=n)
        launched, boot = source.gauss(10, 0.5), source.gauss(90 if n >= 25 else 40, 2)
        ends = [moments.iso(hit + timedelta(seconds=seconds)) for seconds in (launched, launched + boot)]
        stages: dict[str, Any] = {
            "noticed": None,
            "launched": ends[0],
            "running": None,
            "in_service": ends[1],
            "healthy": [],
        }
        events.append(
            event("web", str(hit.date()), recovery_seconds=launched + boot, recovered_at=ends[1], stages=stages)
            | {"terminated_at": moments.iso(hit)}
        )
    document = year.recoveries(events[::-1])
    assert [(one["stage"], one["day"]) for one in document["changes"]] == [
        ("recovery", "2026-09-26"), ("in_service", "2026-09-26")
    ]  # fmt: skip
    assert document["changes"][0]["event_id"] == events[25]["event_id"]
    assert (document["changes"][1]["before"], document["changes"][1]["after"]) == (
        pytest.approx(40, rel=0.05), pytest.approx(90, rel=0.05)
    )  # fmt: skip
    assert year.recoveries(events[24::-1])["changes"] == []
    drained = event("web", "2026-11-01", method="drain", recovery_seconds=50.0)
    assert year.recoveries([drained, *events[::-1]])["changes"] == [], "only recoveries alike are compared"


def test_change_below_what_is_known_of_recoveries_is_none() -> None:
    first = date(2026, 9, 1)
    events = [event("web", str(first + timedelta(days=n)), recovery_seconds=9.0 if n > 20 else 5.0) for n in range(40)]
    assert year.recoveries(events[::-1])["changes"] == []


def test_the_next_tick_skips_closed_days_and_settings_are_read_once() -> None:
    reads = 0

    def read() -> TriedSettings:
        nonlocal reads
        reads += 1
        return _deployed(("web",))[0]

    settings = CachedSettings(read)
    next_tick = lambda now: calendar_ahead.next_tick(settings(), now)  # noqa: E731
    assert next_tick(datetime(2026, 11, 23, 13, 50, tzinfo=UTC)) == (
        datetime(2026, 11, 24, 6, 0, tzinfo=UTC),
        "night",
    )  # 01:00 in New York is before 09:00 in Vienna
    assert next_tick(datetime(2026, 11, 30, 8, 50, tzinfo=UTC)) == (datetime(2026, 11, 30, 9, 0, tzinfo=UTC), "default")
    assert next_tick(datetime(2026, 11, 27, 9, 0, tzinfo=UTC)) == (datetime(2026, 11, 30, 6, 0, tzinfo=UTC), "night")
    assert reads == 1


def test_without_the_settings_the_next_tick_is_unknown_and_the_health_is_not(desk: Desk) -> None:
    def refused() -> TriedSettings:
        raise CliError(Exit.FORBIDDEN, "you may not read the template")

    desk.reader.settings = refused
    part = desk.reader.part("tick")
    assert (part["value"], part["error"]) == (None, "you may not read the template")
    assert desk.reader.part("health")["error"] is None


def test_slow_part_keeps_no_other_waiting(desk: Desk) -> None:
    """In a large account, units take many requests."""
    begun, may_end = threading.Event(), threading.Event()

    basis = desk.reader.basis

    def slow() -> calendar_ahead.Basis:
        begun.set()
        assert may_end.wait(PATIENCE)
        return basis()

    desk.reader.basis = slow
    thread = threading.Thread(target=desk.reader.part, args=("ahead",))
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        for name in SECONDS.keys() - {"ahead"}:
            assert desk.reader.part(name)["error"] is None
        assert thread.is_alive(), "it ended first"
    finally:
        may_end.set()
        thread.join()


def test_units_that_need_a_person_are_named_with_what_is_known(desk: Desk) -> None:
    desk.world.add("orders", groups=2, unrecovered="2026-11-20#orders")
    desk.world.add("bad", problem="tag troop:probability is 'often'")
    at = "2026-11-20T10:00:05.000Z"
    desk.world.events = [
        event("orders", status="UNRECOVERED", terminated_at=at, detail="capacity 1 of 2", launch_failure="a quota")
    ]
    value = desk.reader.part("units")["value"]
    assert value["unrecovered"] == [
        {
            "unit": "orders",
            "id": "orders",
            "event_id": "2026-11-20#orders",
            "in_service": 6,
            "desired": 6,
            "hit_at": at,
            "left_for": "unrecovered",
            "why": "",
            "detail": "capacity 1 of 2",
            "launch_failure": "a quota",
        }
    ]
    assert [(one["unit"], "often" in one["why"]) for one in value["malformed"]] == [("bad", True)]
    assert value["odds"] == {"units": 1, "a_day": 0.2}
    desk.world.events = []  # without its event, the unit is still named
    desk.reader.forget()
    (lost,) = desk.reader.part("units")["value"]["unrecovered"]
    assert (lost["unit"], lost["hit_at"], lost["detail"]) == ("orders", None, "")


def test_cost_of_the_month_is_that_of_its_runs(desk: Desk) -> None:
    costs = {
        "a": ("2026-11-01T00:00:00.000Z", 1.5),
        "b": ("2026-11-22T10:00:00.000Z", 2.0),
        "c": ("2026-10-31T23:59:59.000Z", 9.0),
    }
    for name, (at, amount) in costs.items():
        cost = {"amount": amount, "currency": "USD", "items": [], "unknown": []}
        desk.world.runs[name] = {"run": run(run=name, at=at, cost=cost), "cells": [], "resources": []}
    desk.world.runs["d"] = {"run": run(run="d", cost=None), "cells": [], "resources": []}
    month = desk.reader.part("benchmarks")["value"]["month"]
    assert month == {"runs": 3, "amounts": {"USD": 3.5}, "limited": False}


def test_units_that_became_slower_lately_are_named() -> None:
    first = date(2026, 9, 1)
    events = [
        event(unit, str(first + timedelta(days=n)), recovery_seconds=seconds)
        for unit, seconds in (("web", 100.0), ("search", 60.0), ("rare", 50.0))
        for n in range(ENOUGH if unit != "rare" else 1)
    ]
    events += [
        event("web", "2026-11-20", recovery_seconds=120.0),
        event("search", "2026-11-20", recovery_seconds=180.0),
        event("rare", "2026-11-20", recovery_seconds=900.0),  # its usual time is not known
        event("lost", "2026-11-21", "UNRECOVERED", recovery_seconds=None),
    ]
    assert year.lately(events, date(2026, 10, 24)) == {
        "days": 30,
        "units": 3,
        "usual": 1,
        "slower": [{"unit": "search", "times": 3.0}],
        "unrecovered": ["lost"],
    }


MONDAY = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "day", "is_today"),
    [
        (MONDAY, "2026-11-23", True),
        (MONDAY.replace(hour=15), "2026-11-24", False),  # after 15:00 in Vienna
        (datetime(2026, 11, 26, 15, tzinfo=UTC), "2026-11-30", False),  # Friday is an extra day off
    ],
)
def test_next_day_is_that_of_calendars_which_units_have(now: datetime, day: str, is_today: bool) -> None:
    """Nobody uses the calendar of nights, which opens on that Friday."""
    basis = Ahead(World(), *(f"u{number}" for number in range(40))).basis()
    ahead = calendar_ahead.next_day(basis, now)
    assert ahead is not None
    assert (ahead["day"], ahead["is_today"]) == (day, is_today)
    if not is_today:
        assert {hit["day"] for hit in ahead["expected"]} == {day}
    assert calendar_ahead.next_day(replace(basis, salt=None), now) == {
        **ahead,
        "expected": None,
        "not_expected": "you may not read it",
    }
