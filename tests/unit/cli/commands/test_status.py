"""`troop status`, and the banner above what other commands show of chaos."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.chaos import overview
from cli.client.api import Answer
from cli.shared import show, times
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import run_document, run_out
from tests.unit.cli.conftest import FakeApi, Run, event, judged

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
STATES = [("a", "too small"), ("a", "too small"), ("b", "opted out"), ("c", "taking part"), ("d", "too small")]
DENIED = Answer(403, {"Message": "User: x is not authorized to perform: y"})
TICKS = {"last_tick": "2026-11-20T14:45:00.000Z", "next_tick": "2026-11-23T09:00:00.000Z"}
LAST_TICK = {
    "name": "ticks-missing",
    "status": "ok",
    "value": 0,
    "threshold": 0,
    "detail": "the last tick came at 2026-11-20T14:45:00Z; none has been due since",
    "todo": "",
}


@pytest.fixture(autouse=True)
def deployed(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: NOW)
    api.switch |= {"changed_by": "arn:aws:sts::1:assumed-role/x/ada", "changed_at": "2026-11-20T09:00:00Z"}
    api.switch["reason"] = "an incident"
    api.checks = [LAST_TICK, LAST_TICK | {"name": "alarms", "status": "fail"}]
    api.ticks = dict(TICKS)
    api.add("web")
    api.add("ledger", opt_out=True)
    api.add("vault", groups=2, protected="troop:protected")
    api.events = [event("web"), event("ledger", day="2026-11-19")]
    api.refusals["GET", "fleets"] = [Answer(200, {"fleets": [], "cursor": None})]
    runs = [run_out(run="r1", status="RUNNING", ended_at=None), run_out(run="r2", ended_at="2026-11-20T12:00:00Z")]
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": runs, "cursor": None})]
    cost = {"amount": 1.25, "currency": "USD", "unknown": []}
    api.refusals["GET", "benchmarks/r1"] = [Answer(200, run_document() | {"cost_so_far": cost})]


def test_the_state_at_a_glance(run: Run) -> None:
    result = run("status")
    assert result.exit_code == 0, result.output
    for words in (
        "leashed: it decides and records, and hits nothing (ada, 2026-11-20 09:00:00 UTC: an incident)",
        "fail (alarms)",
        "ticks       on time; last 14:45, next Mon 2026-11-23 09:00 UTC",
        "1 taking part, 1 opted out, 1 protected",
        "1 RECOVERED",
        "$1.25",
    ):
        assert words in result.stdout
    assert "r2" not in result.stdout


@pytest.mark.parametrize(
    ("commit", "words"), [("1a2b3c4d5e6f" + 28 * "0", "commit 1a2b3c4d5e6f"), (None, "of no commit")]
)
def test_stage_and_release_are_shown_with_the_moment_of_deployment(
    run: Run, api: FakeApi, commit: str | None, words: str
) -> None:
    since = "2026-11-18T10:00:00.000Z"
    assert "release" not in run("status").stdout
    release: dict[str, Any] = {"version": "0.1.0", "commit": commit, "assets": {}, "since": since}
    api.ticks = {**TICKS, "stage": "prod", "release": release}
    output = run("status").stdout
    assert f"release     0.1.0, {words}, since 2026-11-18 10:00:00 UTC\n" in output
    assert ", stage prod\n" in output


@pytest.mark.parametrize(
    ("ticks", "finding", "words"),
    [
        ({}, {"detail": "the last tick came at 2026-11-20T14:45:00Z"}, "the last tick came at 2026-11-20 14:45:00 UTC"),
        ({"last_tick": None, "next_tick": "2026-11-20T15:15:00.000Z"}, {}, "none has come yet; next 15:15 UTC"),
        (
            TICKS | {"next_tick": "2026-11-20T15:15:00.000Z"},
            {"status": "fail", "detail": "3 have been due since 2026-11-20T14:00:00Z"},
            "3 have been due since 2026-11-20 14:00:00 UTC; last 14:45, next 15:15 UTC",
        ),
    ],
)
def test_ticks_that_do_not_come_say_since_when(
    run: Run, api: FakeApi, ticks: dict[str, Any], finding: dict[str, Any], words: str
) -> None:
    api.ticks, api.checks = ticks, [LAST_TICK | finding]
    assert f"ticks       {words}\n" in run("status").stdout


STRAY = {
    "name": "stray-items",
    "status": "warn",
    "value": 1,
    "threshold": 0,
    "detail": "no unit has the name 'Web' (nearest unit: 'web')",
    "todo": "delete the item",
}


def test_items_without_a_unit_are_named(run: Run, api: FakeApi) -> None:
    api.checks.append(STRAY)
    for command in ("status", "doctor", "policy export"):
        result = run(*command.split())
        assert "'Web' (nearest unit: 'web')" in result.output, command
    api.checks = [LAST_TICK, STRAY | {"status": "ok", "detail": "the key of every item of GroupTags names a unit"}]
    assert "stray items" not in run("status").output
    assert "no effect" not in run("policy", "export").output


def test_the_state_as_a_document(ok: Callable[..., Any], api: FakeApi) -> None:
    document = ok("status")
    assert document["units"] == {"taking part": 1, "opted out": 1, "protected": 1}
    assert document["today"]["by_status"] == {"RECOVERED": 1}
    assert [one["run"] for one in document["runs"]] == ["r1"]
    assert document["runs"][0]["cost_so_far"]["amount"] == 1.25
    assert (document["switch"]["reason"], document["unknown"]) == ("an incident", {})
    assert len(api.calls) == 7


@pytest.mark.parametrize(
    ("path", "key"), [("health", "health"), ("groups", "units"), ("benchmarks", "runs"), ("fleets", "fleets")]
)
def test_part_that_the_caller_may_not_read_is_unknown(
    run: Run, ok: Callable[..., Any], api: FakeApi, path: str, key: str
) -> None:
    api.refusals["GET", path] = [DENIED]
    document = ok("status")
    assert document[key] is None
    assert "permission denied" in document["unknown"][path.replace("benchmarks", "runs")]
    assert "permission denied" in run("status").stdout


def test_a_deployment_that_halted_itself_says_when_and_why_not_who_changed_it_last(run: Run, api: FakeApi) -> None:
    halt = {"at": "2026-11-20T10:00:00.000Z", "why": "3 causes broke units", "events": ["2026-11-20#web"]}
    api.switch |= {"halted": True, "itself": halt}
    words = (
        "halted itself: it decides nothing and hits nothing (and leashed) "
        "(2026-11-20 10:00:00 UTC: 3 causes broke units)"
    )
    for command in ("status", "doctor"):
        assert words.partition(" (2026")[0] in run(command).stdout
    assert words in run("status").stdout
    assert "ada" not in run("status").stdout


def test_verdicts_of_today_are_counted_and_shown(run: Run, ok: Callable[..., Any], api: FakeApi) -> None:
    held = judged()["verdict"] | {"value": "HELD"}
    api.events = [judged("a"), judged("b", verdict=held), judged("c"), judged("d", verdict=None), event("old")]
    assert ok("status")["today"]["by_verdict"] == {"BROKEN": 2, "HELD": 1, "awaited": 1}
    shown = run("status").stdout
    assert "2 BROKEN, 1 HELD, 1 awaited" in shown
    assert shown.count("BROKEN") >= 3


def test_without_the_switch_it_fails(run: Run, api: FakeApi) -> None:
    api.refusals["GET", "switch"] = [DENIED]
    assert run("status").exit_code == Exit.FORBIDDEN


def test_units_are_counted_once_by_the_state_that_the_api_gives() -> None:
    rows = [{"unit": unit, "outlook": {"state": state}} for unit, state in STATES]
    assert list(overview.units_by_state(rows).items()) == [("taking part", 1), ("too small", 2), ("opted out", 1)]


def test_an_older_deployment_gives_no_state(run: Run, api: FakeApi) -> None:
    for path in ("groups", "groups/web"):
        rows = api.request("GET", path, {"limit": "50"}).body
        for row in rows.get("groups", []) if path == "groups" else [rows]:
            row.pop("outlook")
        api.refusals["GET", path] = [Answer(200, rows)]
    for command in ("groups", "group web", "status"):
        assert "is older than the command" in run(*command.split()).output, command


COMMANDS = ["groups", "group web", "events", "why web"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("switch", "words"), [("halted", "Troop is halted"), ("leashed", "Troop is leashed")])
def test_a_person_sees_the_banner(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, command: str, switch: str, words: str
) -> None:
    monkeypatch.setattr(show, "has_reader", lambda: True)
    api.switch |= {"halted": False, "leashed": False, switch: True}
    result = run(*command.split())
    assert result.exit_code == 0
    assert f"{words}" in result.stderr
    assert "(ada, 2026-11-20 09:00:00 UTC: an incident)" in result.stderr
    assert words not in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_banner_of_a_deployment_that_halted_itself(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(show, "has_reader", lambda: True)
    halt = {"at": "2026-11-20T10:00:00.000Z", "why": "3 causes broke units", "events": []}
    api.switch |= {"halted": True, "leashed": False, "itself": halt}
    words = "Troop has halted itself: nothing is decided, and nothing hit (2026-11-20 10:00:00 UTC: 3 causes"
    stderr = run(*command.split()).stderr
    assert words in stderr
    assert "`troop resume` ends this" in stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_programs_get_no_banner_and_cause_no_request(run: Run, api: FakeApi, command: str) -> None:
    assert "leashed" not in run(*command.split()).stderr
    assert "switch" not in [path for _, path, _ in api.calls]


@pytest.mark.parametrize("answer", [DENIED, Answer(200, {"halted": False, "leashed": False})])
def test_no_banner_without_a_reason(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    monkeypatch.setattr(show, "has_reader", lambda: True)
    api.refusals["GET", "switch"] = [answer]
    result = run("groups")
    assert (result.exit_code, result.stderr) == (0, "")
