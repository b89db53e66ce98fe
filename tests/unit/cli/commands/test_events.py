"""`troop events`: filters, tables and JSON, and following what happens."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.commands import events as events_command
from cli.commands.events import changes
from cli.shared.errors import Exit
from cli.shared.times import parse_moment
from tests.unit.chaos.build import NOT_OVER, at, injected, injection, replaced, running, still_there
from tests.unit.cli.conftest import FakeApi, Run, answered, event, judged
from troop.chaos.events import Watch
from troop.chaos.injection import EndRequest
from troop.chaos.probe import Probe

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_a_table_for_people(run: Run, api: FakeApi) -> None:
    api.events = [event("web"), event("search", status="UNRECOVERED", detail="2 of 3 in service")]
    result = run("events")
    assert result.exit_code == 0
    for text in ("web-v1", "RECOVERED", "12.5 s", "UNRECOVERED", "2 of 3 in service", "i-0abc"):
        assert text in result.stdout


def test_a_difference_of_the_replacement_is_a_remark_and_sameness_is_none(api: FakeApi, run: Run) -> None:
    alike = {"differences": [], "summary": "i-2 has the same image"}
    other = {"differences": ["image"], "summary": "i-3 has another image"}
    api.events = [event("web", replacement=alike), event("db", replacement=other), event("old", replacement=None)]
    output = run("events").stdout
    assert "i-3 has another image" in output
    assert "i-2" not in output


def test_a_launch_that_failed_is_a_remark(api: FakeApi, run: Run) -> None:
    failed = event("web", status="UNRECOVERED", detail="capacity 2 of 3", launch_failure="the quota is too low")
    api.events = [failed, event("db", launch_failure="")]
    shown = " ".join(run("events").stdout.split())
    assert shown.count("the last launch failed: the quota is too low") == 1


def test_a_crash_that_was_none_is_marked(run: Run, api: FakeApi) -> None:
    at = "2026-11-20T10:00:01.000Z"
    crashes = [event("web", terminated_at=at, os_shutdown=True), event("db", terminated_at=at, os_shutdown=False)]
    api.events = [*crashes, event("old", terminated_at=at), event("drained", terminated_at=at, method="drain")]
    shown = " ".join(run("events").stdout.split())
    assert shown.count("because AWS rejects a crash without that") == 1


def test_one_document_for_programs_over_many_pages(ok: Callable[..., Any], api: FakeApi) -> None:
    api.events = [event(f"u{n}") for n in range(130)]
    document = ok("events", "--limit", "120")
    assert [e["unit"] for e in document["events"]] == [f"u{n}" for n in range(120)]
    assert [query["limit"] for _, _, query in api.calls] == ["100", "20"]


def test_filters_reach_the_api(ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web")
    ok("events", "--group", "web-v1", "--unit", "web", "--status", "recovered", "--since", "2026-11-01T00:00Z",
       "--until", "2026-11-20T00:00+01:00")  # fmt: skip
    assert api.calls[0][2] == {
        "group": "web-v1",
        "unit": "web",
        "status": "RECOVERED",
        "since": "2026-11-01T00:00:00.000Z",
        "until": "2026-11-19T23:00:00.000Z",
        "limit": "25",
    }


def test_nothing_is_an_empty_document_and_a_sentence(run: Run, ok: Callable[..., Any]) -> None:
    assert ok("events") == {"events": []}
    assert "no events match" in run("events").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--unit wbe", "did you mean web"),
        ("--unit wbe --follow", "did you mean web"),
        ("--group wbe-v1 --json", "did you mean web-v1"),
        ("--unit web-v1", "web-v1 is a group of the unit web: --unit web"),
        ("--group web", "web is a unit, of the groups web-v1: --unit web"),
    ],
)
def test_a_name_that_nothing_has_is_refused(run: Run, api: FakeApi, words: str, message: str) -> None:
    api.add("web")
    result = run("events", *words.split())
    assert (result.exit_code, result.stdout) == (Exit.NO_SUCH_UNIT, "")
    assert message in result.stderr


def test_caller_who_may_not_read_the_unit_gets_no_events(run: Run, api: FakeApi) -> None:
    api.refusals["GET", "groups/web"] = [Answer(403, {"Message": "User: x is not authorized to perform: y"})]
    result = run("events", "--unit", "web")
    assert (result.exit_code, "no events match" in result.stderr) == (0, True)


def test_gone_group_and_group_without_events_are_known(run: Run, api: FakeApi) -> None:
    api.add("web")
    api.events = [event("gone")]
    for words in ("--unit web", "--group web-v1", "--unit gone --status leashed", "--group gone-v1 --status leashed"):
        result = run("events", *words.split())
        assert (result.exit_code, "no events match" in result.stderr) == (0, True), words


@pytest.mark.parametrize("words", [("--since", "yesterdayish"), ("--until", "2026-13-01"), ("--until", "1d", "-f")])
def test_wrong_usage(run: Run, api: FakeApi, words: tuple[str, ...]) -> None:
    result = run("events", *words)
    assert result.exit_code == Exit.USAGE
    assert "--" in result.stderr
    assert api.calls == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3h", "2026-11-20T09:00:00+00:00"),
        ("2d", "2026-11-18T12:00:00+00:00"),
        ("45m", "2026-11-20T11:15:00+00:00"),
        ("1w", "2026-11-13T12:00:00+00:00"),
        ("2026-11-20T09:00+01:00", "2026-11-20T08:00:00+00:00"),
        ("2026-11-20T09:00Z", "2026-11-20T09:00:00+00:00"),
    ],
)
def test_moments(text: str, expected: str) -> None:
    assert parse_moment(text, NOW).isoformat() == expected


@pytest.mark.parametrize("text", ["", "d", "3x", "-3h", "999999w", "2026-02-30"])
def test_bad_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time such as|is too long ago"):
        parse_moment(text, NOW)


def test_following_tells_what_is_new_and_what_changes_and_nothing_twice(client: TroopClient, api: FakeApi) -> None:
    api.events = [event("b", status="CLAIMED"), event("a", "2026-11-19")]
    looks = iter(
        [
            lambda: None,
            lambda: api.events.__setitem__(0, event("b", status="RECOVERED")),
            lambda: api.events.insert(0, event("c", "2026-11-21", "LEASHED")),
        ]
    )
    followed = changes(client, {}, 25, lambda _: next(looks)())
    updates = [(e["unit"], e["status"]) for e in itertools.islice(followed, 4)]
    assert updates == [("a", "RECOVERED"), ("b", "CLAIMED"), ("b", "RECOVERED"), ("c", "LEASHED")]
    assert api.calls[1][2]["since"] == "2026-11-20T10:00:00.000Z"  # of the earliest that may still change


def test_following_tells_of_stages_but_not_of_every_check(client: TroopClient, api: FakeApi) -> None:
    first = judged(status="TERMINATED", verdict=None, settles_at=None, stages=None, short_at="2026-11-20T10:00:05.000Z")
    looks = iter(
        [
            lambda: api.events.__setitem__(0, first | {"short_at": "2026-11-20T10:00:10.000Z"}),
            lambda: api.events.__setitem__(0, first | {"stages": judged()["stages"]}),
        ]
    )
    api.events = [first]
    followed = changes(client, {}, 25, lambda _: next(looks)())
    assert [e["stages"] is None for e in itertools.islice(followed, 2)] == [True, False]


def test_following_looks_back_to_what_may_still_change(client: TroopClient, api: FakeApi) -> None:
    api.events = [event("new", "2026-11-21"), event("slow", "2026-11-20", "TERMINATED"), event("old", "2026-11-19")]
    looks = iter([lambda: api.events.__setitem__(1, event("slow", "2026-11-20", "UNRECOVERED"))])
    updates = list(itertools.islice(changes(client, {}, 25, lambda _: next(looks)()), 4))
    assert updates[-1]["status"] == "UNRECOVERED"
    assert api.calls[1][2]["since"] == "2026-11-20T10:00:00.000Z"


@pytest.mark.usefixtures("ctrl_c")
def test_followed_events_are_one_object_a_line(run: Run, api: FakeApi) -> None:
    api.events = [event("b"), event("a")]
    result = run("events", "--follow", "--json")
    assert result.exit_code == Exit.INTERRUPTED
    assert [json.loads(line)["unit"] for line in result.stdout.splitlines()] == ["a", "b"]
    assert "a (a-v1)  crash  RECOVERED after 12.5 s" in run("events", "-f").stdout


def test_a_stage_adds_no_line_to_those_for_people(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    hit = judged(status="TERMINATED", verdict=None, settles_at=None, recovery_seconds=None)
    monkeypatch.setattr(events_command, "changes", lambda *_: iter([hit | {"stages": None}, hit, judged()]))
    lines = run("events", "-f").stdout.splitlines()
    assert [line.split("  ")[3] for line in lines] == ["TERMINATED", "RECOVERED after 3 min 10 s (verdict BROKEN)"]


def lines_of(text: str) -> list[list[str]]:
    """The cells of each line."""
    return [re.split(r"  +", line.strip()) for line in text.splitlines() if line.strip()]


def test_one_event_has_its_stages_and_what_led_to_its_verdict(run: Run, api: FakeApi) -> None:
    api.events = [judged()]
    result = run("events", "2026-11-20#web")
    assert result.exit_code == 0, result.output
    lines = lines_of(result.stdout)
    for fact in (
        ["status", "RECOVERED"],
        ["hypothesis", "the group recovers within 5 min; errors stays OK"],
        ["stop alarms", "latency"],
        ["verdict", "BROKEN"],
        ["why", "alarm errors went off"],
    ):
        assert fact in lines
    first = next(n for n, line in enumerate(lines) if line[:2] == ["after", "course"])
    assert [line[:2] for line in lines[first + 1 : first + 11]] == [
        ["0 s", "i-0abc was terminated"],
        ["4 s", "Auto Scaling noticed the loss"],
        ["9 s", "Auto Scaling launched a replacement"],
        ["not known", "the replacement was running"],
        ["70 s", "the replacement was in service"],
        ["89 s", "alarm errors went off: no further chaos for the unit"],
        ["3 min 10 s", "the replacement was healthy in web"],
        ["not known", "the replacement was healthy in classic"],
        ["3 min 7 s to 3 min 10 s", "the group had recovered"],
        ["3 min 13 s", "verdict: BROKEN"],
    ]
    assert [(line[0], line[-1]) for line in lines[-2:]] == [("errors", "OK"), ("errors", "ALARM")]


def test_an_event_names_the_run_that_requested_it(run: Run, api: FakeApi) -> None:
    api.events = [judged(benchmark="20261120-120000-00000001")]
    words = ["requested by", "the run 20261120-120000-00000001, under its load"]
    assert words in lines_of(run("events", "2026-11-20#web").stdout)
    api.events = [judged()]
    assert "requested by" not in run("events", "2026-11-20#web").stdout


def test_one_event_for_programs_by_either_id(ok: Callable[..., Any], api: FakeApi) -> None:
    api.events = [judged()]
    assert ok("events", "2026-11-20#web") == ok("events", "2026-11-20~web") == judged()


def test_an_event_of_an_earlier_version_has_no_stages(run: Run, api: FakeApi) -> None:
    at = "2026-11-20T10:00:01.000Z"
    api.events = [
        event("web", terminated_at=at, recovered_at="2026-11-20T10:00:13.500Z"),
        event("db", status="LEASHED"),
    ]
    result = run("events", "2026-11-20#web")
    assert result.exit_code == 0, result.output
    lines = lines_of(result.stdout)
    assert ["hypothesis", "not recorded: an earlier version claimed it"] in lines
    assert ["not recorded", "stages of the recovery", "-"] in lines
    assert any(line[:2] == ["12.5 s", "the group had recovered"] for line in lines)
    assert run("events", "2026-11-20#db").exit_code == 0


def test_an_event_in_flight_has_stages_to_come(run: Run, api: FakeApi) -> None:
    watched = judged(status="TERMINATED", recovered_at=None, recovery_seconds=None, verdict=None, settles_at=None)
    api.events = [watched]
    lines = lines_of(run("events", "2026-11-20#web").stdout)
    assert any(line[:2] == ["not yet", "the replacement was running"] for line in lines)
    assert not any("recovered" in line[1] for line in lines if len(line) > 1)


def test_an_awaited_verdict_says_from_when_on_it_can_come(run: Run, api: FakeApi) -> None:
    api.events = [judged(verdict=None)]
    lines = lines_of(run("events", "2026-11-20#web").stdout)
    assert ["verdict", "awaited"] in lines
    assert any(line[0] == "why" and "can be judged from" in line[1] for line in lines)


def test_a_claim_that_an_alarm_stopped_names_it(run: Run, api: FakeApi) -> None:
    stopped: dict[str, Any] = {
        "terminated_at": None,
        "recovered_at": None,
        "recovery_seconds": None,
        "stages": None,
        "verdict": None,
    }
    api.events = [judged(status="ABANDONED", detail="an alarm went off first", **stopped, settles_at=None)]
    result = run("events", "2026-11-20#web")
    assert ["went off", "alarm errors at 2026-11-20 10:01:30 UTC"] in lines_of(result.stdout)
    assert "course" not in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [("web", "is no event's id"), ("2026-11-20#web --unit web", "remove --unit"), ("2026-11-20#web -f", "--follow")],
)
def test_an_id_of_no_event_and_other_filters_are_wrong_usage(run: Run, api: FakeApi, words: str, message: str) -> None:
    result = run("events", *words.split())
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
    assert message in result.stderr


def test_an_unknown_event_is_an_error(run: Run) -> None:
    result = run("events", "2026-11-20#web")
    assert result.exit_code != 0
    assert "there is no event" in result.stderr


def test_the_table_has_verdicts_and_why_a_hypothesis_did_not_hold(run: Run, api: FakeApi) -> None:
    awaited, old = judged("b", verdict=None), event("c")
    api.events = [judged("a"), awaited, old, judged("d", status="ABANDONED", verdict=None)]
    lines = {line[1]: line for line in lines_of(run("events").stdout)}
    assert [lines[unit][5] for unit in "abc"] == ["BROKEN", "awaited", "-"]
    assert lines["a"][-1] == "BROKEN: alarm errors went off"
    assert lines["d"][-1] == "alarm errors went off"
    run("events", "--verdict", "broken")
    assert api.calls[-1][2]["verdict"] == "BROKEN"


def test_following_waits_for_the_verdict(client: TroopClient, api: FakeApi) -> None:
    api.events = [event("new", "2026-11-21"), judged("slow", verdict=None)]
    looks = iter([lambda: api.events.__setitem__(1, judged("slow"))])
    updates = list(itertools.islice(changes(client, {}, 25, lambda _: next(looks)()), 3))
    assert updates[-1] == judged("slow")


def test_text_of_others_does_not_control_the_terminal(run: Run, api: FakeApi) -> None:
    api.events = [event("web", detail="\x1b]0;owned\x07[red]x[/red]")]
    result = run("events")
    assert "\x1b" not in result.stdout
    assert "[red]x" in result.stdout


def test_malformed_items_of_the_api_are_listed_once(run: Run, api: FakeApi) -> None:
    malformed = [{"item": "Events: 2026-11-20#web", "why": "'method' is missing"}]
    api.refusals["GET", "events"] = [Answer(200, {"events": [], "malformed": malformed, "cursor": None})] * 2
    result = run("events")
    note = "left out, because it is malformed: Events: 2026-11-20#web: 'method' is missing"
    assert (result.exit_code, result.stderr.count(note)) == (0, 1)


def test_the_course_of_a_lasting_fault_up_to_its_proof(run: Run, api: FakeApi) -> None:
    one = answered(injected(injection=injection(packages=("jq", "at"))))
    api.refusals["GET", f"events/{one['id']}"] = [Answer(200, one)]
    shown = " ".join(run("events", one["event_id"]).stdout.split())
    assert "method latency delay=200 jitter=10 sources=ALL direction=egress seconds=60" in shown
    assert "installed, and stays jq, at" in shown
    for step in (
        "before the probe: the instance answered",
        "0 s latency delay=200 jitter=10 sources=ALL direction=egress seconds=60 was injected",
        "63 s the command was over (Success, which proves nothing)",
        "66 s proven to be over: a probe found no trace of it",
        "69 s the group was whole when latency was over",
        "72 s verdict: HELD",
    ):
        assert step in shown, step
    assert "terminated" not in shown
    assert "noticed" not in shown


def test_a_probe_without_an_answer_yet_is_no_finding(run: Run, api: FakeApi) -> None:
    waiting = Probe("b" * 32, at("12:01:08"), "c-3")
    one = answered(running(injection=injection(after=waiting, proof=None)))
    api.refusals["GET", f"events/{one['id']}"] = [Answer(200, one)]
    shown = " ".join(run("events", one["event_id"]).stdout.split())
    assert "not yet answer of the last probe" in shown
    assert "UNKNOWN" not in shown


def test_rows_name_the_fault_and_a_group_that_stayed_whole_did_not_recover(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = injected(event_id="2026-11-20#db", watch=Watch(short_at=at("12:01:12")))
    api.events = [answered(injected()), answered(late), event("old")]
    rows = {line[1]: line for line in lines_of(run("events").stdout)[1:]}
    assert [row[3] for row in rows.values()] == ["latency", "crash"]
    shown = [line[8] for line in lines_of(run("events").stdout)[1:]]
    assert shown == ["was whole", "3 s", "12.5 s"]
    monkeypatch.setattr(events_command, "changes", lambda *_: iter([answered(injected())]))
    assert "web (web)  latency  RECOVERED (was whole) (verdict HELD)" in run("events", "-f").stdout


def test_the_course_of_a_fault_that_was_replaced(run: Run, api: FakeApi) -> None:
    request = EndRequest(at("12:00:40"), "alarm web-errors went off")
    one = answered(replaced(injection=still_there(end_request=request)))
    api.refusals["GET", f"events/{one['id']}"] = [Answer(200, one)]
    shown = " ".join(run("events", one["event_id"]).stdout.split())
    for step in (
        "35 s asked to end: alarm web-errors went off",
        "2 min 39 s last probe: PRESENT: a probe found qdiscs 1, before 0, rollbacks 2, before 0",
        "2 min 40 s i-00000000000000000 was terminated: the end was not proven",
        "2 min 55 s proven to be over: the instance was terminated",
        "2 min 45 s Auto Scaling noticed the loss",
    ):
        assert step in shown, step


def test_a_running_fault_says_when_it_ends_and_what_a_person_must_do(run: Run, api: FakeApi) -> None:
    stuck = running(injection=injection(**NOT_OVER | {"unproven": "the instance is protected"}))
    one = answered(stuck)
    api.refusals["GET", f"events/{one['id']}"] = [Answer(200, one)]
    shown = " ".join(run("events", one["event_id"]).stdout.split())
    assert "status RUNNING" in shown
    assert re.search(r"by 2026-11-20.{0,30} the command was over", shown), shown[-700:]
    assert "still the fault is not proven to be over, act now: the instance is protected" in shown
    assert "not yet proof that the fault is over" in shown
    api.events = [one, answered(replaced(event_id="2026-11-20#db"))]
    table = " ".join(run("events", "-o", "wide").stdout.split())
    assert "not proven to be over, act now: the instance is protected" in table
    assert "replaced: its fault was not proven to be over" in table
