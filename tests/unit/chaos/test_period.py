"""The summary of a period: what is counted, listed and compared, in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import event
from troop.chaos.events import Status
from troop.chaos.period import MOST_LISTED, VERDICTS, Outcome, Period, UnitNow
from troop.chaos.slowness import is_slow, usual
from troop.chaos.verdict import Verdict, VerdictValue

FIRST, LAST = date(2026, 10, 5), date(2026, 10, 25)
SINCE, UNTIL = datetime(2026, 10, 5, tzinfo=UTC), datetime(2026, 10, 26, tzinfo=UTC)


def outcome(unit: str = "web", day: str = "2026-10-07", verdict: str = "held", **more: Any) -> Outcome:
    on = date.fromisoformat(day)
    values: dict[str, Any] = {
        "event_id": f"{day}#{unit}",
        "unit": unit,
        "owner": "",
        "day": on,
        "at": datetime(on.year, on.month, on.day, 12, tzinfo=UTC),
        "status": Status.RECOVERED,
        "method": "crash",
        "seconds": 60.0,
        "stages": {},
        "verdict": verdict,
        "why": "",
    }
    return Outcome(**values | more)


def lost(unit: str = "web", day: str = "2026-10-07", verdict: str = "broken", **more: Any) -> Outcome:
    return outcome(unit, day, verdict, status=Status.UNRECOVERED, seconds=None, **more)


def summary(outcomes: Iterable[Outcome], now: Iterable[UnitNow] | None = None) -> dict[str, Any]:
    summed = Period(SINCE, UNTIL, FIRST, LAST)
    for one in sorted(outcomes, key=lambda one: (one.at, one.event_id), reverse=True):
        summed.add(one)
    return summed.document(now)


AT = datetime(2026, 10, 7, 12, tzinfo=UTC)
VERDICT = Verdict(VerdictValue.UNKNOWN, "web-errors was changed", AT, AT, AT)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"status": Status.LEASHED}, ""),
        ({"status": Status.CLAIMED}, ""),
        ({"status": Status.ABANDONED}, ""),
        ({"status": Status.GONE_ELSEWHERE}, ""),
        ({"status": Status.TERMINATED}, "pending"),
        ({"status": Status.RECOVERED, "settles_at": AT}, "pending"),
        ({"status": Status.RECOVERED}, "unjudged"),
        ({"status": Status.UNRECOVERED}, "unjudged"),
        ({"status": Status.RECOVERED, "settles_at": AT, "verdict": VERDICT}, "unknown"),
        ({"status": Status.GROUP_DELETED, "verdict": VERDICT}, "unknown"),
    ],
)
def test_verdict_of_a_stored_event(values: dict[str, Any], verdict: str) -> None:
    assert Outcome.from_event(event(**values)).verdict == verdict


def test_reason_is_that_of_the_verdict_or_else_of_the_event() -> None:
    assert Outcome.from_event(event(detail="capacity 2 of 3")).why == "capacity 2 of 3"
    assert Outcome.from_event(event(detail="capacity 3 of 3", verdict=VERDICT)).why == "web-errors was changed"


def test_counts_and_lists() -> None:
    read = summary(
        [
            outcome("web", "2026-10-07"),
            outcome("web", "2026-10-14", "broken", why="web-errors went off"),
            lost("db", "2026-10-15", why="capacity 2 of 3"),
            outcome("db", "2026-10-08", "unknown", why="no data"),
            outcome("db", "2026-10-09", "pending", status=Status.TERMINATED, seconds=None),
            outcome("old", "2026-10-25", "unjudged"),
            outcome("web", "2026-10-16", "", status=Status.LEASHED),
            outcome("web", "2026-10-19", "", status=Status.ABANDONED),
            outcome("web", "2026-10-04"),  # before the period
            outcome("web", "2026-10-26"),  # after it
        ]
    )
    totals = read["totals"]
    assert {key: totals[key] for key in ("terminations", *VERDICTS, "unrecovered", "slower")} == {
        "terminations": 6,
        "held": 1,
        "broken": 2,
        "unknown": 1,
        "pending": 1,
        "unjudged": 1,
        "unrecovered": 1,
        "slower": 0,
    }
    assert read["without_termination"] == {"LEASHED": 1, "ABANDONED": 1}
    assert [(one["unit"], one["why"]) for one in read["broken"]] == [
        ("db", "capacity 2 of 3"),
        ("web", "web-errors went off"),
    ]
    assert [(one["unit"], one["why"]) for one in read["unknown"]] == [("db", "no data")]
    assert [(week["week"], week["terminations"], week["broken"]) for week in read["weeks"]] == [
        ("2026-10-05", 3, 0),
        ("2026-10-12", 2, 2),
        ("2026-10-19", 1, 0),
    ]
    assert (read["never_hit"], read["opted_out"]) == (None, None)


def test_lasting_faults_are_counted_and_spread_apart() -> None:
    fault: dict[str, Any] = {"method": "latency", "lasting": True, "stages": {"launched": 5.0}}
    read = summary(
        [
            outcome("web", stages={"launched": 9.0}),
            outcome("web", "2026-10-08", seconds=3.0, stays=True, **fault),
            outcome("web", "2026-10-09", seconds=200.0, **fault),
            outcome("web", "2026-10-12", "pending", status=Status.RUNNING, seconds=None, **fault),
        ]
    )
    totals = read["totals"]
    assert [totals[key] for key in ("hits", "terminations", "injections", "pending")] == [4, 1, 3, 1]
    assert totals["recovery"] == {"count": 1, "median": 60.0, "p90": 60.0}
    assert totals["recovery_after_faults"] == {"count": 2, "median": 101.5, "p90": 200.0}
    assert totals["stages"]["launched"]["median"] == 9.0


def test_recovery_of_an_instance_that_stays_is_compared_only_with_its_like() -> None:
    fault: dict[str, Any] = {"method": "latency", "lasting": True}
    stayed = [outcome("web", f"2026-09-{n + 10}", seconds=3.0, stays=True, **fault) for n in range(5)]
    assert summary([*stayed, outcome("web", seconds=200.0, **fault)])["slower"] == []
    assert summary([*stayed, outcome("web", seconds=200.0, stays=True, **fault)])["totals"]["slower"] == 1


def test_median_and_p90_of_each_stage() -> None:
    times = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 1000.0]
    read = summary(
        outcome("web", f"2026-10-{n + 10}", seconds=seconds, stages={"launched": n + 1.0})
        for n, seconds in enumerate(times)
    )
    (unit,) = read["units"]
    assert unit["recovery"] == {"count": 11, "median": 60.0, "p90": 100.0}
    assert unit["stages"]["launched"] == {"count": 11, "median": 6.0, "p90": 10.0}
    assert unit["stages"]["healthy"] == {"count": 0, "median": None, "p90": None}
    assert all(unit[key] == read["totals"][key] for key in ("recovery", "stages"))


def test_recovery_is_compared_with_those_before_the_period() -> None:
    earlier = [outcome("web", f"2026-09-{n + 10}") for n in range(5)]
    read = summary([*earlier, outcome("web", "2026-10-07", seconds=200.0)])
    assert read["slower"] == [
        {
            "event_id": "2026-10-07#web",
            "unit": "web",
            "owner": None,
            "day": "2026-10-07",
            "seconds": 200.0,
            "usual_seconds": 60.0,
        }
    ]
    assert (read["totals"]["terminations"], read["totals"]["slower"], read["weeks"][0]["slower"]) == (1, 1, 1)
    assert summary([*earlier[1:], outcome("web", seconds=200.0)])["slower"] == []


def test_reading_can_stop_once_each_recovery_has_enough_before_it() -> None:
    summed = Period(SINCE, UNTIL, FIRST, LAST)
    assert summed.is_complete
    summed.add(outcome())
    for n in range(20):
        assert not summed.is_complete
        at = SINCE - timedelta(days=n)
        summed.add(outcome(day=at.date().isoformat(), at=at - timedelta(hours=1)))
    assert summed.is_complete


@pytest.mark.parametrize(
    ("outcomes", "mended", "not_mended"),
    [
        ([lost(day="2026-10-07"), outcome(day="2026-10-08")], [("2026-10-07", "2026-10-08")], []),
        ([outcome(day="2026-10-07"), lost(day="2026-10-08")], [], ["2026-10-08"]),
        ([outcome(verdict="broken", day="2026-10-07"), outcome(day="2026-10-09"), outcome(day="2026-10-08")],
         [("2026-10-07", "2026-10-08")], []),
        ([lost(day="2026-10-07"), outcome(day="2026-10-08"), lost(day="2026-10-09")],
         [("2026-10-07", "2026-10-08")], ["2026-10-09"]),
        ([lost(day="2026-10-07"), outcome(day="2026-10-08", verdict="unknown")], [], ["2026-10-07"]),
        ([lost(day="2026-10-07", verdict="unjudged"), outcome(day="2026-10-08")], [("2026-10-07", "2026-10-08")], []),
        ([outcome(day="2026-10-07")], [], []),
    ],
)  # fmt: skip
def test_failures_that_held_later_and_those_that_did_not(
    outcomes: list[Outcome], mended: list[tuple[str, str]], not_mended: list[str]
) -> None:
    read = summary(outcomes)
    assert [(one["failed"]["day"], one["held"]["day"]) for one in read["mended"]] == mended
    assert [one["failed"]["day"] for one in read["not_mended"]] == not_mended


def now(unit: str, owner: str = "", *, endless: bool = False, state: str = "taking part") -> UnitNow:
    return UnitNow(unit, owner, state, f"why {unit}", endless)


def test_units_never_hit_and_those_opted_out_without_an_end() -> None:
    read = summary(
        [outcome("web"), outcome("db", verdict="", status=Status.LEASHED)],
        [now("web", endless=True, state="opted out"), now("db", "team-db"), now("old", endless=True)],
    )
    assert read["never_hit"] == [
        {"unit": "db", "owner": "team-db", "state": "taking part", "why": "why db"},
        {"unit": "old", "owner": None, "state": "taking part", "why": "why old"},
    ]
    assert [one["unit"] for one in read["opted_out"]] == ["web", "old"]


def test_sums_by_owner_with_the_most_broken_first_and_no_owner_last() -> None:
    read = summary(
        [
            outcome("web", owner="team-web"),
            outcome("web", "2026-10-08", owner="former"),  # the unit's newest event names its owner
            outcome("web", "2026-10-09", owner="team-web"),
            lost("db", owner="team-db"),
            outcome("db", "2026-10-08", owner="team-db"),
            outcome("old"),
            outcome("older"),
        ],
        [now("older", "team-old"), now("db", "another"), now("new", "team-new")],
    )
    rows = [
        (row["owner"], row["units_hit"], row["terminations"], row["held"], row["broken"], row["never_hit"])
        for row in read["owners"]
    ]
    assert rows == [
        ("team-db", 1, 2, 1, 1, 0),
        ("team-web", 1, 3, 3, 0, 0),
        ("team-old", 1, 1, 1, 0, 0),
        ("team-new", 0, 0, 0, 0, 1),
        (None, 1, 1, 1, 0, 0),
    ]
    assert read["owners"][0]["mended"] == 1


def test_lists_are_bounded_and_say_so() -> None:
    count = MOST_LISTED + 3
    summed = Period(SINCE, UNTIL, FIRST, LAST)
    for n in range(count):
        summed.add(lost(f"unit-{n}", event_id=f"{n:04}"))
    for n in range(count):
        summed.add(outcome(f"slow-{n}", seconds=1000.0 + n, event_id=f"{n:04}"))
    for n in range(5 * count):
        summed.add(outcome(f"slow-{n % count}", "2026-09-01", seconds=60.0))
    read = summed.document()
    assert [len(read[name]) for name in ("broken", "slower")] == [MOST_LISTED, MOST_LISTED]
    assert read["not_listed"] == {"broken": 3, "unknown": 0, "slower": 3}
    assert read["slower"][0]["unit"] == f"slow-{count - 1}"  # furthest beyond its usual time
    assert read["totals"]["slower"] == count


@st.composite
def outcomes(draw: st.DrawFn) -> list[Outcome]:
    """Events of a few units around the period, the newest first."""
    generated, at = [], UNTIL + timedelta(days=2)
    for number in range(draw(st.integers(0, 80))):
        at -= timedelta(hours=draw(st.integers(1, 20)))
        status = draw(st.sampled_from([Status.RECOVERED] * 4 + [Status.UNRECOVERED, Status.TERMINATED, Status.LEASHED]))
        word = "" if status is Status.LEASHED else draw(st.sampled_from(VERDICTS))
        seconds = draw(st.sampled_from([5.0, 60.0, 300.0])) if status is Status.RECOVERED else None
        unit = draw(st.sampled_from(["web", "db", "queue"]))
        generated.append(
            outcome(unit, at.date().isoformat(), word, at=at, status=status, seconds=seconds, event_id=f"{number:03}",
                    owner=draw(st.sampled_from(["", "team"])), method=draw(st.sampled_from(["crash", "drain"])))
        )  # fmt: skip
    return generated


@given(outcomes())
def test_one_pass_counts_what_all_events_together_say(generated: list[Outcome]) -> None:
    read = summary(generated)
    inside = [one for one in generated if SINCE <= one.at < UNTIL and one.verdict]
    for word in VERDICTS:
        assert read["totals"][word] == sum(one.verdict == word for one in inside)
    slow = set()
    for one in inside:
        before = [e for e in generated if e.at < one.at and e.seconds is not None]
        alike = [e for e in before if (e.unit, e.method) == (one.unit, one.method)]
        usually = usual([e.seconds for e in alike if e.seconds is not None])
        if one.seconds is not None and is_slow(one.seconds, usually):
            slow.add(one.event_id)
    assert {one["event_id"] for one in read["slower"]} == slow
    for parts in (read["units"], read["owners"], read["weeks"]):
        for key in ("terminations", "slower", "unrecovered", *VERDICTS):
            assert sum(part[key] for part in parts) == read["totals"][key]
        assert sum(part["recovery"]["count"] for part in parts) == sum(one.seconds is not None for one in inside)
    failing = {one.unit for one in inside if one.has_failed}
    assert {one["unit"] for key in ("mended", "not_mended") for one in read[key]} <= failing
    for unit in sorted(failing):
        newest = next(one for one in inside if one.unit == unit and (one.has_failed or one.verdict == "held"))
        assert (unit in {one["unit"] for one in read["not_mended"]}) == newest.has_failed
