"""The watchdog: what it finds it says as metrics, and what it cannot see it does not say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handlers import watchdog
from tests.unit.account.account import CONTEXT, calls, refusing
from tests.unit.account.deployed import RELEASE, Deployed
from troop.chaos.health import Grade
from troop.chaos.wiring.health import releases
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import typed
from troop.shared.release import RunningRelease


def metrics(capsys: pytest.CaptureFixture[str]) -> dict[str, list[float]]:
    """The values in the one metrics line that was written."""
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Troop", [["deployment"]])
    assert line["deployment"] == "Troop"
    assert {m["Unit"] for m in directive["Metrics"]} == {"Count"}
    return {m["Name"]: line[m["Name"]] for m in directive["Metrics"]}


def test_the_watchdog_says_it_as_metrics(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert watchdog.handler({}, CONTEXT) == {"status": "ok", "failing": []}
    assert metrics(capsys) == {
        "UnitsUnrecovered": [0],
        "MissingTicks": [0],
        "FailingChecks": [0],
    }


def test_the_watchdog_counts_what_is_wrong(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.unrecovered("web", "db")
    client("sqs").send_message(QueueUrl=deployed.queue, MessageBody="{}")
    answer = watchdog.handler({}, CONTEXT)
    assert answer == {"status": Grade.FAIL, "failing": ["dead-letters", "units-unrecovered"]}
    measurements = metrics(capsys)
    assert (measurements["UnitsUnrecovered"], measurements["FailingChecks"]) == ([2], [2])


def test_the_watchdog_says_that_the_deployment_has_halted_itself_while_it_has(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    halt = {"key": "self-halt", "at": "2026-11-20T22:00:00.000Z", "why": "3 causes"}
    deployed.account.put("State", typed(halt))
    assert watchdog.handler({}, CONTEXT) == {"status": Grade.FAIL, "failing": ["halted-itself"]}
    assert metrics(capsys)["HaltedItself"] == [1]


def test_unreadable_check_has_no_metric_and_silences_the_watchdog(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A zero would say that all is well, and end an alarm; the alarm on silence counts FailingChecks."""

    with calls(monkeypatch, refusing("GetItem", "AccessDenied")):
        answer = watchdog.handler({}, CONTEXT)
    assert metrics(capsys) == {"MissingTicks": [0]}
    assert answer["failing"] == ["units-unrecovered", "units-broken", "halted-itself"]


def test_the_watchdog_looks_at_no_alarm(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its metrics are what alarms are made of: one of these would keep itself on."""
    deployed.alarm("Troop-TicksFailed", deployed.topic)
    monkeypatch.delenv("TROOP_ACT_NOW_TOPIC")
    with calls(monkeypatch) as operations:
        assert watchdog.handler({}, CONTEXT) == {"status": "ok", "failing": []}
    assert not {"DescribeAlarms", "GetTopicAttributes"} & set(operations)
    assert metrics(capsys)["FailingChecks"] == [0]


def test_the_watchdog_records_since_when_a_release_runs(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = deployed.account.clock
    first = clock()
    watchdog.handler({}, CONTEXT)
    clock.forward(minutes=15)
    watchdog.handler({}, CONTEXT)
    assert releases().running() == RunningRelease(RELEASE, first)
    following = replace(RELEASE, assets={"functions": "0" * 64})
    monkeypatch.setenv("TROOP_RELEASE", json.dumps(following.document()))
    watchdog.handler({}, CONTEXT)
    assert releases().running() == RunningRelease(following, clock())


def test_release_that_cannot_be_recorded_does_not_stop_the_watchdog(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, refusing("UpdateItem", "AccessDenied")):
        assert watchdog.handler({}, CONTEXT) == {"status": "ok", "failing": []}
    assert releases().running() is None


def test_damaged_record_of_the_release_is_written_again(deployed: Deployed) -> None:
    deployed.account.put("State", typed({"key": "release", "release": "edited"}))
    assert releases().running() is None
    watchdog.handler({}, CONTEXT)
    assert releases().running() == RunningRelease(RELEASE, deployed.account.clock())
