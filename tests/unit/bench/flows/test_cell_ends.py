"""Cells that end from outside or by an error, and steps that are cut off and tried again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from tests.unit.account.account import Call, Cut, calls, cut_at, refusing
from tests.unit.account.benches import BENCHMARK, BUCKET, CELL, Bench
from troop.bench.definition import names
from troop.bench.flows.cell_steps import CellSteps
from troop.bench.records.record import CellStatus, RunStatus
from troop.shared.errors import RunClosedError


def test_a_closed_run_stops_at_its_next_step(bench: Bench) -> None:
    bench.gathered()
    bench.runs.close(bench.run, RunStatus.STOPPED, "stopped by arn:me", bench.account.clock())
    with pytest.raises(RunClosedError):
        bench.step("release", phase_index=0)
    assert bench.barrier("prepare")["state"] == "hold"
    bench.step("fail", error="RunClosedError", cause="{}")
    cell = bench.cell()
    assert (cell.status, cell.reason) == (CellStatus.STOPPED, "stopped by arn:me")
    assert bench.barrier("prepare")["state"] == "end"
    settled = bench.step("settle", error="", cause="")
    assert (settled["status"], settled["reason"]) == ("STOPPED", "stopped by arn:me")


@pytest.mark.parametrize("step", ["gather", "check"])
def test_a_run_that_is_stopped_while_it_waits_ends(bench: Bench, step: str) -> None:
    bench.launched()
    more = {}
    if step == "check":
        bench.register(bench.nodes())
        bench.gather()
        bench.step("release", phase_index=0)
        more = {"phase_index": 0}
    bench.runs.close(bench.run, RunStatus.STOPPED, "by hand", bench.account.clock())
    assert bench.step(step, **more)["state"] == "failed"
    assert bench.cell().status is CellStatus.STOPPED


def test_nodes_that_a_teardown_takes_away_do_not_make_a_cell_invalid(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's workflow is stopped, and its teardown begins, between what the step reads of run and nodes."""
    bench.measuring()
    read_nodes = CellSteps._check

    def stopped_meanwhile(steps: CellSteps, *arguments: Any) -> Any:
        bench.runs.close(bench.run, RunStatus.FAILED, "its workflow was stopped", bench.account.clock())
        return read_nodes(steps, *arguments)

    monkeypatch.setattr(CellSteps, "_check", stopped_meanwhile)
    bench.lose(bench.nodes()[0])
    assert bench.check(1) == "failed"
    assert (bench.cell().status, bench.cell().reason) == (CellStatus.FAILED, "its workflow was stopped")


def test_an_expired_run_ends(bench: Bench) -> None:
    bench.measuring()
    bench.account.clock.moment = bench.runs.get(bench.run).expires_at - timedelta(seconds=1)
    bench.finish("measure", bench.nodes("drivers")[:2])
    bench.account.clock.forward(seconds=1)
    assert bench.check(1) == "failed"
    assert "expired" in (bench.cell().reason or "")


def test_a_closed_run_is_not_opened(bench: Bench) -> None:
    bench.runs.close(bench.run, RunStatus.STOPPED, "by hand", bench.account.clock())
    with pytest.raises(RunClosedError):
        bench.open()
    settled = bench.step("settle", error="RunClosedError", cause="{}")
    assert (settled["status"], settled["reason"]) == ("STOPPED", "by hand")
    assert bench.cell().status is CellStatus.STOPPED


def test_a_cell_whose_workflow_died_is_not_left_running(bench: Bench) -> None:
    bench.measuring()
    settled = bench.step("settle", error="States.ItemReaderFailed", cause="no such key")
    assert settled["status"] == "FAILED"
    cell = bench.cell()
    assert (cell.status, cell.phase) == (CellStatus.FAILED, "over")
    assert cell.reason == "States.ItemReaderFailed: no such key"


def test_first_failure_and_its_cause_stay_on_record(bench: Bench) -> None:
    bench.gathered()
    bench.step("fail", error="ClientError", cause='{"errorMessage": "An error occurred (Throttling)", "x": 1}')
    cell = bench.cell()
    assert (cell.status, cell.phase) == (CellStatus.FAILED, "teardown")
    assert cell.reason == "ClientError: An error occurred (Throttling)"
    bench.step("fail", error="Other", cause="later")
    assert bench.cell().reason == cell.reason


def test_failure_ends_waiting_barriers_and_leaves_released_ones(bench: Bench) -> None:
    bench.gathered()
    bench.step("release", phase_index=0)
    bench.step("fail", error="X", cause="")
    assert bench.barrier("prepare")["state"] == "release"
    assert bench.barrier("measure")["state"] == "end"


@pytest.mark.parametrize("operation", ["GetConsoleOutput", "DescribeInstances", "ListObjectsV2", "PutObject"])
def test_failed_diagnosis_does_not_stop_the_end_of_a_cell(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    bench.launched()

    with calls(monkeypatch, refusing(operation, "InternalError")):
        assert bench.step("fail", error="X", cause="why")["state"] == "failed"
    cell = bench.cell()
    assert (cell.status, cell.phase, cell.reason) == (CellStatus.FAILED, "teardown", "X: why")


def test_refused_console_output_is_read_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    attempts: list[bool] = []

    def not_latest(number: int, name: str, call: Call) -> Any:
        if name == "GetConsoleOutput":
            attempts.append(True)
            if len(attempts) % 2:
                raise ClientError({"Error": {"Code": "UnsupportedOperation", "Message": "no"}}, name)
        return call()

    with calls(monkeypatch, not_latest):
        bench.step("fail", error="X", cause="")
    assert len([key for key in bench.objects() if "/output/boot/" in key]) == BENCHMARK.nodes


@pytest.mark.parametrize(
    ("step", "prepare", "over"),
    [
        ("gather", lambda b: b.register(b.launched().nodes()), "ready"),
        ("release", lambda b: b.gathered(), "waiting"),
        ("check", lambda b: b.finish("measure", b.measuring().nodes("drivers")), "done"),
        ("collect", lambda b: b.finish("measure", b.measuring().nodes("drivers")), "done"),
        ("fail", lambda b: b.launched(), "failed"),
    ],
)
def test_cut_anywhere_a_step_comes_to_the_same_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, prepare: Callable[[Bench], Any], over: str
) -> None:
    """One after the other: each try carries on with what the ones before it have left."""
    prepare(bench)
    more: dict[str, Any] = {"release": {"phase_index": 0}, "check": {"phase_index": 1}}.get(step, {})
    for number in range(60):
        with calls(monkeypatch, cut_at(number, acted=True)) as operations:
            try:
                bench.step(step, **more)
            except Cut:
                continue
        if number >= len(operations):
            break
    answer = bench.step(step, **more)
    assert answer["state"] == over
    expected = {"collect": CellStatus.SUCCEEDED, "fail": CellStatus.FAILED}.get(step, CellStatus.RUNNING)
    assert bench.cell().status is expected
    if step == "gather":
        assert len(bench.get(names.roster_key(bench.run, CELL))["nodes"]) == BENCHMARK.nodes
    if step == "collect":
        assert (bench.cell().results or [])[0]["count"] == 3000


def test_throttling_fails_a_step_and_spoils_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.measuring()

    with calls(monkeypatch, refusing("DescribeInstances", "RequestLimitExceeded")), pytest.raises(ClientError):
        bench.check(1)
    assert bench.cell().status is CellStatus.RUNNING
    assert bench.check(1) == "waiting"


def test_more_nodes_than_a_page_of_the_list_are_all_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    bench.register(bench.nodes())
    s3 = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]
    for number in range(1001):
        s3.put_object(BUCKET, f"{names.nodes_prefix(bench.run, CELL)}i-00-stranger-{number}.json", b"{}")
    with calls(monkeypatch) as operations:
        assert bench.gather() == "ready"
    assert operations.count("ListObjectsV2") >= 2
    assert operations.count("GetObject") <= BENCHMARK.nodes + 2, "what strangers have written is not read"


def test_an_answer_is_small_and_has_all_that_the_workflow_reads(bench: Bench) -> None:
    bench.launched()
    answer = bench.step("gather")
    assert set(answer) == {
        *("run", "cell", "phase_index", "state", "wait_seconds", "status", "reason", "bucket", "key", "parallel")
    }
