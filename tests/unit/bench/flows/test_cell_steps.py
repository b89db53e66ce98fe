"""A cell's steps when all goes well, with nodes that write what agents write."""

from __future__ import annotations

from tests.unit.account.benches import BENCHMARK, CELL, Bench
from troop.bench.aws.fleet_reader import FROZEN
from troop.bench.definition import names
from troop.bench.records.record import CellStatus, Kind, RunStatus
from troop.measure.windows import Windows


def test_a_run_from_open_to_settled(bench: Bench) -> None:
    assert bench.open() == [{"run": bench.run, "cell": CELL}]
    assert bench.runs.get(bench.run).status is RunStatus.RUNNING
    assert bench.launch() == {"phase_index": 0, "state": "waiting", "wait_seconds": 2}
    assert bench.gather() == "waiting"
    bench.register(bench.nodes())
    assert bench.gather() == "ready"
    for index, phase in enumerate(BENCHMARK.phases):
        released = bench.step("release", phase_index=index)
        assert (released["state"], released["phase_index"]) == ("waiting", index)
        assert bench.cell().phase == phase.name
        assert bench.check(index) == "waiting"
        bench.account.clock.forward(seconds=phase.warm_up + phase.measured)
        bench.finish(phase.name, [n for role in phase.roles for n in bench.nodes(role)])
        checked = bench.step("check", phase_index=index)
        last = index == len(BENCHMARK.phases) - 1
        assert (checked["state"], checked["phase_index"]) == ("done" if last else "next", index + 1)
    assert bench.step("collect")["state"] == "done"
    settled = bench.step("settle", error="", cause="")
    assert (settled["status"], settled["reason"]) == ("SUCCEEDED", "")
    cell = bench.cell()
    assert cell.status is CellStatus.SUCCEEDED
    assert sorted(cell.phases, key=lambda name: cell.phases[name]) == list(cell.phases)
    assert set(cell.phases) == {"launch", "boot", "prepare", "measure", "collect", "teardown", "over"}


def test_results_are_the_sum_of_all_drivers_reads(bench: Bench) -> None:
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    bench.step("collect")
    (row,) = bench.cell().results or []
    assert (row["phase"], row["role"], row["operation"]) == ("measure", "drivers", "read")
    assert (row["count"], row["errors"], row["per_second"]) == (3000, {"timeout": 6}, 10)
    assert float(row["max_ms"]) == 2000.002
    results = bench.get(names.results_key(bench.run, CELL))
    assert results["format"] == "troop.results/1"
    (phase,) = results["phases"]
    assert (phase["phase"], phase["nodes"], phase["measured_seconds"]) == ("measure", 3, 300)
    assert set(phase["roles"]["drivers"]["nodes"]) == set(bench.nodes("drivers"))
    assert (phase["measured_from"], phase["warm_up_seconds"]) == (1.0, 30.0)
    over_time = Windows.from_document(phase["roles"]["drivers"]["operations"]["read"]["over_time"])
    assert (over_time.start, over_time.steps, over_time.count(0)) == (1, 1, 3000)
    assert [(one["node"], one["rank"], one["count"]) for one in phase["separate"]] == [
        (node, rank, rank) for rank, node in enumerate(bench.nodes("drivers"))
    ]
    assert phase["separate_left_out"] == 0


def test_the_roster_tells_every_node_and_the_groups_stay_as_they_are(bench: Bench) -> None:
    bench.gathered()
    roster = bench.get(names.roster_key(bench.run, CELL))
    assert roster["format"] == "troop.roster/1"
    assert {n["id"] for n in roster["nodes"]} == set(bench.nodes())
    for fleet in BENCHMARK.fleets:
        members = [n for n in roster["nodes"] if n["role"] == fleet.role]
        assert [n["rank"] for n in members] == list(range(fleet.count))
        assert all(n["address"] and n["zone"] and n["instance_type"] for n in members)
    for group in bench.groups().values():
        assert {p["ProcessName"] for p in group["SuspendedProcesses"]} == set(FROZEN)


def test_instances_and_volumes_are_on_record_once_they_are_known(bench: Bench) -> None:
    bench.gathered()
    names_by_kind = {kind: {r.name for r in bench.runs.resources.get_all(bench.run) if r.kind is kind} for kind in Kind}
    assert names_by_kind[Kind.INSTANCE] == set(bench.nodes())
    volumes = {
        d["Ebs"]["VolumeId"]
        for r in bench.ec2.describe_instances()["Reservations"]
        for i in r["Instances"]
        for d in i["BlockDeviceMappings"]
    }
    assert names_by_kind[Kind.VOLUME] == volumes
    assert all(r.created_at for r in bench.runs.resources.get_all(bench.run))


def test_a_phase_that_starts_together_has_one_start_that_no_repeat_moves(bench: Bench) -> None:
    bench.gathered()
    bench.step("release", phase_index=0)
    assert bench.barrier("prepare")["start_at"] is None
    bench.finish("prepare", bench.nodes())
    bench.check(0)
    before = bench.account.clock().timestamp()
    bench.step("release", phase_index=1)
    first = bench.barrier("measure")
    assert first["state"] == "release"
    assert 5 <= first["start_at"] - before <= 60
    bench.account.clock.forward(seconds=20)
    bench.step("release", phase_index=1)
    assert bench.barrier("measure") == first


def test_only_the_roles_of_a_phase_are_waited_for(bench: Bench) -> None:
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers")[:2])
    assert bench.check(1) == "waiting"
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.check(1) == "done"
