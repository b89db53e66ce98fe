"""`troop thresholds`: what it says, its document, and what it refuses; it changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cli.client.api import Answer
from cli.shared import aws, times
from cli.shared.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run

NOW = datetime.now(UTC).replace(minute=7, second=30, microsecond=0)
START = NOW.replace(minute=0, second=0) - timedelta(days=3)
FLEET = "20261121-150312-1f0c9b2e"


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """CloudWatch of an account; no test may change it."""
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "testing")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setattr(times, "now", lambda: NOW)
    operations: list[str] = []
    with mock_aws():
        client = boto3.client("cloudwatch", region_name="eu-central-1")
        client.meta.events.register("before-call.cloudwatch", lambda model, **_: operations.append(model.name))
        monkeypatch.setattr(aws, "client", lambda session, service: client)
        yield client
        assert set(operations) <= {"PutMetricData", "GetMetricData", "ListMetrics"}
        assert not client.describe_alarms()["MetricAlarms"]


def put(client: Any, name: str, values: list[float], namespace: str = "Mine", **dimensions: str) -> None:
    pairs = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    data: list[Any] = [
        {"MetricName": name, "Dimensions": pairs, "Timestamp": START + timedelta(minutes=10 * n), "Value": value}
        for n, value in enumerate(values)
    ]
    client.put_metric_data(Namespace=namespace, MetricData=data)


def waves(peak: float = 0.0) -> list[float]:
    """Returns values of three days, each a wave of half a day; ``peak`` for an hour of the third day."""
    values = [round(10 + 5 * math.sin(n / 72 * math.pi), 3) for n in range(432)]
    if peak:
        values[400:406] = [peak] * 6
    return values


def test_a_person_learns_the_value_its_alarms_and_their_basis(run: Run, cloudwatch: Any) -> None:
    put(cloudwatch, "Lag", waves(peak=80), Queue="orders")
    result = run("thresholds", "Mine/Lag{Queue=orders}", "--days", "3")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Mine/Lag{Queue=orders}: Average of 15 min"
    assert lines[1].startswith("rests on 288 values over 3.0 days (100.0 % of the periods), ")
    assert lines[2] == "proposed: alarm above 15, after 3 in a row (45 min)"
    assert "it would have raised 1 alarm, 45 min in all, in these days (in-sample: the value stems" in result.stdout
    at = START + timedelta(minutes=4000 // 15 * 15 + 45)
    assert f"{at:%Y-%m-%d %H:%M:%S} UTC  45 min  80" in result.stdout
    assert "the first 2.2 days propose 15, which would have raised 1 alarm, " in result.stdout
    assert "by hour of the week: unknown" in result.stdout
    assert "Nothing was changed." in result.stdout
    assert "judged by the name, values above are bad: --below turns this around" in result.stderr
    assert "the values cover less than a week" in result.stderr
    command = lines[-1].strip()
    assert command == (
        "aws cloudwatch put-metric-alarm --region eu-central-1 --alarm-name Lag-above-15 --namespace Mine "
        "--metric-name Lag --dimensions Name=Queue,Value=orders --statistic Average --period 900 "
        "--evaluation-periods 3 --threshold 15 --comparison-operator GreaterThanThreshold "
        "--treat-missing-data notBreaching"
    )


def test_a_program_gets_all_alarms_and_candidates(ok: Callable[..., Any], cloudwatch: Any) -> None:
    put(cloudwatch, "Lag", waves(), Queue="orders")
    document = ok("thresholds", "Mine/Lag{Queue=orders}", "--days", "3", "--datapoints", "24")
    assert document["datapoints"] == 24
    assert document["candidates"][0] == {"threshold": 15.0, "share": 0.95, "alarms": 0, "seconds_in_alarm": 0}
    assert (document["changed"], document["threshold"], document["side"]) == (False, 15.0, "above")
    assert document["data"]["points"] == 288
    assert document["trial"]["alarms"] == []
    assert document["command"].startswith("aws cloudwatch put-metric-alarm ")


def test_values_below_and_other_statistics(run: Run, cloudwatch: Any) -> None:
    put(cloudwatch, "Free space", waves(), Disk="a b")
    result = run("thresholds", "Mine/Free space{Disk=a b}", "--days", "3", "--statistic", "Minimum")
    assert "proposed: alarm below 5, after 3 in a row" in result.stdout
    assert """--dimensions '[{"Name": "Disk", "Value": "a b"}]'""" in result.stdout
    assert "--alarm-name 'Free space-below-5'" in result.stdout
    assert "--comparison-operator LessThanThreshold" in result.stdout
    result = run("thresholds", "Mine/Free space{Disk=a b}", "--days", "3", "--above")
    assert "proposed: alarm above 15" in result.stdout
    assert "judged by the name" not in result.stderr


@pytest.mark.parametrize("fleet", ["workers", FLEET])
def test_a_check_of_a_fleet_is_one_of_its_name(run: Run, api: FakeApi, cloudwatch: Any, fleet: str) -> None:
    api.refusals["GET", f"fleets/{FLEET}"] = [Answer(200, {"fleet": {"fleet": FLEET, "name": "workers"}})]
    put(cloudwatch, "FleetHealth", waves(), "Troop", deployment="Blue", fleet="workers", check="latency")
    result = run("thresholds", "latency", "--fleet", fleet, "--days", "3", "-d", "Blue")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Troop/FleetHealth{deployment=Blue,fleet=workers,check=latency}: Maximum of 15 min")
    assert "--alarm-name latency-above-15 " in result.stdout
    assert len(api.calls) == (fleet == FLEET)


def test_a_check_of_the_deployment(run: Run, cloudwatch: Any) -> None:
    put(cloudwatch, "UnitsUnrecovered", [0.0] * 432, "Troop", deployment="Troop")
    result = run("thresholds", "units-unrecovered", "--days", "3")
    assert "Troop/UnitsUnrecovered{deployment=Troop}: Maximum of 15 min" in result.stdout
    assert "proposed: alarm above 0, after" in result.stdout
    assert "all values are equal" in result.stderr


def test_too_little_data_or_none_is_refused(run: Run, cloudwatch: Any) -> None:
    put(cloudwatch, "Lag", [1.0] * 100)
    result = run("thresholds", "Mine/Lag", "--days", "3")
    assert result.exit_code == Exit.UNKNOWN
    assert "there is too little data for a threshold: " in result.stderr
    assert "nothing was changed" in result.stderr
    assert not result.stdout
    result = run("thresholds", "Mine/Lag{Queue=bills}", "--days", "3")
    assert (result.exit_code, "with values: Mine/Lag" in " ".join(result.stderr.split())) == (Exit.REFUSED, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("Mine/Lag{Queue}",),
            "has a dimension without a name or value: must be Namespace/Metric{Dimension=value,...}",
        ),
        (("Lag",), "is neither a metric, Namespace/Metric{Dimension=value,...}, nor a check of Troop"),
        (("Mine/Lag", "--fleet", "workers"), "--fleet is for checks, and 'Mine/Lag' is a metric"),
        (("Mine/Lag", "--statistic", "Median"), "--statistic is 'Median': must be one of Average, Maximum"),
    ],
)
def test_wrong_words_are_refused_before_any_request(run: Run, words: tuple[str, ...], message: str) -> None:
    result = run("thresholds", *words)
    assert result.exit_code == Exit.USAGE
    assert message in " ".join(result.stderr.split())


def test_no_alarm_looks_back_for_more_than_a_week(
    run: Run, cloudwatch: Any, monkeypatch: pytest.MonkeyPatch, ok: Callable[..., Any]
) -> None:
    put(cloudwatch, "Lag", waves())
    monkeypatch.setattr("cli.commands.thresholds.LONGEST_WINDOW", 4 * 900)
    result = run("thresholds", "Mine/Lag", "--days", "3", "--datapoints", "5")
    assert result.exit_code == Exit.USAGE
    assert "an alarm looks back at most 7 days" in result.stderr
    assert ok("thresholds", "Mine/Lag", "--days", "3", "--datapoints", "4")["datapoints"] == 4
