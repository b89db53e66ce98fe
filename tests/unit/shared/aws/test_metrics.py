"""Metrics of the workflow's functions, as the log lines that CloudWatch reads; and that their failing stops nothing."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics
from aws_lambda_powertools.utilities.typing import LambdaContext

from tests.unit.account.account import CONTEXT, FRIDAY, WEB, Account, calls, refusing
from tests.unit.chaos.build import judged
from tests.unit.chaos.flows.test_recovery_check import never_whole
from troop.chaos.aws.outcome_metrics import emit_closed
from troop.chaos.flows.termination import TerminationForbiddenError
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.errors import RunClosedError
from troop.shared.metrics import Metric


def written(capsys: pytest.CaptureFixture[str]) -> list[tuple[dict[str, str], dict[str, list[float]]]]:
    """(dimensions, values) of every line of metrics written since the last call."""
    metrics = []
    for line in map(_parse, capsys.readouterr().out.splitlines()):
        if "_aws" in line:
            (directive,) = line["_aws"]["CloudWatchMetrics"]
            assert directive["Namespace"] == "Troop"
            (names,) = directive["Dimensions"]
            metrics.append(({n: line[n] for n in names}, {m["Name"]: line[m["Name"]] for m in directive["Metrics"]}))
    return metrics


def values_of(capsys: pytest.CaptureFixture[str], name: str) -> list[float]:
    """Values of one metric, of the lines written since the last call."""
    return [values[name][0] for _, values in written(capsys) if name in values]


def _parse(line: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(line)
    return parsed


HERE = {"deployment": "Troop"}


def outcome(status: str, count: int = 1) -> tuple[dict[str, str], dict[str, list[int]]]:
    return HERE | {"status": status}, {"Outcomes": [count]}


def verdict(value: str) -> tuple[dict[str, str], dict[str, list[int]]]:
    return HERE | {"verdict": value}, {"Verdicts": [1]}


def test_a_tick_and_its_decisions_by_reason(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("web", 3), ("db", 3), ("tiny", 1)):
        account.group(name, size)
    account.group("out", tags={"troop:opt_out": "true"})
    account.group("own", tags={"troop:protected": "true"})
    account.group("odd", tags={"troop:probability": "often"})
    account.group("sick")
    account.put("State", {"key": {"S": "unit#sick"}, "unrecovered": {"S": "2026-11-19#sick"}})
    account.decide()
    first, *decided, units = written(capsys)
    assert first == (HERE, {"Ticks": [1]})
    expected = [("malformed", [1]), ("opted-out", [1]), ("protected", [1])]
    expected += [("terminate", [2]), ("too-small", [1]), ("unrecovered", [1])]
    assert sorted((d["reason"], v["Decisions"]) for d, v in decided) == expected
    assert all(set(d) == {"deployment", "reason"} for d, _ in decided)
    assert units == (HERE | {"calendar": "default"}, {"UnitsTakingPart": [3], "UnitsOptedOut": [1]})


def test_a_termination_and_a_refusal(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    assert written(capsys) == [(HERE, {"Terminations": [1]}), outcome("TERMINATED")]
    account.group("tiny", 1)
    account.terminate(account.item("tiny"))
    assert written(capsys) == [outcome("REFUSED")]


def test_forbidden_termination_counts_though_the_step_fails(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    item = account.item("web")
    written(capsys)
    with (
        calls(monkeypatch, refusing("TerminateInstances", "UnauthorizedOperation")),
        pytest.raises(TerminationForbiddenError),
    ):
        account.terminate(item)
    assert written(capsys) == [outcome("ABANDONED")]


def test_a_recovery_and_how_long_it_took(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    account.clock.forward(seconds=7)
    written(capsys)
    with calls(monkeypatch, never_whole):
        account.check_recovery(WEB)
    assert written(capsys) == []
    account.check_recovery(WEB)
    recovery = HERE, {"Recoveries": [1], "RecoverySeconds": [7]}
    assert written(capsys) == [recovery, outcome("RECOVERED"), verdict("HELD")]


def test_a_group_that_does_not_recover(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    account.clock.forward(minutes=31)
    written(capsys)
    with calls(monkeypatch, never_whole):
        account.check_recovery(WEB)
    assert written(capsys) == [(HERE, {"Unrecovered": [1]}), outcome("UNRECOVERED"), verdict("BROKEN")]


def test_a_verdict_counts_with_the_end_of_its_event_unless_it_is_awaited(capsys: pytest.CaptureFixture[str]) -> None:
    emit_closed("Troop", judged())
    recovery = HERE, {"Recoveries": [1], "RecoverySeconds": [190]}
    assert written(capsys) == [recovery, outcome("RECOVERED"), verdict("BROKEN")]
    emit_closed("Troop", judged(verdict=None))
    assert written(capsys) == [recovery, outcome("RECOVERED")]


def test_sweep_writes_metrics_of_the_events_that_it_closes(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("web", "db"):
        account.group(name)
        account.terminate(account.item(name))
    account.drop_group("db")
    account.clock.forward(minutes=10)
    written(capsys)
    account.sweep()
    assert account.event(f"{FRIDAY}#db").status == "GROUP_DELETED"
    metrics = written(capsys)
    assert metrics[0] == (HERE, {"Recoveries": [1]})
    *outcomes, repaired = metrics[1:]
    ends = [outcome("GROUP_DELETED"), outcome("RECOVERED"), verdict("HELD"), verdict("UNKNOWN")]
    assert sorted(outcomes, key=str) == ends
    assert repaired == (HERE | {"kind": "event-swept"}, {"Repairs": [2]})
    account.clock.moment += timedelta(minutes=10)
    account.sweep()
    assert written(capsys) == []


def test_units(capsys: pytest.CaptureFixture[str]) -> None:
    emit("Blue", {Metric.RECOVERY_SECONDS: 1.5, Metric.RECOVERIES: 1})
    (directive,) = _parse(capsys.readouterr().out)["_aws"]["CloudWatchMetrics"]
    assert directive["Metrics"] == [
        {"Name": "RecoverySeconds", "Unit": "Seconds"},
        {"Name": "Recoveries", "Unit": "Count"},
    ]


def test_nothing_is_no_line_and_no_warning(
    capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    emit("Blue", {})
    assert (written(capsys), list(recwarn)) == ([], [])


def test_the_services_name_is_no_dimension(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "decide")
    emit("Blue", {Metric.TICKS: 1})
    assert written(capsys) == [({"deployment": "Blue"}, {"Ticks": [1]})]


def test_metrics_that_cannot_be_written_stop_nothing(
    account: Account, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    account.group("web")
    monkeypatch.setattr(EphemeralMetrics, "flush_metrics", broken)
    assert account.terminate(account.item("web"))["status"] == "TERMINATED"
    assert "metrics were not written" in caplog.messages


def test_a_step_that_fails_is_counted_and_one_whose_run_was_closed_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROOP_DEPLOYMENT", "Blue")
    failed = ({"deployment": "Blue"}, {"StepsFailed": [1]})
    for error, counted in ((ValueError("x"), [failed]), (RunClosedError("r"), [])):

        @step(Logger(), "run")
        def handler(event: dict[str, Any], context: LambdaContext, error: Exception = error) -> dict[str, Any]:
            raise error

        with pytest.raises(type(error)):
            handler({"run": "r"}, CONTEXT)
        assert written(capsys) == counted


@pytest.mark.parametrize("count", [1, 3, 100])
def test_several_values_of_a_metric_are_one_line(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    some = [float(number) for number in range(count)]
    emit("Troop", {Metric.FLEET_HEALTH: some}, fleet="workers", check="disk")
    assert written(capsys) == [(HERE | {"fleet": "workers", "check": "disk"}, {"FleetHealth": some})]
