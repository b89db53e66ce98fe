"""The switch, which asks before anything can be terminated; and the doctor."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from cli.client.api import Answer
from cli.commands.switch import HALT_BY_HAND
from cli.shared.errors import Exit
from tests.runbook import halt_by_hand
from tests.unit.cli.conftest import FakeApi, Run
from troop.shared import zones

FAILING = {
    "name": "ticks-missing",
    "status": "fail",
    "value": 3,
    "threshold": 0,
    "detail": "the last one was on Friday",
    "todo": "look at the schedules",
}
WARNING = FAILING | {"name": "calendars", "status": "warn", "todo": "end a freeze"}
FINE = FAILING | {"name": "tables", "status": "ok", "value": 5, "todo": ""}


@pytest.mark.parametrize(
    ("command", "change", "message"),
    [
        ("leash", {"leashed": True}, "leashed"),
        ("halt", {"halted": True}, "halted: it decides nothing"),
        ("reaper off", {"reaper_off": True}, "the reaper is off"),
        ("schedules off", {"schedules_off": True}, "schedules start no benchmarks"),
    ],
)
def test_command_that_stops_chaos_needs_no_confirmation(
    run: Run, api: FakeApi, command: str, change: dict[str, bool], message: str
) -> None:
    result = run(*command.split(), "--reason", "incident")
    assert result.exit_code == 0, result.output
    assert api.changes() == [("switch", change | {"reason": "incident"})]
    assert message in result.stdout


RISKY = [
    ("unleash", {"leashed": False}),
    ("resume", {"halted": False}),
    ("reaper on", {"reaper_off": False}),
    ("schedules on", {"schedules_off": False}),
]


@pytest.mark.parametrize(("command", "change"), RISKY)
@pytest.mark.parametrize(("typed", "words"), [("y\n", ()), (None, ("--yes",)), ("n\n", ("--yes",))])
def test_command_that_starts_chaos_needs_confirmation(
    run: Run, api: FakeApi, command: str, change: dict[str, bool], typed: str | None, words: tuple[str, ...]
) -> None:
    assert run(*command.split(), *words, typed=typed).exit_code == 0
    assert api.changes() == [("switch", change)]


@pytest.mark.parametrize(("command", "change"), RISKY)
@pytest.mark.parametrize(
    ("typed", "message"), [("n\n", "nothing was changed"), ("\n", "nothing"), (None, "rerun with --yes")]
)
def test_without_a_yes_nothing_happens(
    run: Run, api: FakeApi, command: str, change: dict[str, bool], typed: str | None, message: str
) -> None:
    result = run(*command.split(), typed=typed)
    assert result.exit_code == Exit.NOT_CONFIRMED
    assert message in result.stderr
    assert api.changes() == []


def test_unleashing_says_where_and_what_is_not_well(run: Run, api: FakeApi) -> None:
    api.checks = [FINE, FAILING]
    result = run("unleash", typed="n\n")
    assert "Troop in account 111122223333, region eu-central-1" in result.stderr
    assert "fail (ticks-missing)" in result.stderr


def test_unleashing_while_health_is_not_to_be_had(run: Run, api: FakeApi) -> None:
    api.refusals["GET", "health"] = [Answer(500, None)]
    result = run("unleash", typed="y\n")
    assert "health is unknown" in result.stderr
    assert api.switch["leashed"] is False


def test_resuming_says_what_will_go_on(run: Run, api: FakeApi) -> None:
    assert "it is leashed" in run("resume", typed="n\n").stderr
    api.switch["leashed"] = False
    assert "it will hit instances" in run("resume", typed="n\n").stderr


def test_resuming_a_deployment_that_halted_itself_says_why_and_what_broke(run: Run, api: FakeApi) -> None:
    halt = {"at": "2026-11-20T10:00:00.000Z", "why": "3 causes broke units", "events": ["2026-11-20#web", "x"]}
    api.switch |= {"halted": True, "itself": halt}
    result = run("resume", typed="n\n")
    assert "it has halted itself, 2026-11-20 10:00:00 UTC: 3 causes broke units" in result.stderr
    assert "`troop events '2026-11-20#web'` shows the first of 2 events" in result.stderr
    assert api.changes() == []
    api.switch["itself"] = None
    assert "halted itself" not in run("resume", typed="n\n").stderr


def test_the_switch_as_json(ok: Callable[..., Any]) -> None:
    assert ok("leash") == {"halted": False, "leashed": True}


@pytest.mark.parametrize(
    ("checks", "words", "code"),
    [
        ([FINE], (), 0),
        ([FINE, WARNING], (), 0),
        ([FINE, WARNING], ("--strict",), 1),
        ([FINE, WARNING, FAILING], (), 1),
    ],
)
def test_doctor(run: Run, api: FakeApi, checks: list[dict[str, Any]], words: tuple[str, ...], code: int) -> None:
    api.checks = checks
    result = run("doctor", *words)
    assert result.exit_code == code
    for check in checks:
        assert check["name"] in result.stdout
        if check["status"] != "ok":
            assert f"{check['name']}: {check['todo']}" in result.stdout
    assert "the policy of every unit is valid" in result.stdout
    as_json = run("doctor", "--json", *words)
    assert as_json.exit_code == code
    assert '"checks"' in as_json.stdout


def test_doctor_prints_each_command_on_a_line_of_its_own_for_pasting(run: Run, api: FakeApi) -> None:
    subscribe = "aws sns subscribe --topic-arn arn:aws:sns:eu-central-1:111122223333:ActNow --protocol email"
    subscribers = {
        "name": "subscribers",
        "status": "warn",
        "value": 0,
        "threshold": 1,
        "detail": "no mail since 2026-11-20T14:45:00Z",
        "todo": "subscribe the people on call",
        "commands": [subscribe],
        "runbook": "https://wiki/runbook#who-receives-alarms",
    }
    api.checks = [subscribers]
    lines = run("doctor").stdout.splitlines()
    at = lines.index("subscribers: subscribe the people on call; see https://wiki/runbook#who-receives-alarms")
    assert lines[at + 1].strip() == subscribe
    assert "no mail since 2026-11-20 14:45:00 UTC" in run("doctor").stdout


def test_the_doctor_warns_of_units_whose_policy_cannot_be_read(run: Run, ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web")
    api.add("ledger", groups=2, problem="tag troop:probability is 'often'")
    api.add("vault", problem="tag troop:probabilty is unknown")
    document = ok("doctor")
    last = document["checks"][-1]
    assert (document["status"], last["name"], last["value"]) == ("warn", "units-malformed", 2)
    assert run("doctor", "--strict").exit_code == Exit.FAILED
    assert "skipped: ledger, vault" in run("doctor").stdout


@pytest.mark.parametrize(
    ("deployed", "words", "todo"),
    [
        (zones.VERSION, f"as in the functions: {zones.VERSION}", ""),
        ("2025b", "the functions have 2025b", "deploy again"),
        ("2199a", "the functions have 2199a", "update the package tzdata"),
        (None, "the functions have an unknown release", "deploy again"),
    ],
)
def test_the_doctor_compares_time_zones_with_those_of_the_functions(
    ok: Callable[..., Any], api: FakeApi, deployed: str | None, words: str, todo: str
) -> None:
    api.time_zones = deployed
    (check,) = [check for check in ok("doctor")["checks"] if check["name"] == "time-zones-here"]
    assert check["status"] == ("warn" if todo else "ok")
    assert words in check["detail"]
    assert todo in check["todo"]


def test_the_doctor_of_somebody_who_may_not_see_groups(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals["GET", "groups"] = [Answer(403, {"Message": "User: x is not authorized to perform: y"})]
    result = run("doctor", "--strict")
    assert (result.exit_code, "units-malformed" in result.stdout) == (0, True)
    last = ok("doctor")["checks"][-1]
    assert (last["status"], last["value"]) == ("ok", None)
    assert "not checked: permission denied" in last["detail"]


def test_the_doctor_warns_of_groups_that_cannot_be_read(run: Run, api: FakeApi) -> None:
    api.refusals["GET", "groups"] = [Answer(400, {"message": "what?"})]
    result = run("doctor", "--strict")
    assert (result.exit_code, "groups cannot be read" in result.stdout) == (Exit.FAILED, True)


@pytest.mark.parametrize("command", ["halt", "unleash", "resume", "leash"])
def test_a_reason_that_is_too_long_is_refused_here(run: Run, api: FakeApi, command: str) -> None:
    result = run(command, "--reason", "x" * 257)
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
    assert "--reason has 257 characters: must be text of 1 to 256 characters" in result.stderr


STARVED = Answer(500, {"message": "Internal server error"})


def test_a_halt_that_lambda_cannot_carry_out_at_first(run: Run, api: FakeApi) -> None:
    api.refusals["PATCH", "switch"] = [STARVED, Answer(429, None), Answer(200, {"halted": True, "leashed": False})]
    result = run("halt")
    assert result.exit_code == 0
    assert "halted: it decides nothing" in result.stdout


@pytest.mark.parametrize(
    ("command", "shown"),
    [("halt", True), ("leash", True), ("resume --yes", False), ("unleash --yes", False), ("reaper off", False)],
)
def test_a_brake_that_fails_says_why_and_how_to_halt_without_it(
    run: Run, api: FakeApi, command: str, shown: bool
) -> None:
    api.refusals["PATCH", "switch"] = [STARVED]
    result = run(*command.split())
    assert result.exit_code == Exit.API_FAILED
    assert "Lambda may be throttling it" in " ".join(result.stderr.split())
    assert ("aws --region eu-central-1 dynamodb update-item --table-name" in result.stderr) is shown


def test_the_command_that_halts_by_hand_is_the_runbooks() -> None:
    assert shlex.split(HALT_BY_HAND) == halt_by_hand()[5:]
