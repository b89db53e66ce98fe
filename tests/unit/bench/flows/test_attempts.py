"""A cell that is run again, since a lost node has made what it measured worthless."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers import launch as launch_handler
from tests.unit.account.account import CONTEXT, calls, changing
from tests.unit.account.benches import BENCHMARK, CELL, Bench
from troop.bench.definition import names
from troop.bench.records.record import CellStatus, RunStatus
from troop.shared.tags import CELL_TAG


def _invalid(bench: Bench, attempts: int = 3) -> Bench:
    """A cell in which a node was lost while it measured, and of which nothing is left."""
    bench.admit(replace(BENCHMARK, attempts=attempts), "again").measuring()
    bench.lose(bench.nodes("drivers")[0])
    assert bench.check(1) == "failed"
    bench.step("fail")
    bench.drop()
    bench.runs.cells.close(bench.run, CELL, bench.account.clock())
    return bench


def test_an_invalid_cell_is_run_again_and_only_the_last_attempt_counts(bench: Bench) -> None:
    _invalid(bench)
    first = bench.cell()
    for _ in range(2):  # its answer may have been lost
        answer = bench.step("again")
        assert (answer["state"], answer["cell"], answer["run"]) == ("again", "c001-2", bench.run)
    assert [c.cell for c in bench.runs.cells.get_all(bench.run)] == [CELL, "c001-2"]
    assert bench.open() == [{"run": bench.run, "cell": CELL}], "its child goes on with it"
    bench.runs.cells.change(bench.run, "c001-2", status=CellStatus.SUCCEEDED)
    assert bench.step("again", cell="c001-2")["state"] == "done"
    assert bench.step("settle")["status"] == "SUCCEEDED"
    assert bench.cell().reason == first.reason, "what became of the first one stays on record"


def test_another_attempt_is_launched_with_resources_of_its_own(bench: Bench) -> None:
    _invalid(bench).step("again")
    launch_handler.handler({"run": bench.run, "cell": "c001-2"}, CONTEXT)
    assert {tag["Value"] for g in bench.groups().values() for tag in g["Tags"] if tag["Key"] == CELL_TAG} == {"c001-2"}
    assert bench.runs.cells.get(bench.run, "c001-2").status is CellStatus.RUNNING


def test_there_is_no_attempt_too_many_nor_one_for_a_closed_run(bench: Bench) -> None:
    assert _invalid(bench, attempts=1).step("again")["state"] == "done"
    other = bench.again("other")
    _invalid(other)
    other.runs.close(other.run, RunStatus.STOPPED, "enough", bench.account.clock())
    assert other.step("again")["state"] == "done"
    assert [c.cell for c in other.runs.cells.get_all(other.run)] == [CELL]


REFUSED = "InsufficientInstanceCapacity - We currently do not have sufficient c7g.large capacity in the zone"


def _lacks_capacity(bench: Bench, attempts: int = 3) -> Bench:
    """A cell whose servers have two choices of zones and two of types, and lack a node in the first ones."""
    servers, drivers = BENCHMARK.fleets
    zones = tuple(f"eu-central-1{letter}" for letter in "abc")
    servers = replace(servers, fallback_types=("m7g.large",), zone_names=zones)
    bench.admit(replace(BENCHMARK, fleets=(servers, drivers), attempts=attempts), "scarce").launched()
    group = names.fleet_name(bench.run, CELL, "servers")
    bench.autoscaling.update_auto_scaling_group(AutoScalingGroupName=group, DesiredCapacity=1)
    return bench


def _gather(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    activity = {"StatusCode": "Failed", "StatusMessage": REFUSED, "Description": "Launching a new EC2 instance"}
    refused = changing("DescribeScalingActivities", lambda answer: answer.update(Activities=[activity]))
    with calls(monkeypatch, refused):
        return bench.gather()


def _zones(bench: Bench, cell: str) -> list[str]:
    subnets = {s["SubnetId"]: s["AvailabilityZone"] for s in bench.ec2.describe_subnets()["Subnets"]}
    group = bench.groups()[names.fleet_name(bench.run, cell, "servers")]
    return sorted(subnets[s] for s in group["VPCZoneIdentifier"].split(","))


def test_without_capacity_the_next_attempt_takes_the_next_choice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    _lacks_capacity(bench)
    assert _zones(bench, CELL) == ["eu-central-1a", "eu-central-1b"]
    for _ in range(2):  # its answer may have been lost
        assert _gather(bench, monkeypatch) == "failed"
    bench.step("fail")
    cell = bench.cell()
    assert cell.status is CellStatus.INVALID
    assert "EC2 has no capacity for the fleet servers (c7g.large in eu-central-1a, eu-central-1b)" in (
        cell.reason or ""
    )
    assert (cell.reason or "").endswith("; the next attempt takes c7g.large in eu-central-1b, eu-central-1c")
    bench.drop()
    bench.runs.cells.close(bench.run, CELL, bench.account.clock())
    assert bench.step("again")["cell"] == "c001-2"
    launch_handler.handler({"run": bench.run, "cell": "c001-2"}, CONTEXT)
    assert _zones(bench, "c001-2") == ["eu-central-1b", "eu-central-1c"]
    bought = bench.get(names.cell_definition_key(bench.run, "c001-2"))["fleets"]["servers"]
    assert (bought["instance_type"], bought["zone_names"]) == ("c7g.large", ["eu-central-1b", "eu-central-1c"])
    assert "fallback_types" not in bought


def test_the_last_attempt_waits_for_capacity(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _gather(_lacks_capacity(bench, attempts=1), monkeypatch) == "waiting"
