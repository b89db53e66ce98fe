"""`troop plan` against an account: what it tells ahead is what a tick of the workflow then decides."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner, Result

from cli.app import app
from cli.client.deployment import Deployment
from cli.commands import plan, ui
from cli.forecasts import calendar_ahead, what_if
from cli.shared import aws, times
from cli.shared.errors import Exit
from tests.unit.account.account import OVERDUE, Account, calls, refusing
from tests.unit.chaos.flows.test_change_calendar import NAMED
from troop.shared import moments

OUTPUTS = {"ApiUrl": "https://api/v1/", "GroupTagsTable": "GroupTags", "StateTable": "State", "SaltSecretArn": "Salt"}
DEPLOYMENT = Deployment("Troop", "eu-central-1", "123456789012", OUTPUTS, "arn:api")
HALF_PAST_NOON = OVERDUE - timedelta(hours=2, minutes=16)

Plan = Callable[..., Result]


@pytest.fixture
def template(settings: dict[str, Any]) -> dict[str, Any]:
    document = {k: v for k, v in settings.items() if k != "deployment"} | {"tick_minutes": 15}
    return {"Metadata": {"TroopSettings": json.dumps(document)}, "Resources": {}}


@pytest.fixture
def run(account: Account, monkeypatch: pytest.MonkeyPatch, template: dict[str, Any]) -> Plan:
    """Runs the command against the account, whose stack has the settings in its template."""
    account.clock.moment = HALF_PAST_NOON
    monkeypatch.setattr(what_if, "now", account.clock)
    monkeypatch.setattr(plan, "find_deployment", lambda session, name: DEPLOYMENT)
    real = aws.client

    class CloudFormation:
        def get_template(self, StackName: str) -> dict[str, Any]:
            return {"TemplateBody": template}

    def client(session: boto3.Session, service: str, **options: Any) -> Any:
        return CloudFormation() if service == "cloudformation" else real(session, service, **options)

    monkeypatch.setattr(aws, "client", client)
    return lambda *words: CliRunner().invoke(app, ["--region", "eu-central-1", "plan", *words])


def planned_units(run: Plan, *words: str) -> dict[str, dict[str, Any]]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return {unit["unit"]: unit for unit in json.loads(result.stdout)["units"]}


def fill(account: Account) -> None:
    for n in range(4):
        account.group(f"service-{n}")
    account.group("web-v041")
    account.group("web-v042")
    account.group("small", size=1)
    account.group("night", tags={"troop:calendar": "night"})
    account.group("busy")
    account.refreshes["busy"] = "InProgress"
    account.policy("service-3", opt_out=True, reason="closing")


def test_every_tick_decides_as_planned(run: Plan, account: Account) -> None:
    fill(account)
    ahead = planned_units(run)
    assert {unit["reason"] for unit in ahead.values()} >= {"terminate", "opted-out", "too-small", "refreshing"}
    ticks = sorted({d["tick"] for u in ahead.values() if u["calendar"] == "default" for d in u["decisions"]})
    assert ticks[0] == moments.iso(HALF_PAST_NOON + timedelta(minutes=15))
    for tick in ticks:
        account.clock.moment = moments.parse(tick)
        decided = account.decide()
        decisions = account.decisions()
        for unit, plan_of in ahead.items():
            planned = [d for d in plan_of["decisions"] if d["tick"] == tick]
            if plan_of["calendar"] == "default" and plan_of["tick"] in (None, tick):
                assert [(decisions[unit]["reason"], decisions[unit]["detail"])] == [
                    (d["reason"], d["detail"]) for d in planned
                ]
            if plan_of["tick"] == tick:
                assert decisions[unit]["instance_id"] == plan_of["target"]["instance_id"]
        assert decided["reasons"]


def test_plan_changes_nothing(run: Plan, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(account)
    with calls(monkeypatch) as operations:
        planned_units(run)
    assert {operation.rstrip("s") for operation in operations} <= {
        "Scan",
        "DescribeAutoScalingGroup",
        "DescribeInstance",
        "DescribeInstanceAttribute",
        "DescribeInstanceRefreshe",
        "DescribeAlarm",
        "GetSecretValue",
    }


@pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
def test_plan_can_ignore_the_leash(run: Plan, account: Account) -> None:
    account.group("web-v1")
    leashed, unleashed = planned_units(run)["web"], planned_units(run, "--unleashed")["web"]
    assert (leashed["reason"], unleashed["reason"]) == ("leashed", "terminate")
    assert leashed["target"] == unleashed["target"]
    assert "were it not leashed" in run().stdout


def test_plan_knows_the_terminations_of_today(run: Plan, account: Account) -> None:
    account.group("web-v1")
    account.dynamodb.put_item(TableName="State", Item={"key": {"S": "unit#web"}, "last_day": {"S": "2026-11-20"}})
    assert planned_units(run)["web"]["reason"] == "already-today"
    assert planned_units(run, "--day", "2026-11-23")["web"]["reason"] == "terminate"


def test_when_the_days_ticks_are_over_nothing_is_due(run: Plan, account: Account) -> None:
    account.group("web-v1")
    account.clock.moment = OVERDUE
    unit = planned_units(run)["web"]
    assert (unit["reason"], unit["target"], unit["tick"]) == ("outside-window", None, None)


def test_a_past_day_is_no_plan(run: Plan) -> None:
    result = run("--day", "2026-11-18")
    assert result.exit_code == Exit.USAGE
    assert "must not be in the past; `troop events` shows" in result.stderr


def test_another_salt_and_other_settings_may_be_tried(run: Plan, account: Account, tmp_path: Any) -> None:
    account.group("web-v1")
    file = tmp_path / "settings.yaml"
    file.write_text("probability: 0\nunits: {}")
    assert planned_units(run, "--settings", str(file))["web-v1"]["reason"] == "not-rolled"
    assert planned_units(run, "--salt", "x")["web"]["rolled"] != planned_units(run)["web"]["rolled"]


def test_a_stack_of_an_earlier_version(run: Plan, template: dict[str, Any]) -> None:
    del template["Metadata"]
    result = run()
    assert result.exit_code == Exit.FAILED
    assert (
        "the stack Troop lacks its settings: run make deploy KEEP=1 DEPLOYMENT=Troop with this version" in result.stderr
    )


def test_the_salt_is_not_for_everybody(run: Plan, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web-v1")
    with calls(monkeypatch, refusing("GetSecretValue", "AccessDeniedException")):
        result = run()
        assert result.exit_code == Exit.FORBIDDEN
        assert "must allow secretsmanager:GetSecretValue" in result.stderr
        assert planned_units(run, "--salt", "x")["web"]["reason"] == "terminate"


@pytest.mark.parametrize("settings", [NAMED], indirect=True)
@pytest.mark.parametrize(
    ("code", "reason", "assumption"),
    [
        ("AccessDeniedException", "terminate", "prod stays open, because it cannot be read: your policies must allow"),
        ("InvalidDocument", "change-calendar", "prod stays closed, because it cannot be read: An error occurred"),
    ],
)
def test_unreadable_change_calendar_is_an_assumption_and_hides_no_forecast(
    run: Plan, account: Account, monkeypatch: pytest.MonkeyPatch, code: str, reason: str, assumption: str
) -> None:
    """A missing permission is the caller's own; about a calendar that is missing, a tick decides the same."""
    account.group("web")
    monkeypatch.setattr(times, "now", account.clock)
    with calls(monkeypatch, refusing("GetCalendarState", code)):
        assert planned_units(run)["web"]["reason"] == reason
        assert f"SSM Change Calendar {assumption}" in " ".join(run().stderr.split())
        basis = ui.read(aws.make_session(None, "eu-central-1"), DEPLOYMENT)
        page = calendar_ahead.document(basis, account.clock(), 2)
    assert bool(page["expected"]) == (reason == "terminate")
    assert sum(assumption in one for one in page["assumptions"]) == 1


def test_plan_of_a_unit_names_minute_and_instance_or_the_odds_without_the_salt(
    run: Plan, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web-v1")
    today = planned_units(run)["web"]
    text = run("--unit", "web-v1", "--days", "3").stdout
    assert len(text.splitlines()) == 6
    line = next(one for one in text.splitlines() if one.startswith("Fri 2026-11-20"))
    assert line.split()[2:5] == ["yes", today["local_tick"][11:16], today["target"]["instance_id"]]
    assert "Next: web loses" in text
    with calls(monkeypatch, refusing("GetSecretValue", "AccessDeniedException")):
        odds = run("--unit", "web")
    assert odds.exit_code == 0, odds.output
    assert today["target"]["instance_id"] not in odds.stdout
    assert "These are odds" in odds.stdout
    assert "must allow secretsmanager:GetSecretValue" in odds.stdout
    assert "100 %" in odds.stdout


def test_plan_of_a_unit_refuses_other_days_and_unknown_names(run: Plan, account: Account) -> None:
    account.group("web-v1")
    for words in (("--unit", "web", "--day", "2026-11-20"), ("--days", "3")):
        assert run(*words).exit_code == Exit.USAGE
    unknown = run("--unit", "wed")
    assert unknown.exit_code == Exit.NO_SUCH_UNIT
    assert "did you mean web?" in unknown.stderr
