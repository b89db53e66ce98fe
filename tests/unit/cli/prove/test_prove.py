"""`troop prove` asks about each step, and stops what it has started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import boto3
import pytest

from cli.client.api import Answer
from cli.prove.ledger import PREFIX
from cli.prove.probes import Probes
from cli.prove.questions import QUESTIONS
from cli.shared import aws
from cli.shared.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run, event


def test_the_list_needs_no_account(run: Run) -> None:
    result = run("prove", "--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == [question.name for question in QUESTIONS]


def test_each_step_shows_its_price_and_needs_confirmation(
    run: Run, api: FakeApi, account: boto3.Session, tmp_path: Path
) -> None:
    api.events = [
        event("web", method="crash", os_shutdown=True, detail="i-0123456789abcdef0 of Shop-prod", group="web"),
        event("web", method="crash", os_shutdown=False),
    ]
    out = tmp_path / "answers.json"
    words = ("prove", "--out", str(out), "--only", "crashes", "--only", "absent-role")
    result = run(*words, typed="y\nn\n")
    assert result.exit_code == 0, result.output
    assert "It costs at most $0, and needs execute-api:Invoke." in result.output
    document = json.loads(out.read_text())
    assert [(one["name"], one["verdict"]) for one in document["answers"]] == [
        ("crashes", "no"),
        ("absent-role", "skipped"),
    ]
    assert document["answers"][0]["evidence"]["details"] == ["<id 1> of <name 1>"]
    assert [role for role in account.client("iam").list_roles()["Roles"] if role["RoleName"].startswith(PREFIX)] == []


def test_nobody_to_ask_needs_a_yes_in_advance(run: Run, account: boto3.Session, tmp_path: Path) -> None:
    assert account
    assert run("prove", "--out", str(tmp_path / "a.json")).exit_code == Exit.NOT_CONFIRMED
    assert run("prove", "--only", "everything").exit_code == Exit.USAGE
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_step_leaves_nothing(
    run: Run, account: boto3.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def created() -> list[str]:
        names = [role["RoleName"] for role in account.client("iam").list_roles()["Roles"]]
        return [name for name in names if name.startswith(PREFIX)]

    seen: list[str] = []

    def interrupt(*_: Any) -> Any:
        seen.extend(created())
        raise KeyboardInterrupt

    monkeypatch.setattr(Probes, "_assumed", interrupt)
    run("prove", "--yes", "--out", str(tmp_path / "a.json"), "--only", "absent-role")
    assert len(seen) == 1
    assert created() == []
    assert list(tmp_path.glob("*created*")) == []


def test_local_aws_proves_nothing(
    run: Run, account: boto3.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert account
    monkeypatch.setattr(aws, "is_local", lambda: True)
    monkeypatch.setattr(Probes, "runtime", lambda _: {"arm64": ""})

    def fail(_: Probes) -> Any:
        raise ValueError("no such operation")

    monkeypatch.setattr(Probes, "absent_role", fail)
    out = tmp_path / "a.json"
    assert run("prove", "--yes", "--out", str(out), "--only", "runtime", "--only", "absent-role").exit_code == 0
    answers = json.loads(out.read_text())["answers"]
    assert {one["verdict"] for one in answers} == {"only AWS proves this"}
    assert [one["detail"] for one in answers] == [
        "local AWS: yes, Lambda accepts both",
        "local AWS cannot run this step: no such operation",
    ]


def test_a_run_that_could_cost_more_than_its_price_is_not_started(
    run: Run, api: FakeApi, account: boto3.Session, tmp_path: Path
) -> None:
    assert account
    api.estimate["most"] = 0.09
    out = tmp_path / "a.json"
    run("prove", "--yes", "--out", str(out), "--only", "spot")
    (answer,) = json.loads(out.read_text())["answers"]
    assert (answer["verdict"], answer["detail"]) == ("failed", "it could cost 0.09 here: more than 0.08")
    assert [path for method, path, _ in api.calls if path == "benchmarks"] == []


def test_a_run_that_is_interrupted_is_stopped(
    run: Run, api: FakeApi, account: boto3.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert account

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.shared.watching.poll", interrupt)
    api.estimate["most"] = 0.01
    api.refusals = {
        ("POST", "benchmarks"): [Answer(202, {"run": "r1"})],
        ("GET", "benchmarks/r1"): [Answer(200, {"run": {"ended_at": None}})],
        ("DELETE", "benchmarks/r1"): [Answer(202, {})],
    }
    result = run("prove", "--yes", "--out", str(tmp_path / "a.json"), "--only", "spot")
    assert "continues" not in result.output
    assert [path for method, path, _ in api.calls if method == "DELETE"] == ["benchmarks/r1"]
