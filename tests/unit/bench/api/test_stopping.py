"""Stopping a run by the API."""

from __future__ import annotations

import pytest

from tests.unit.account.account import calls, cut_at
from tests.unit.account.asking import ANNA, BERT, ask
from tests.unit.account.bench import CALLS, Half, post
from troop.bench.records.record import RunStatus
from troop.shared.aws.clients import client


def test_a_stopped_run_is_closed_its_workflow_ended_and_its_teardown_started(half: Half) -> None:
    _, response = post()
    status, run = ask("DELETE", f"/benchmarks/{response['run']}", caller=BERT)
    assert (status, run["status"], run["reason"]) == (202, "STOPPING", f"stopped by {BERT}")
    assert half.runs.get(run["run"]).closed_at is not None
    assert client("stepfunctions").describe_execution(executionArn=response["execution"])["status"] == "ABORTED"
    (work,) = half.started("teardown").values()
    assert work == {"run": run["run"], "status": "STOPPED", "reason": f"stopped by {BERT}"}


def test_stopping_again_is_harmless_and_a_teardown_that_failed_is_tried_again(half: Half) -> None:
    _, response = post()
    for _ in range(3):
        status, run = ask("DELETE", f"/benchmarks/{response['run']}")
        assert (status, run["status"], run["reason"]) == (202, "STOPPING", f"stopped by {ANNA}")
    assert len(half.started("teardown")) == 1
    half.account.clock.forward(minutes=1)
    ask("DELETE", f"/benchmarks/{response['run']}")
    assert len(half.started("teardown")) == 2


def test_a_run_whose_workflow_never_started_can_be_stopped(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch, cut_at(CALLS - 1, acted=False)):
        assert post()[0] == 500
    (run,) = half.runs.page(10).runs
    assert ask("DELETE", f"/benchmarks/{run.run}")[0] == 202
    assert len(half.started("teardown")) == 1
    assert post()[0] == 200
    assert half.started() == {}  # it was stopped: the repeated request must not bring it back


def test_stop_of_an_ended_run_changes_nothing(half: Half) -> None:
    _, response = post()
    half.runs.close(response["run"], RunStatus.SUCCEEDED, None, half.account.clock.moment)
    ended = half.runs.conclude(response["run"], half.account.clock.moment)
    status, run = ask("DELETE", f"/benchmarks/{response['run']}")
    assert (status, run["status"]) == (200, "SUCCEEDED")
    assert half.runs.get(response["run"]) == ended
    assert half.started("teardown") == {}


def test_a_run_that_is_torn_down_already_keeps_its_outcome(half: Half) -> None:
    _, response = post()
    half.runs.close(response["run"], RunStatus.FAILED, "a node died", half.account.clock.moment)
    status, run = ask("DELETE", f"/benchmarks/{response['run']}")
    assert (status, run["reason"]) == (202, "a node died")
    assert client("stepfunctions").describe_execution(executionArn=response["execution"])["status"] == "RUNNING"
    assert len(half.started("teardown")) == 1
