"""A cell whose nodes do not come, or not all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2 import ec2_backends

from tests.unit.account.account import Call, calls, refusing
from tests.unit.account.benches import BUCKET, CELL, WRITER, Bench
from troop.bench.definition import names
from troop.bench.records.record import CellStatus
from troop.shared import moments
from troop.shared.tags import PROTECTED_TAG


def test_an_instance_that_was_replaced_while_it_booted_is_not_missed(bench: Bench) -> None:
    bench.launched()
    old = bench.nodes()
    bench.register(old[:-1])
    bench.cannot_start(old[-1], "no disk")
    bench.autoscaling.terminate_instance_in_auto_scaling_group(InstanceId=old[-1], ShouldDecrementDesiredCapacity=False)
    new = set(bench.nodes()) - set(old)
    assert len(new) == 1
    assert bench.gather() == "waiting"
    bench.register(new)
    assert bench.gather() == "ready"
    assert {n["id"] for n in bench.get(names.roster_key(bench.run, CELL))["nodes"]} == set(bench.nodes())


def test_silent_node_ends_the_attempt_and_its_console_is_stored(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    *others, silent = bench.nodes("drivers")
    bench.register([*bench.nodes("servers"), *others])
    bench.account.clock.forward(seconds=299)
    assert bench.gather() == "waiting"
    bench.account.clock.forward(seconds=1)
    assert bench.gather() == "failed"
    cell = bench.cell()
    assert cell.status is CellStatus.INVALID
    assert f"{silent} never registered" in (cell.reason or "")
    assert "300 s" in (cell.reason or "")
    bench.step("fail", error="", cause="")
    keys = [key for key in bench.objects() if "/output/" in key]
    assert keys == [names.console_key(bench.run, CELL, silent)]
    assert "Linux version" in bench.text(keys[0])
    assert bench.cell().reason == cell.reason
    assert bench.step("settle", error="", cause="")["status"] == "FAILED"


def test_the_roster_has_the_facts_of_ec2_not_of_nodes(bench: Bench) -> None:
    bench.launched()
    bench.register(
        bench.nodes(), zone="nowhere", address='10.0.0.1"\nauthenticator: $(reboot)', instance_type="u-24tb1"
    )
    assert bench.gather() == "ready"
    for node in bench.get(names.roster_key(bench.run, CELL))["nodes"]:
        (instance,) = bench.ec2.describe_instances(InstanceIds=[node["id"]])["Reservations"][0]["Instances"]
        facts = instance["Placement"]["AvailabilityZone"], instance["PrivateIpAddress"], instance["InstanceType"]
        assert (node["zone"], node["address"], node["instance_type"]) == facts


@pytest.mark.parametrize(("seconds", "state"), [(599, "waiting"), (600, "failed")])
def test_a_node_that_ec2_does_not_list_yet_is_awaited(bench: Bench, seconds: float, state: str) -> None:
    bench.launched()
    first, *_ = bench.nodes()
    bench.register(bench.nodes())
    running = ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].get_instance(first)._state
    running.name = "pending"
    bench.account.clock.forward(seconds=seconds)
    assert bench.gather() == state
    if state == "failed":
        assert (bench.cell().status, bench.cell().reason) == (
            CellStatus.INVALID,
            f"EC2 does not list {first} as running",
        )
    else:
        assert names.roster_key(bench.run, CELL) not in bench.objects()
        running.name = "running"
        assert bench.gather() == "ready"


def _launched_at(node: str, moment: datetime) -> None:
    ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].get_instance(node).launch_time = moments.iso(moment)


def _replaced(bench: Bench) -> dict[str, Any]:
    prefix = names.replaced_prefix(bench.run, CELL)
    return {key.removeprefix(prefix): bench.get(key) for key in bench.objects() if key.startswith(prefix)}


def test_a_node_that_reports_an_error_is_replaced_once(bench: Bench) -> None:
    bench.launched()
    first, *others = bench.nodes()
    bench.register(others)
    bench.cannot_start(first, "cannot fetch data.tar.gz")
    assert bench.gather() == "waiting"
    (failed_node,) = _replaced(bench).values()
    assert (failed_node["id"], failed_node["role"], failed_node["reason"]) == (
        first,
        bench.role_of(first),
        "cannot fetch data.tar.gz",
    )
    assert "Linux version" in bench.text(names.console_key(bench.run, CELL, first))
    (recorded,) = bench.cell().replaced_nodes or [{}]
    assert recorded == {
        "id": first,
        "role": failed_node["role"],
        "reason": failed_node["reason"],
        "at": failed_node["at"],
    }
    (new,) = set(bench.nodes()) - {first, *others}
    records = [one for one in bench.runs.resources.get_all(bench.run) if one.name == first]
    assert [(one.created_at is not None, one.gone_at is not None) for one in records] == [(True, True)]
    bench.register([new])
    assert bench.gather() == "ready"
    assert {n["id"] for n in bench.get(names.roster_key(bench.run, CELL))["nodes"]} == {new, *others}


@pytest.mark.parametrize("protected", [True, False], ids=["protected", "attached"])
def test_protected_or_attached_instance_is_never_replaced(bench: Bench, protected: bool) -> None:
    """An attached instance never registers, so it looks like a silent node."""
    bench.launched()
    *others, bad = bench.nodes("drivers")
    bench.register([*bench.nodes("servers"), *others])
    if protected:
        bench.ec2.create_tags(Resources=[bad], Tags=[{"Key": PROTECTED_TAG, "Value": ""}])
    else:
        backend = ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"]
        backend.get_instance(bad).iam_instance_profile = None
    bench.cannot_start(bad, "no disk")
    assert bench.gather() == "waiting"
    assert bad in bench.nodes("drivers")
    assert _replaced(bench) == {}


def test_a_second_error_in_a_small_fleet_ends_the_attempt(bench: Bench) -> None:
    bench.launched()
    first = bench.nodes("drivers")[0]
    bench.cannot_start(first, "no disk")
    assert bench.gather() == "waiting"
    (second, *_) = sorted(set(bench.nodes("drivers")) - {first})
    bench.cannot_start(second, "no disk")
    assert bench.gather() == "failed"
    assert bench.cell().status is CellStatus.INVALID
    assert bench.cell().reason == f"1 node could not start: {second}: no disk"
    assert len(_replaced(bench)) == 1


def test_an_error_of_all_nodes_of_a_fleet_is_not_tried_again(bench: Bench) -> None:
    bench.launched()
    servers = bench.nodes("servers")
    for node in servers:
        bench.cannot_start(node, "artifact data.tar.gz: its SHA-256 is another one")
    assert bench.gather() == "failed"
    assert bench.cell().status is CellStatus.FAILED
    assert "2 nodes could not start" in (bench.cell().reason or "")


@pytest.mark.parametrize(("age", "is_replaced"), [(170, False), (200, True)])
def test_a_silent_node_is_replaced_when_the_others_are_long_there(bench: Bench, age: float, is_replaced: bool) -> None:
    bench.launched()
    *others, silent = bench.nodes("drivers")
    for node in others:  # S3 stores registrations at the test's real time, which may be long after that of `launched`
        _launched_at(node, datetime.now(UTC))
    bench.register([*bench.nodes("servers"), *others])
    bench.account.clock.forward(seconds=190)
    _launched_at(silent, bench.account.clock() - timedelta(seconds=age))
    assert bench.gather() == "waiting"
    assert [one["id"] for one in _replaced(bench).values()] == [silent] * is_replaced
    if is_replaced:
        assert "did not register within 180 s" in next(iter(_replaced(bench).values()))["reason"]
        assert silent not in bench.nodes("drivers")
        bench.register(set(bench.nodes("drivers")) - set(others))
        assert bench.gather() == "ready"


def test_a_node_that_registers_after_its_replacement_was_requested_does_not_join(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Auto Scaling was busy with another change; the next check repeats the request, and counts nothing twice."""

    bench.launched()
    nodes = bench.nodes()
    first, *others = nodes
    bench.register(others)
    bench.cannot_start(first, "no disk")
    with calls(monkeypatch, refusing("TerminateInstanceInAutoScalingGroup", "ScalingActivityInProgress")):
        assert bench.gather() == "waiting"
    bench.register([first])
    assert bench.gather() == "waiting"
    assert first not in bench.nodes()
    assert len(_replaced(bench)) == 1


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"format": "troop.node/2"}', b"\xff\xfe", b"[" * 100_000])
def test_a_node_whose_registration_cannot_be_read_is_replaced(bench: Bench, body: bytes) -> None:
    bench.launched()
    first, *others = bench.nodes()
    bench.register(others)
    bench.s3.put_object(Bucket=BUCKET, Key=f"{names.nodes_prefix(bench.run, CELL)}{WRITER}{first}.json", Body=body)
    assert bench.gather() == "waiting"
    assert "its registration cannot be read" in next(iter(_replaced(bench).values()))["reason"]


VCPU = "Status Reason: You have requested more vCPU capacity than your current vCPU limit of 0"
CAPACITY = "We currently do not have sufficient c5.large capacity in the Availability Zone you requested"


def _short_of_one(message: str) -> Callable[[int, str, Call], Any]:
    """A group that lacks one instance, as its launch was refused."""

    def answer(number: int, operation: str, call: Call) -> Any:
        response = call()
        if operation == "DescribeAutoScalingGroups":
            for group in response["AutoScalingGroups"]:
                if group["AutoScalingGroupName"].endswith("drivers"):
                    group["Instances"].pop()
        if operation == "DescribeScalingActivities":
            response["Activities"] = [
                {"StatusCode": "InProgress", "StatusMessage": "on its way"},
                {"StatusCode": "Failed", "StatusMessage": message},
            ]
        return response

    return answer


def test_a_quota_ends_the_cell_at_once_with_what_aws_says(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    with calls(monkeypatch, _short_of_one(VCPU)):
        assert bench.gather() == "failed"
    assert "of 3 nodes in the fleet drivers, only 2 could be launched" in (bench.cell().reason or "")
    assert "current vCPU limit" in (bench.cell().reason or "")


def test_lack_of_capacity_is_reported_after_a_wait(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    with calls(monkeypatch, _short_of_one(CAPACITY)):
        assert bench.gather() == "waiting"
        bench.account.clock.forward(seconds=300)
        assert bench.gather() == "failed"
    assert "1 node was never launched" in (bench.cell().reason or "")
    assert "sufficient c5.large capacity" in (bench.cell().reason or "")


def test_activities_are_read_only_while_nodes_are_missing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    with calls(monkeypatch) as operations:
        bench.gather()
    assert "DescribeScalingActivities" not in operations


def test_a_group_that_somebody_deletes_ends_the_cell(bench: Bench) -> None:
    bench.launched()
    bench.account.drop_group(names.fleet_name(bench.run, CELL, "drivers"))
    assert bench.gather() == "waiting"
    bench.account.clock.forward(seconds=30)
    assert bench.gather() == "failed"
    assert bench.cell().reason == "the Auto Scaling group of the fleet drivers was deleted"
