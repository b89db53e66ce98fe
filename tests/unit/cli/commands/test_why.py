"""`troop why`: one sentence for a day, made of what was decided and what happened; and every tick of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from cli.chaos.answers import answer, stretches, zone_of
from cli.shared import times
from cli.shared.errors import Exit
from tests.unit.chaos.build import FRIDAY, NOT_OVER, at, injected, injection, replaced, running
from tests.unit.cli.conftest import FakeApi, Run, answered, event
from troop.chaos.events import Event, Status, Watch
from troop.chaos.injection import EndRequest
from troop.chaos.verdict import Verdict, VerdictValue
from troop.shared import zones

DAY = date(2026, 11, 26)
OPENS = datetime(2026, 11, 26, 17, 0, tzinfo=UTC)
"""09:00 in Los Angeles."""

LATER = OPENS + timedelta(days=3)


def decision(ticks: int, reason: str, detail: str = "", unit: str = "web", **more: Any) -> dict[str, Any]:
    """``ticks`` after nine."""
    return {
        "unit": unit,
        "id": unit,
        "tick": (OPENS + timedelta(minutes=15 * ticks)).isoformat(),
        "day": DAY.isoformat(),
        "time_zone": "America/Los_Angeles",
        "reason": reason,
        "detail": detail,
        "groups": [unit],
        "rolled": 0.5,
        "probability": 0.2,
        "group": None,
        "instance_id": None,
    } | more


def hit(status: str, **more: Any) -> dict[str, Any]:
    at = "2026-11-26T18:37:00.000Z"
    started = None if status in ("LEASHED", "CLAIMED", "GONE_ELSEWHERE", "ABANDONED") else at
    return event("web", str(DAY), status, **({"group": "web", "at": at, "terminated_at": started} | more))


def sentence_of(day: date | None, decisions: list[dict[str, Any]], events: list[dict[str, Any]], now: datetime) -> str:
    return answer("web", day, decisions, events, now, zone_of(decisions))


HOLIDAY = decision(0, "holiday", "Thanksgiving Day")
NOT_ROLLED = decision(0, "not-rolled", "0.8123 >= probability 0.2")
DUE = decision(3, "terminate", "i-0abc of web is to be terminated", group="web", instance_id="i-0abc")

SENTENCES: list[tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = [
    ([HOLIDAY], [], "web was not hit on Thursday 2026-11-26: holiday: Thanksgiving Day."),
    ([NOT_ROLLED], [], "web was not hit on Thursday 2026-11-26: not rolled: 0.8123 >= probability 0.2."),
    (
        [decision(0, "opted-out", "opted out by item: month-end closing.")],
        [],
        "web was not hit on Thursday 2026-11-26: opted out by item: month-end closing.",
    ),
    (
        [
            decision(6, "unhealthy", "web has a capacity of 2 in service, desired 3"),
            decision(5, "unhealthy", "web has a capacity of 1 in service, desired 3"),
            decision(4, "refreshing", "web has an instance refresh under way"),
            decision(3, "not-yet", "rolled for a minute later than 09:45, before 14:45"),
            decision(2, "halted", "chaos is halted by the switch"),
            decision(1, "not-yet", "rolled for a minute later than 09:15, before 14:45"),
        ],
        [],
        "web was not hit on Thursday 2026-11-26: unhealthy: web has a capacity of 2 in service, desired 3 "
        "(since 10:15 PST, before that not yet, halted, refreshing).",
    ),
    (
        [DUE],
        [],
        "web: i-0abc was selected on Thursday 2026-11-26 at 09:45 PST, but no hit is on "
        "record: its workflow failed, or the last check prevented it.",
    ),
    (
        [DUE],
        [hit("RECOVERED", recovery_seconds=41.2)],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 10:37 PST, and its group recovered in 41.2 s.",
    ),
    (
        [DUE],
        [hit("RECOVERED", recovery_seconds=41.2, os_shutdown=True)],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 10:37 PST (its operating system was shut down "
        "first, because AWS rejects a crash without that), and its group recovered in 41.2 s.",
    ),
    (
        [DUE],
        [hit("RECOVERED", recovery_seconds=41.2, group="web-v7")],
        "web: i-0abc of web-v7 was terminated on Thursday 2026-11-26 at 10:37 PST, and its group recovered in 41.2 s.",
    ),
    (
        [DUE],
        [hit("TERMINATED")],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 10:37 PST, and its group is being watched until it has "
        "recovered.",
    ),
    (
        [DUE],
        [hit("UNRECOVERED", detail="2 of 3 in service after 30 minutes")],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 10:37 PST, and its group did not recover in time: 2 of 3 "
        "in service after 30 minutes.",
    ),
    (
        [DUE],
        [hit("GROUP_DELETED")],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 10:37 PST, and its group was deleted before it had "
        "recovered.",
    ),
    (
        [DUE],
        [hit("CLAIMED")],
        "web: i-0abc is about to be terminated (claimed on Thursday 2026-11-26 at 10:37 PST).",
    ),
    (
        [DUE],
        [hit("GONE_ELSEWHERE")],
        "web: i-0abc was selected for termination on Thursday 2026-11-26 at 10:37 PST, but something else terminated "
        "it first.",
    ),
    (
        [DUE],
        [hit("ABANDONED", detail="not carried out by 10:47")],
        "web: i-0abc was selected for termination on Thursday 2026-11-26 at 10:37 PST, but the claim was abandoned: "
        "not carried out by 10:47.",
    ),
    (  # ticks go on after the window has closed; why the day went by is what was said within it
        [decision(27, "outside-window", "15:45 is outside 09:00 to 15:00"), decision(3, "not-rolled", "0.7 >= 0.2")],
        [],
        "web was not hit on Thursday 2026-11-26: not rolled: 0.7 >= 0.2.",
    ),
    (
        [decision(3, "leashed", "due, but the deployment is leashed")],
        [hit("LEASHED")],
        "web: i-0abc would have been terminated on Thursday 2026-11-26 at 10:37 PST, but the deployment was leashed.",
    ),
    (  # what happened weighs more than what would have, and the latest more than the first
        [DUE],
        [hit("LEASHED"), hit("RECOVERED", recovery_seconds=9, instance_id="i-2"), hit("ABANDONED", detail="late")],
        "web: i-2 was terminated on Thursday 2026-11-26 at 10:37 PST, and its group recovered in 9 s.",
    ),
    (  # a request that came to nothing does not hide what happened, and neither does one under way
        [DUE],
        [hit("ABANDONED", instance_id="i-3"), hit("CLAIMED", instance_id="i-2"), hit("TERMINATED")],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 10:37 PST, and its group is being watched until it has "
        "recovered.",
    ),
    (
        [DUE],
        [hit("ABANDONED"), hit("CLAIMED", instance_id="i-2"), hit("LEASHED")],
        "web: i-2 is about to be terminated (claimed on Thursday 2026-11-26 at 10:37 PST).",
    ),
    (
        [DUE],
        [
            hit("GONE_ELSEWHERE"),
            hit("RECOVERED", recovery_seconds=9, instance_id="i-3"),
            hit("UNRECOVERED", instance_id="i-2"),
            hit("RECOVERED", recovery_seconds=7),
        ],
        "web: i-3 was terminated on Thursday 2026-11-26 at 10:37 PST (and 2 more that day), and its group recovered in "
        "9 s.",
    ),
    *(
        (
            [],
            [hit("RECOVERED", recovery_seconds=9, verdict=one, settles_at="2026-11-26T18:45:00.000Z")],
            f"web: i-0abc was terminated on Thursday 2026-11-26 at 18:37 UTC, and its group recovered in 9 s. {words}.",
        )
        for one, words in (
            ({"value": "HELD", "why": "its alarms stayed OK"}, "Its hypothesis held: its alarms stayed OK"),
            ({"value": "BROKEN", "why": "alarm a went off"}, "Its hypothesis did not hold: alarm a went off"),
            ({"value": "UNKNOWN", "why": "no data."}, "Whether its hypothesis held is not known: no data"),
            (None, "Its alarms can be judged from 18:45 UTC on"),
        )
    ),
    (
        [],
        [hit("RECOVERED", recovery_seconds=9)],
        "web: i-0abc was terminated on Thursday 2026-11-26 at 18:37 UTC, and its group recovered in 9 s.",
    ),
    (
        [],
        [],
        "No tick decided about web on Thursday 2026-11-26: none was planned, none ran, or its decisions have expired "
        "(troop:decision_retention_days). `troop doctor` checks whether ticks run.",
    ),
]


@pytest.mark.parametrize(("decisions", "events", "sentence"), SENTENCES)
def test_a_day_in_one_sentence(decisions: list[dict[str, Any]], events: list[dict[str, Any]], sentence: str) -> None:
    assert sentence_of(DAY, decisions, events, LATER) == sentence


def test_a_day_that_goes_on() -> None:
    decided = [decision(5, "not-yet", "rolled for a minute later than 10:15, before 14:45")]
    sentence = sentence_of(DAY, decided, [], OPENS + timedelta(hours=2))
    assert sentence == (
        "web has not been hit today, Thursday 2026-11-26, so far: not yet: rolled for a minute later than "
        "10:15, before 14:45."
    )
    assert "so far" in sentence_of(DAY, decided, [], datetime(2026, 11, 27, 7, 59, tzinfo=UTC))  # 23:59 there
    assert "so far" not in sentence_of(DAY, decided, [], datetime(2026, 11, 27, 8, 0, tzinfo=UTC))


def test_only_what_can_still_be_claimed_is_about_to_begin() -> None:
    due = OPENS + timedelta(minutes=45)
    assert "it is about to begin, or " in sentence_of(DAY, [DUE], [], due + timedelta(minutes=15))
    assert "about to begin" not in sentence_of(DAY, [DUE], [], due + timedelta(minutes=17))


def test_a_day_to_come_and_no_day_at_all() -> None:
    assert sentence_of(date(2026, 12, 24), [], [], LATER) == "web: Thursday 2026-12-24 is in the future."
    assert sentence_of(None, [], [], LATER).startswith("No decision about web is on record: ")


def test_a_zone_that_this_machine_does_not_know() -> None:
    sentence = sentence_of(DAY, [decision(3, "terminate", group="web", time_zone="Mars/Olympus")], [], LATER)
    assert "at 17:45 UTC" in sentence


def test_ticks_in_a_row_with_one_reason_are_one_stretch() -> None:
    spans = stretches([decision(3, "b", "3"), decision(2, "a", "2"), decision(1, "a", "1"), decision(0, "b", "0")])
    assert [(s.reason, s.ticks, s.detail) for s in spans] == [("b", 1, "0"), ("a", 2, "2"), ("b", 1, "3")]
    assert (spans[1].first, spans[1].last) == (OPENS + timedelta(minutes=15), OPENS + timedelta(minutes=30))


@pytest.fixture(autouse=True)
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: LATER)


@pytest.fixture
def thanksgiving(api: FakeApi) -> None:
    api.add("web")
    api.add("db")
    api.decisions = [
        decision(n, "holiday", "Thanksgiving Day", unit) for n in range(23, -1, -1) for unit in ("web", "db")
    ]


@pytest.mark.usefixtures("thanksgiving")
def test_the_last_day_of_a_unit(run: Run) -> None:
    result = run("why", "web")
    assert result.exit_code == 0
    assert result.stdout == "web was not hit on Thursday 2026-11-26: holiday: Thanksgiving Day.\n"
    assert "no decision about web yet today" in result.stderr


@pytest.mark.usefixtures("thanksgiving")
@pytest.mark.parametrize("option", ["--ticks", "-v"])
def test_every_tick_of_it(run: Run, option: str) -> None:
    result = run("why", "web", "--day", "2026-11-26", option)
    assert result.exit_code == 0
    _, header, line = result.stdout.splitlines()
    assert header.split("  ")[0] == "time in America/Los_Angeles"
    assert line.split() == ["09:00-14:45", "24", "holiday", "Thanksgiving", "Day"]
    assert result.stderr == ""


@pytest.mark.usefixtures("thanksgiving")
def test_a_document_for_programs(ok: Callable[..., Any], api: FakeApi) -> None:
    api.events = [hit("RECOVERED", recovery_seconds=3), event("web", "2026-11-25"), event("db", "2026-11-26")]
    document = ok("why", "web", "--day", "2026-11-26")
    assert document["answer"].endswith("recovered in 3 s.")
    assert (document["unit"], document["day"], document["time_zone"]) == ("web", "2026-11-26", "America/Los_Angeles")
    assert [d["unit"] for d in document["decisions"]] == ["web"] * 24
    assert [e["event_id"] for e in document["events"]] == ["2026-11-26#web"]


@pytest.mark.usefixtures("thanksgiving")
def test_a_group_stands_for_its_unit(run: Run) -> None:
    assert "web was not hit on Thursday 2026-11-26" in run("why", "web-v1").stdout


def test_event_of_a_day_without_ticks_is_shown(run: Run, api: FakeApi) -> None:
    api.add("web")
    api.events = [event("web", "2026-11-28")]
    assert "terminated on Saturday 2026-11-28" in run("why", "web").stdout


def test_a_termination_before_the_first_decision_has_the_time_of_its_zone(run: Run, api: FakeApi) -> None:
    api.add("web")
    api.events = [hit("RECOVERED", at="2026-11-27T00:49:00.000Z", terminated_at="2026-11-27T00:49:00.000Z")]
    assert "terminated on Friday 2026-11-27 at 00:49 UTC" in run("why", "web").stdout  # no decision names a zone
    api.decisions = [decision(0, "holiday", day="2026-11-25")]
    assert "terminated on Thursday 2026-11-26 at 16:49 PST" in run("why", "web").stdout


def test_a_zone_without_a_name_is_called_by_its_offset(run: Run, api: FakeApi) -> None:
    api.add("web")
    api.decisions, api.events = [decision(0, "terminate", time_zone="America/Montevideo")], [hit("LEASHED")]
    assert "on Thursday 2026-11-26 at 15:37 UTC-03, but" in run("why", "web").stdout


def test_nothing_on_record(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.add("web")
    assert run("why", "web").stdout.startswith("No decision about web is on record")
    assert run("why", "web", "--day", "2026-11-26").stdout.startswith("No tick decided about web on Thursday")
    document = ok("why", "web")
    assert (document["day"], document["time_zone"], document["decisions"], document["events"]) == (None, None, [], [])
    assert run("why", "nobody").exit_code == Exit.NO_SUCH_UNIT


@pytest.mark.parametrize("day", ["someday", "2026-02-30", "20261126"])
def test_wrong_usage(run: Run, api: FakeApi, day: str) -> None:
    result = run("why", "web", "--day", day)
    assert result.exit_code == Exit.USAGE
    assert "YYYY-MM-DD" in result.stderr
    assert api.calls == []


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_time(run: Run, api: FakeApi, day: str) -> None:
    api.add("web")
    assert run("why", "web", "--day", day).exit_code == 0


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (injected(), "web: {} was injected into i-00000000000000000 on Friday 2026-11-20 at 12:00 PST, and its group "
         "was whole when latency was over. Its hypothesis held: "),
        (injected(watch=Watch(short_at=at("12:01:12"))), "and its group was whole 3 s after latency was over."),
        (running(), "web: {} was injected into i-00000000000000000 on Friday 2026-11-20 at 12:00 PST, and its end is "
         "not proven yet."),
        (running(injection=injection()), "and its group is being watched until it has recovered."),
        (replaced(), "(the instance was then terminated, because the end of the fault was not proven), and its group "
         "recovered in 2 min 20 s."),
        (running(status=Status.CLAIMED, attempted_at=None), "web: latency is about to be injected into"),
        (running(status=Status.LEASHED, attempted_at=None), "web: latency would have been injected into"),
        (running(status=Status.ABANDONED, attempted_at=None, detail="it has no tc"),
         "was selected for latency on Friday 2026-11-20 at 12:00 PST, but the claim was abandoned: it has no tc."),
    ],
    ids=["stays", "short", "runs", "proven", "replaced", "claimed", "leashed", "abandoned"],
)  # fmt: skip
def test_a_lasting_fault_in_words(stored: Event, words: str) -> None:
    fault = "latency delay=200 jitter=10 sources=ALL direction=egress seconds=60"
    sentence = answer("web", FRIDAY, [], [answered(stored)], at("14:00"), zones.zone("America/Los_Angeles"))
    assert words.format(fault) in sentence


EARLY = {"end_request": EndRequest(at("12:00:40"), "chaos was halted")}
ENDED = {"status": "Cancelled", **EARLY}


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (injected(injection=injection(**ENDED)), 1),
        (running(injection=injection(**NOT_OVER | EARLY)), 1),
        (replaced(injection=injection(**ENDED)), 1),
        (injected(injection=injection(**EARLY)), 0),
    ],
    ids=["cancelled", "runs", "replaced", "ran to its end"],
)
def test_a_fault_that_ended_early_says_so_once(stored: Event, says: int) -> None:
    def mentions(one: Event) -> int:
        sentence = answer("web", FRIDAY, [], [answered(one)], at("14:00"), zones.zone("UTC"))
        return sentence.count("asked to end early: chaos was halted")

    assert mentions(stored) == says
    why = "the fault was ended early: chaos was halted"
    unknown = Verdict(VerdictValue.UNKNOWN, why, at("12:01:17"), at("12:00:05"), at("12:01:14"))
    assert mentions(replace(stored, verdict=unknown)) == 0, "its verdict says it"
