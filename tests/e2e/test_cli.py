"""The command as a person runs it, in an environment that knows nothing of the project, against a deployed API."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.shared.errors import Exit
from local.launcher import LocalAccount
from local.project import BIN
from tests.e2e.conftest import BUSY, Deployment

NAME = "Commanded"
WEB, LEDGER = "cli-web", "cli/ledger"


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    deployment = Deployment(account, NAME)
    for name in (WEB, LEDGER):
        deployment.group(name)
    yield deployment
    for name in (WEB, LEDGER):
        deployment.groups.delete(name)


class Command:
    """`troop`, from a folder of its own, with the account's credentials and nothing of the project."""

    def __init__(self, account: LocalAccount, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TROOP_DEPLOYMENT": NAME,
            **account.exports,
        }

    def __call__(self, *words: str, code: int = 0, stdin: str = "", **environment: str) -> str:
        returned, stdout, stderr = self.run(words, stdin, self.environment | environment)
        assert returned == code, (words, returned, stdout, stderr)
        return stderr if code else stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def run(self, words: Sequence[str], stdin: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
        """Exit code, stdout and stderr. In this process, for the start of another takes longer than most commands."""
        with contextlib.chdir(self.folder), mock.patch.dict(os.environ, environment, clear=True):
            result = CliRunner().invoke(app, words, input=stdin, prog_name="troop")
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr


class Executable(Command):
    """The same as a process, as people run it."""

    def run(self, words: Sequence[str], stdin: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(BIN / "troop"), *words],
            cwd=self.folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=BUSY,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def troop(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Command:
    return Command(deployment.account, tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def executable(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Executable:
    return Executable(deployment.account, tmp_path_factory.mktemp("executable"))


def test_the_executable(executable: Executable, troop: Command) -> None:
    """Its output, its errors, their exit codes and its standard input are those of the command in this process."""
    assert executable("groups") == troop("groups")
    assert executable("group", "cli-wbe", code=Exit.NO_SUCH_UNIT) == troop("group", "cli-wbe", code=Exit.NO_SUCH_UNIT)
    assert "nothing to change" in executable("policy", "import", "-", stdin=executable("policy", "export"))


def test_groups_and_one_of_them(troop: Command) -> None:
    units = {group["unit"]: group for group in troop.json("groups")["groups"]}
    assert units[WEB]["takes_part"] is True
    assert (units[WEB]["in_service"], units[WEB]["desired"]) == (2, 2)
    assert WEB in troop("groups")
    assert "probability" in troop("group", WEB)
    assert troop.json("group", LEDGER)["unit"] == LEDGER


def test_a_plan_tells_what_the_next_tick_decides(troop: Command, deployment: Deployment) -> None:
    """With the deployed settings, tables and salt, read with the caller's own credentials."""
    plan = troop.json("plan")
    ahead = {unit["unit"]: unit for unit in plan["units"] if unit["unit"] in (WEB, LEDGER)}
    assert set(ahead) == {WEB, LEDGER}
    assert [calendar["closed"] for calendar in plan["calendars"]] == [None]
    assert deployment.tick()["status"] == "SUCCEEDED"
    for unit, forecast in ahead.items():
        decision = deployment.view.decisions(unit)[0]
        assert decision["reason"] == forecast["reason"] == "leashed"
        assert decision["instance_id"] == forecast["target"]["instance_id"]
        assert float(decision["rolled"]) == pytest.approx(forecast["rolled"])
    assert f"of {WEB} in " in troop("plan")
    unleashed = {unit["unit"]: unit["reason"] for unit in troop.json("plan", "--unleashed")["units"]}
    assert (unleashed[WEB], unleashed[LEDGER]) == ("terminate", "terminate")


def test_an_opt_out_holds_at_the_next_tick(troop: Command, deployment: Deployment) -> None:
    output = troop("opt-out", LEDGER, "--reason", "month-end closing", "--until", "2099-12-31", "--owner", "accounting")
    assert "skipped" in output
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert deployment.view.decisions(LEDGER)[0]["reason"] == "opted-out"
    why = troop("why", LEDGER, "--ticks")
    assert "would have been terminated" in why.splitlines()[0]  # by the tick before
    assert "opted out by item until 2099-12-31: month-end closing" in why
    assert why.splitlines()[-1].split()[1:4] == ["1", "opted", "out"]
    answer = troop.json("why", LEDGER)
    assert [decision["reason"] for decision in answer["decisions"]] == ["opted-out", "leashed"]
    assert "but the deployment was leashed" in troop("why", WEB, "--day", answer["day"])
    listed = deployment.view.api.get("decisions", {"day": answer["day"]}).body["decisions"]
    assert {LEDGER: "opted-out", WEB: "leashed"}.items() <= {d["unit"]: d["reason"] for d in reversed(listed)}.items()
    assert "No tick decided about" in troop("why", WEB, "--day", "2020-02-20")
    unit = troop.json("group", LEDGER)
    assert unit["policy"]["reason"] == {"value": "month-end closing", "source": "item"}
    assert unit["changes"][0]["changes"]["opt_out"] == {"old": None, "new": True}
    assert "takes part" in troop("opt-in", LEDGER)
    assert troop.json("group", LEDGER)["policy"]["takes_part"]["value"] is True


def test_events_of_a_leashed_tick(troop: Command, deployment: Deployment) -> None:
    assert deployment.tick()["status"] == "SUCCEEDED"
    events = troop.json("events", "--unit", WEB, "--status", "leashed", "--since", "1h")["events"]
    assert [(event["group"], event["status"]) for event in events] == [(WEB, "LEASHED")]
    assert troop.json("events", "--group", WEB)["events"] == events
    assert troop.json("events", "--unit", WEB, "--until", "1h")["events"] == []
    assert "LEASHED" in troop("events", "--group", WEB)


def test_values_are_set_and_taken_away(troop: Command) -> None:
    policy = troop.json("set", WEB, "probability=0.25", "min_healthy=3", "stop_alarms=one,two")["policy"]
    assert policy["probability"] == {"value": 0.25, "source": "item"}
    assert policy["stop_alarms"]["value"] == ["one", "two"]
    policy = troop.json("set", WEB, "probability=", "min_healthy=", "stop_alarms=")["policy"]
    assert policy["probability"]["source"] == "settings"
    assert "calendar" in troop("set", WEB, "calendar=nowhere", code=Exit.REFUSED)
    assert "spelled probability" in troop("set", WEB, "probabilty=1", code=Exit.USAGE)


def test_a_unit_that_has_not_recovered_is_put_back(troop: Command, deployment: Deployment) -> None:
    tables = deployment.outputs
    for item in (
        {"key": {"S": f"unit#{WEB}"}, "unrecovered": {"S": f"2026-11-20#{WEB}"}},
        {"key": {"S": "unrecovered"}, "units": {"SS": [WEB]}},
    ):
        deployment.dynamodb.put_item(TableName=tables["StateTable"], Item=item)
    assert "did not recover from" in troop("group", WEB)
    troop("opt-in", WEB)
    assert troop.json("group", WEB)["unrecovered"] is None


def test_the_switch(troop: Command) -> None:
    assert troop.json("halt", "--reason", "incident")["halted"] is True
    assert "--yes" in troop("resume", code=Exit.NOT_CONFIRMED)
    assert "--yes" in troop("unleash", code=Exit.NOT_CONFIRMED)
    assert troop.json("resume", "--yes")["halted"] is False
    assert troop.json("unleash", "--yes")["leashed"] is False
    switch = troop.json("leash")
    assert (switch["halted"], switch["leashed"]) == (False, True)


def test_doctor(troop: Command) -> None:
    health = json.loads(troop("doctor", "--json"))
    assert health["status"] in ("ok", "warn")
    assert {check["name"] for check in health["checks"]} >= {"tables", "schedules"}
    assert "leashed" in troop("doctor")


def test_policy_goes_out_and_comes_back(troop: Command) -> None:
    troop("set", WEB, "owner=web team", "probability=0.5", "until=2099-01-01", "opt_out=false")
    troop("opt-out", "cli-later", "--ahead", "--reason", "its group is yet to come")
    exported = troop("policy", "export")
    assert "its group is yet to come" in exported
    assert "nothing to change" in troop("policy", "import", "-", stdin=exported)
    changed = exported.replace("0.5", "0.125").replace("web team", "platform")
    assert f"{WEB}: probability: 0.5 -> 0.125" in troop("policy", "import", "-", "--dry-run", stdin=changed)
    assert troop("policy", "export") == exported
    output = troop("policy", "import", "-", "--yes", stdin=changed + "  nobodys-unit: {owner: x}\n", code=Exit.FAILED)
    assert "nobodys-unit" in output
    assert troop("policy", "export") == changed


def test_unknown_unit_and_deployment_are_reported_with_near_names(troop: Command, deployment: Deployment) -> None:
    near = troop("group", "cli-wbe", code=Exit.NO_SUCH_UNIT)
    assert f"did you mean {WEB}" in near
    missing = troop("groups", TROOP_DEPLOYMENT="Nobodys", code=Exit.NO_DEPLOYMENT)
    assert "no deployment Nobodys in region us-east-1 of account 000000000000" in missing
    assert NAME in missing


def test_who_may_not(troop: Command, deployment: Deployment) -> None:
    iam = deployment.account.client("iam")
    iam.create_user(UserName="looker")
    key = iam.create_access_key(UserName="looker")["AccessKey"]
    looker = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    assert "cloudformation:DescribeStacks" in troop("events", code=Exit.FORBIDDEN, **looker)
    allowed = [
        {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"},
        {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "arn:aws:execute-api:*:*:*/*/GET/*"},
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": allowed})
    iam.put_user_policy(UserName="looker", PolicyName="look", PolicyDocument=document)
    troop("events", **looker)
    output = troop("halt", code=Exit.FORBIDDEN, **looker)
    assert "execute-api:Invoke" in output
    assert "/PATCH/switch" in output


def test_the_proxy_serves_programs_that_cannot_sign(executable: Executable) -> None:
    process = subprocess.Popen(
        [str(BIN / "troop"), "proxy"],
        env=executable.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        _, _, header_file, address = lines[1].split()
        file = Path(header_file.removeprefix("@"))
        name, _, token = file.read_text().strip().partition(": ")
        request = urllib.request.Request(address, headers={name: token})
        with urllib.request.urlopen(request, timeout=BUSY) as answer:
            assert "events" in json.load(answer)
    finally:
        process.terminate()
        process.wait(timeout=BUSY)
        process.communicate()
    assert not file.exists()
