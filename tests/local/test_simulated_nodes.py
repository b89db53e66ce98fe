"""Simulated nodes write what agents would, and fail as they are told to."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from local.simulated_nodes import Fault, FaultKind, SimulatedNodes
from tests.patience import eventually
from troop.bench.definition import definition, names
from troop.bench.definition.definition import Benchmark, Phase, to_document
from troop.bench.definition.roster import make_roster, parse_node
from troop.bench.definition.roster import to_document as to_roster_document
from troop.measure import summary

from .helpers import Fleet, World, unique

RUN, CELL = "20261121-150312-1f0c9b2e", "c001"
PHASES = (
    Phase("prepare", ("drivers",), "p.sh", 60),
    Phase("measure", ("drivers",), "m.py", 60, warm_up=1, measured=5),
)


class Bucket:
    """A results bucket with one run in it, as the workflow would have begun it."""

    def __init__(self, world: World) -> None:
        self.s3, self.name = world.account.client("s3"), unique("results")
        self.s3.create_bucket(Bucket=self.name)

    def begin(self, run: str, nodes: int, state: str = "hold", cell: str = CELL) -> None:
        fleets = (definition.Fleet("drivers", nodes, "c5.large", 1, 300, 8),)
        benchmark = Benchmark("ranges", "", 7200, fleets, PHASES, {}, files=("p.sh", "m.py"))
        self.write(names.cell_definition_key(run, cell), to_document(benchmark))
        for phase in PHASES:
            self.barrier(run, phase, state, cell)

    def barrier(self, run: str, phase: Phase, state: str, cell: str = CELL) -> None:
        document = {
            "format": "troop.barrier/1",
            "phase": phase.name,
            "state": state,
            "script": phase.script,
            "timeout_seconds": phase.timeout,
            "warm_up_seconds": phase.warm_up,
            "measured_seconds": phase.measured,
            "start_at": time.time() + 5 if state == "release" else None,
        }
        self.write(names.barrier_key(run, cell, phase.name), document)

    def roster(self, run: str, *left_out: str) -> None:
        """Writes the roster of the nodes that have registered, as the workflow does."""
        registered = self.under(names.nodes_prefix(run, CELL))
        nodes = [parse_node(one, document) for one, document in registered.items() if one not in left_out]
        self.write(names.roster_key(run, CELL), to_roster_document(make_roster(nodes)))

    def write(self, key: str, document: dict[str, Any]) -> None:
        self.s3.put_object(Bucket=self.name, Key=key, Body=json.dumps(document).encode())

    def under(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Instance id -> document."""
        objects = self.s3.list_objects_v2(Bucket=self.name, Prefix=prefix).get("Contents", [])
        return {
            names.node_of(one["Key"]): json.load(self.s3.get_object(Bucket=self.name, Key=one["Key"])["Body"])
            for one in objects
        }

    def all_under(self, prefix: str, count: int) -> dict[str, dict[str, Any]]:
        """The same, once there are as many."""
        return dict(eventually(lambda: documents if len(documents := self.under(prefix)) == count else None))


@pytest.fixture
def bucket(world: World) -> Bucket:
    return Bucket(world)


def launch(fleet: Fleet, run: str, nodes: int, cell: str = CELL) -> list[str]:
    tags = names.fleet_tags(names.tags("Mine", run, cell, "2026-11-21T17:00:00Z"), "drivers")
    return sorted(fleet.members(fleet.group(nodes, tags=tags)))


def test_they_register_wait_and_leave_summaries_that_merge(world: World, fleet: Fleet, bucket: Bucket) -> None:
    bucket.begin(RUN, nodes=3)
    with SimulatedNodes(world.account, bucket.name):
        time.sleep(0.6)
        assert bucket.under(names.nodes_prefix(RUN, CELL)) == {}, "before there is any node"
        ids = launch(fleet, RUN, 3)
        registered = bucket.all_under(names.nodes_prefix(RUN, CELL), 3)
        assert sorted(registered) == ids
        assert registered[ids[0]]["zone"] == fleet.instance(ids[0])["Placement"]["AvailabilityZone"]
        assert registered[ids[0]]["address"] == fleet.instance(ids[0])["PrivateIpAddress"]
        bucket.roster(RUN)
        for phase in PHASES:
            prefix = names.phase_prefix(RUN, CELL, phase.name)
            assert bucket.under(prefix) == {}, "before its release"
            bucket.barrier(RUN, phase, "release")
            summaries = bucket.all_under(prefix, 3)
            parsed = [summary.parse(document) for document in summaries.values()]
            assert sorted(one.node for one in parsed) == ids
            assert sorted(one.rank for one in parsed) == [0, 1, 2]
            assert {one.outcome for one in parsed} == {summary.OK}
            assert {one.measured_seconds for one in parsed} == {float(phase.measured)}
        assert all(one.operations["read"].times.count == 1000 for one in parsed)


def test_they_fail_as_ordered(world: World, fleet: Fleet, bucket: Bucket) -> None:
    run = "20261121-150313-1f0c9b2e"
    bucket.begin(run, nodes=4)
    ids = launch(fleet, run, 4)
    faults = [
        Fault(FaultKind.NEVER_REGISTERS, "drivers", 1),
        Fault(FaultKind.CANNOT_START, "drivers", 2),
        Fault(FaultKind.FAILS, "drivers", 3, "prepare"),
        Fault(FaultKind.DIES, "drivers", 4, "prepare"),
    ]
    with SimulatedNodes(world.account, bucket.name, faults):
        registered = bucket.all_under(names.nodes_prefix(run, CELL), 3)
        assert sorted(registered) == ids[1:]
        assert [one for one in ids[1:] if "error" in registered[one]] == [ids[1]]
        bucket.roster(run, ids[1])
        bucket.barrier(run, PHASES[0], "release")
        summaries = bucket.all_under(names.phase_prefix(run, CELL, "prepare"), 1)
        assert {one: document["outcome"] for one, document in summaries.items()} == {ids[2]: summary.FAILED}
        eventually(lambda: fleet.instance(ids[3])["State"]["Name"] in ("shutting-down", "terminated"))
    console = fleet.ec2.get_console_output(InstanceId=ids[0])["Output"]
    assert console == "simulated: cannot reach S3, giving up\n"


def test_replacement_of_a_failed_node_starts(world: World, fleet: Fleet, bucket: Bucket) -> None:
    run = "20261121-150316-1f0c9b2e"
    bucket.begin(run, nodes=2)
    ids = launch(fleet, run, 2)
    with SimulatedNodes(world.account, bucket.name, [Fault(FaultKind.CANNOT_START, "drivers", 1)]):
        bucket.all_under(names.nodes_prefix(run, CELL), 2)
        fleet.groups.terminate_instance_in_auto_scaling_group(InstanceId=ids[0], ShouldDecrementDesiredCapacity=False)
        registered = bucket.all_under(names.nodes_prefix(run, CELL), 3)
    assert [one for one, document in registered.items() if "error" in document] == [ids[0]]


def test_runs_of_the_past_are_left_alone(world: World, fleet: Fleet, bucket: Bucket) -> None:
    past, reported, run = (f"20261121-1503{second}-1f0c9b2e" for second in ("00", "01", "14"))
    bucket.begin(past, nodes=1, state="release")
    bucket.begin(reported, nodes=1)
    bucket.write(names.report_key(reported), {})
    bucket.begin(run, nodes=1)
    for one in (past, reported, run):
        launch(fleet, one, 1)
    with SimulatedNodes(world.account, bucket.name):
        bucket.all_under(names.nodes_prefix(run, CELL), 1)
    assert [bucket.under(names.nodes_prefix(one, CELL)) for one in (past, reported)] == [{}, {}]


def test_later_cell_of_a_run_is_detected(world: World, fleet: Fleet, bucket: Bucket) -> None:
    run = "20261121-150315-1f0c9b2e"
    bucket.begin(run, nodes=1)
    fault = Fault(FaultKind.CANNOT_START, "drivers", cell="c002")
    with SimulatedNodes(world.account, bucket.name, [fault]):
        launch(fleet, run, 1)
        assert [n.get("error") for n in bucket.all_under(names.nodes_prefix(run, CELL), 1).values()] == [None]
        bucket.roster(run)
        bucket.barrier(run, PHASES[0], "end")
        bucket.begin(run, nodes=1, cell="c002")
        launch(fleet, run, 1, cell="c002")
        nodes = bucket.all_under(names.nodes_prefix(run, "c002"), 1)
        assert [node["error"] for node in nodes.values()] == ["simulated"]
