"""A deployment does not go, nor its half that runs benchmarks, while these have left anything to be removed."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle import deploy, destroy
from lifecycle.open_runs import refuse_while_open
from tests.tables import create_table
from troop.bench.aws.run_table import RunTable
from troop.bench.definition.standing import Standing
from troop.bench.records.record import Cell, Run, RunStatus
from troop.shared.tables import RUNS

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
STACK: dict[str, Any] = {
    "StackName": "Troop",
    "StackId": "id",
    "StackStatus": "UPDATE_COMPLETE",
    "Outputs": [{"OutputKey": "RunsTable", "OutputValue": "Runs"}],
}


@pytest.fixture
def runs(session: boto3.Session) -> RunTable:
    dynamodb = session.client("dynamodb")
    create_table(dynamodb, RUNS)
    return RunTable(dynamodb, "Runs", sleep=lambda seconds: None)


def begin(runs: RunTable, run: str, standing: Standing | None = None) -> None:
    record = Run(run, "ranges", NOW, NOW + timedelta(hours=1), "arn:me", 1, 2, standing=standing)
    assert runs.create(record, [Cell(run, "c001")])


def test_ended_run_does_not_block(session: boto3.Session, runs: RunTable) -> None:
    begin(runs, "20261120-120000-00000001")
    runs.close("20261120-120000-00000001", RunStatus.FAILED, "it failed", NOW)
    runs.conclude("20261120-120000-00000001", NOW)
    refuse_while_open(session, STACK)


@pytest.mark.parametrize("closed", [False, True])
def test_a_run_that_has_not_ended_holds_everything_back(session: boto3.Session, runs: RunTable, closed: bool) -> None:
    begin(runs, "20261120-120000-00000001")
    if closed:
        runs.close("20261120-120000-00000001", RunStatus.FAILED, "it failed", NOW)
    with pytest.raises(CliError, match=r"20261120-120000-00000001.*troop -d Troop bench stop") as refused:
        refuse_while_open(session, STACK)
    assert refused.value.code == Exit.FAILED


def test_a_standing_fleet_holds_everything_back_too(session: boto3.Session, runs: RunTable) -> None:
    begin(runs, "20261120-120000-00000001", Standing({"workers": 2}))
    with pytest.raises(CliError, match=r"troop -d Troop fleet down 20261120-120000-00000001"):
        refuse_while_open(session, STACK)


def test_a_deployment_without_runs_or_without_their_table_can_go(session: boto3.Session) -> None:
    refuse_while_open(session, {**STACK, "Outputs": []})
    refuse_while_open(session, {key: value for key, value in STACK.items() if key != "Outputs"})
    refuse_while_open(session, STACK)


def test_destroying_asks_it_before_anything_else(
    session: boto3.Session, runs: RunTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(runs, "20261120-120000-00000001")
    monkeypatch.setattr(aws, "make_session", lambda *_: session)
    monkeypatch.setattr(destroy, "find_stack", lambda *_: STACK)
    with pytest.raises(CliError, match="are open"):
        destroy.destroy(argparse.Namespace(deployment="Troop", stage=None, confirm="Troop"))


@pytest.mark.parametrize("benchmarks", [True, False])
def test_deploying_without_benchmarks_asks_it_too(
    session: boto3.Session, runs: RunTable, monkeypatch: pytest.MonkeyPatch, benchmarks: bool
) -> None:
    begin(runs, "20261120-120000-00000001")
    monkeypatch.setattr(aws, "make_session", lambda *_: session)
    monkeypatch.setattr(deploy, "find_stack", lambda *_: STACK)
    monkeypatch.setattr(deploy, "resources_of", lambda *_: {})

    def synthesise(*_: Any) -> None:
        raise CliError(Exit.FAILED, "it would be synthesised")

    monkeypatch.setattr(deploy, "_synthesise", synthesise)
    monkeypatch.setattr(deploy, "_zones", lambda *_, **__: ())
    context = [f"troop:benchmarks={benchmarks}"]
    options = argparse.Namespace(
        context=context, stage=None, deployment=None, adopt="none", yes=True, repair=False, keep=False
    )
    with pytest.raises(CliError, match="it would be synthesised" if benchmarks else "are open"):
        deploy.deploy(options)
