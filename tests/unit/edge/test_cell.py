"""A cell's steps, with nodes that write what agents write, and with everything that can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.edge.account import Cut, calls, cut_at
from tests.unit.edge.benches import BENCHMARK, BUCKET, CELL, Bench
from troop.aws.fleet_looks import FROZEN
from troop.bench import kept_table, names
from troop.bench.record import CellStatus, Kind, RunStatus
from troop.bench.verdicts import GRACE
from troop.errors import RunClosedError
from troop.flows.cell import CellDamagedError
from troop.measure.summary import SummaryError
from troop.measure.windows import Windows

Call = Callable[[], Any]

MEASURE = BENCHMARK.phase("measure")


def through(number: int, operation: str, call: Call) -> Any:
    return call()


# All goes well


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
        of_role = [n for n in roster["nodes"] if n["role"] == fleet.role]
        assert [n["rank"] for n in of_role] == list(range(fleet.count))
        assert all(n["address"] and n["zone"] and n["instance_type"] for n in of_role)
    for group in bench.groups().values():
        assert {p["ProcessName"] for p in group["SuspendedProcesses"]} == set(FROZEN)


def test_instances_and_volumes_are_on_record_once_they_are_known(bench: Bench) -> None:
    bench.gathered()
    found = {kind: {r.name for r in bench.runs.resources(bench.run) if r.kind is kind} for kind in Kind}
    assert found[Kind.INSTANCE] == set(bench.nodes())
    volumes = {
        d["Ebs"]["VolumeId"]
        for r in bench.ec2.describe_instances()["Reservations"]
        for i in r["Instances"]
        for d in i["BlockDeviceMappings"]
    }
    assert found[Kind.VOLUME] == volumes
    assert all(r.created_at for r in bench.runs.resources(bench.run))


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


# Nodes that do not come


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


def test_a_node_that_never_boots_ends_the_cell_with_its_console_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.launched()
    *others, silent = bench.nodes("drivers")
    bench.register([*bench.nodes("servers"), *others])
    bench.account.clock.forward(seconds=299)
    assert bench.gather() == "waiting"
    bench.account.clock.forward(seconds=1)
    assert bench.gather() == "failed"
    cell = bench.cell()
    assert cell.status is CellStatus.FAILED
    assert f"{silent} never did" in (cell.reason or "")
    assert "300 s" in (cell.reason or "")
    bench.step("fail", error="", cause="")
    kept = [key for key in bench.objects() if "/output/" in key]
    assert kept == [names.console_key(bench.run, CELL, silent)]
    assert "Linux version" in bench.kept(kept[0])
    assert bench.cell().reason == cell.reason
    assert bench.step("settle", error="", cause="")["status"] == "FAILED"


def test_a_node_whose_agent_gives_up_ends_the_cell_at_once(bench: Bench) -> None:
    bench.launched()
    first, *others = bench.nodes()
    bench.register(others)
    bench.cannot_start(first, "artifact data.tar.gz: its SHA-256 is another one")
    assert bench.gather() == "failed"
    assert bench.cell().reason == f"1 node could not start: {first}: artifact data.tar.gz: its SHA-256 is another one"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"format": "troop.node/2"}', b"\xff\xfe", b"[" * 100_000])
def test_a_registration_that_cannot_be_read_ends_the_cell(bench: Bench, body: bytes) -> None:
    bench.launched()
    first, *others = bench.nodes()
    bench.register(others)
    bench.s3.put_object(Bucket=BUCKET, Key=f"{names.nodes_prefix(bench.run, CELL)}{first}.json", Body=body)
    assert bench.gather() == "failed"
    assert f"{first}: its registration cannot be read" in (bench.cell().reason or "")


VCPU = "Launching a new EC2 instance. Status Reason: You have requested more vCPU capacity than your current vCPU limit"
CAPACITY = "We currently do not have sufficient c5.large capacity in the Availability Zone you requested"


def _short_of_one(message: str) -> Callable[[int, str, Call], Any]:
    """A group that lacks one instance, as its launch was refused."""

    def answer(number: int, operation: str, call: Call) -> Any:
        given = call()
        if operation == "DescribeAutoScalingGroups":
            for group in given["AutoScalingGroups"]:
                if group["AutoScalingGroupName"].endswith("drivers"):
                    group["Instances"].pop()
        if operation == "DescribeScalingActivities":
            given["Activities"] = [
                {"StatusCode": "InProgress", "StatusMessage": "on its way"},
                {"StatusCode": "Failed", "StatusMessage": message},
            ]
        return given

    return answer


def test_a_quota_ends_the_cell_at_once_with_what_aws_says(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    with calls(monkeypatch, _short_of_one(VCPU)):
        assert bench.gather() == "failed"
    assert "of 3 nodes in the fleet drivers, 2 could be launched" in (bench.cell().reason or "")
    assert "current vCPU limit" in (bench.cell().reason or "")


def test_lack_of_capacity_is_waited_out_and_then_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    with calls(monkeypatch, _short_of_one(CAPACITY)):
        assert bench.gather() == "waiting"
        bench.account.clock.forward(seconds=300)
        assert bench.gather() == "failed"
    assert "1 node was never launched" in (bench.cell().reason or "")
    assert "sufficient c5.large capacity" in (bench.cell().reason or "")


def test_activities_are_asked_for_only_where_some_are_missing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    with calls(monkeypatch, through) as made:
        bench.gather()
    assert "DescribeScalingActivities" not in made


def test_a_group_that_somebody_deletes_ends_the_cell(bench: Bench) -> None:
    bench.launched()
    bench.account.drop_group(names.fleet_name(bench.run, CELL, "drivers"))
    assert bench.gather() == "waiting"
    bench.account.clock.forward(seconds=30)
    assert bench.gather() == "failed"
    assert bench.cell().reason == "somebody has deleted the Auto Scaling group of the fleet drivers"


# Phases that go wrong


def test_a_script_that_fails_ends_the_cell_at_once_with_its_last_lines(bench: Bench) -> None:
    bench.measuring()
    first = bench.nodes("drivers")[0]
    bench.printed("measure", first, "".join(f"line {i}\n" for i in range(1000)))
    bench.finish("measure", [first], "failed", "read.py ended with 7")
    assert bench.check(1) == "failed"
    cell = bench.cell()
    assert cell.status is CellStatus.FAILED
    reason = cell.reason or ""
    assert f"read.py went wrong on 1 node in the phase measure: {first} failed: read.py ended with 7" in reason
    assert reason.endswith("line 998\nline 999")
    assert "line 5\n" not in reason


def test_a_failure_among_many_early_summaries_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troop.flows.cell.READ_EARLY", 1)
    bench.measuring()
    good, bad, _ = bench.nodes("drivers")
    bench.finish("measure", [good])
    assert bench.check(1) == "waiting"
    bench.finish("measure", [bad], "timed-out", "it took longer than 600 s")
    with calls(monkeypatch, through) as made:
        bench.check(1)
    assert bench.cell().status is CellStatus.FAILED or made.count("GetObject") < 6
    bench.finish("measure", [n for n in bench.nodes("drivers") if n != bad])
    assert bench.check(1) == "failed"
    assert f"{bad} timed-out" in (bench.cell().reason or "")


def test_a_barrier_that_times_out_names_who_did_not_come(bench: Bench) -> None:
    bench.measuring()
    *good, late = bench.nodes("drivers")
    bench.finish("measure", good)
    started = bench.barrier("measure")["start_at"]
    bench.account.clock.forward(seconds=started + 600 + GRACE - 1 - bench.account.clock().timestamp())
    assert bench.check(1) == "waiting"
    bench.account.clock.forward(seconds=1)
    assert bench.check(1) == "failed"
    assert bench.cell().reason == f"{late} did not finish the phase measure within 600 s"
    assert bench.cell().status is CellStatus.FAILED


@pytest.mark.parametrize("role", ["drivers", "servers"])
def test_a_node_that_dies_while_measuring_makes_the_cell_invalid(bench: Bench, role: str) -> None:
    """A server takes no part in the phase; but the drivers talk to it."""
    bench.measuring()
    dead = bench.nodes(role)[0]
    drivers = bench.nodes("drivers")
    bench.lose(dead)
    bench.finish("measure", drivers)
    assert bench.check(1) == "failed"
    cell = bench.cell()
    assert (cell.status, cell.reason) == (CellStatus.INVALID, f"{dead} was lost during the phase measure")
    bench.step("fail", error="", cause="")
    assert bench.cell() == replace(cell, phase="teardown", phases=bench.cell().phases)
    assert names.console_key(bench.run, CELL, dead) in bench.objects()
    settled = bench.step("settle", error="", cause="")
    assert settled["status"] == "FAILED"
    assert settled["reason"] == f"c001 INVALID: {dead} was lost during the phase measure"
    assert names.results_key(bench.run, CELL) not in bench.objects()


def test_a_node_that_dies_makes_the_scripts_of_others_fail_and_is_the_reason(bench: Bench) -> None:
    bench.measuring()
    dead = bench.nodes("servers")[0]
    bench.lose(dead)
    bench.finish("measure", bench.nodes("drivers"), "failed", "connection refused")
    assert bench.check(1) == "failed"
    assert (bench.cell().status, bench.cell().reason) == (
        CellStatus.INVALID,
        f"{dead} was lost during the phase measure",
    )


def test_a_node_that_dies_in_another_phase_fails_the_cell(bench: Bench) -> None:
    bench.gathered()
    bench.step("release", phase_index=0)
    bench.lose(bench.nodes("drivers")[0])
    assert bench.check(0) == "failed"
    assert bench.cell().status is CellStatus.FAILED


def test_what_ec2_knows_counts_before_auto_scaling_has_noticed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.measuring()
    drivers, dead = bench.nodes("drivers"), bench.nodes("servers")[0]
    before = {name: [dict(i) for i in group["Instances"]] for name, group in bench.groups().items()}
    bench.lose(dead)
    bench.finish("measure", drivers)

    def lagging(number: int, operation: str, call: Call) -> Any:
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            for group in answer["AutoScalingGroups"]:
                group["Instances"] = before[group["AutoScalingGroupName"]]
        return answer

    with calls(monkeypatch, lagging):
        assert bench.check(1) == "failed"
    assert bench.cell().status is CellStatus.INVALID


@pytest.mark.parametrize("health", [{"LifecycleState": "Terminating"}, {"HealthStatus": "Unhealthy"}])
def test_a_node_that_auto_scaling_gives_up_is_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, health: dict[str, str]
) -> None:
    bench.measuring()

    def sick(number: int, operation: str, call: Call) -> Any:
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            answer["AutoScalingGroups"][0]["Instances"][0].update(health)
        return answer

    with calls(monkeypatch, sick):
        assert bench.check(1) == "failed"
    assert bench.cell().status is CellStatus.INVALID


def test_a_group_deleted_while_measuring_makes_the_cell_invalid(bench: Bench) -> None:
    bench.measuring()
    bench.account.drop_group(names.fleet_name(bench.run, CELL, "drivers"))
    assert bench.check(1) == "failed"
    assert bench.cell().status is CellStatus.INVALID
    assert "were lost" in (bench.cell().reason or "")


@pytest.mark.parametrize("body", [b"{", b'{"format": "troop.summary/9"}', b"null"])
def test_a_summary_that_cannot_be_read_is_no_success(bench: Bench, body: bytes) -> None:
    bench.measuring()
    first, *others = bench.nodes("drivers")
    bench.finish("measure", others)
    bench.s3.put_object(Bucket=BUCKET, Key=f"{names.phase_prefix(bench.run, CELL, 'measure')}{first}.json", Body=body)
    assert bench.check(1) == "failed"
    assert f"{first} has left a summary that cannot be read" in (bench.cell().reason or "")


def test_a_summary_under_another_nodes_name_is_no_success(bench: Bench) -> None:
    bench.measuring()
    first, *others = bench.nodes("drivers")
    bench.finish("measure", others)
    prefix = names.phase_prefix(bench.run, CELL, "measure")
    bench.put(f"{prefix}{first}.json", bench.get(f"{prefix}{others[0]}.json"))
    assert bench.check(1) == "failed"
    assert first in (bench.cell().reason or "")


def test_strangers_in_a_phase_are_passed_over(bench: Bench) -> None:
    bench.measuring()
    prefix = names.phase_prefix(bench.run, CELL, "measure")
    bench.put(f"{prefix}i-stranger.json", {"format": "troop.summary/1", "outcome": "failed"})
    assert bench.check(1) == "waiting"
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.check(1) == "done"
    bench.step("collect")
    assert bench.get(names.results_key(bench.run, CELL))["phases"][0]["nodes"] == 3


def test_a_table_that_no_item_has_room_for_is_cut_on_record_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_table, "LARGEST", 10)
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    bench.step("collect")
    assert [row["operation"] for row in bench.cell().results or []] == ["1 more rows in results.json"]
    assert len(bench.get(names.results_key(bench.run, CELL))["phases"][0]["table"]) == 1


def test_results_are_never_merged_of_less_than_all(bench: Bench) -> None:
    bench.measuring()
    first, *others = bench.nodes("drivers")
    bench.finish("measure", others)
    with pytest.raises(CellDamagedError, match=first):
        bench.step("collect")
    bench.s3.put_object(Bucket=BUCKET, Key=f"{names.phase_prefix(bench.run, CELL, 'measure')}{first}.json", Body=b"{")
    with pytest.raises(SummaryError):
        bench.step("collect")
    assert bench.cell().status is CellStatus.RUNNING
    assert names.results_key(bench.run, CELL) not in bench.objects()


# Runs that end from outside


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


# Failing, and trying again


def test_what_failed_and_why_is_kept_once(bench: Bench) -> None:
    bench.gathered()
    bench.step("fail", error="ClientError", cause='{"errorMessage": "An error occurred (Throttling)", "x": 1}')
    cell = bench.cell()
    assert (cell.status, cell.phase) == (CellStatus.FAILED, "teardown")
    assert cell.reason == "ClientError: An error occurred (Throttling)"
    bench.step("fail", error="Other", cause="later")
    assert bench.cell().reason == cell.reason


def test_waiting_nodes_are_told_that_it_is_over_and_released_barriers_stay(bench: Bench) -> None:
    bench.gathered()
    bench.step("release", phase_index=0)
    bench.step("fail", error="X", cause="")
    assert bench.barrier("prepare")["state"] == "release"
    assert bench.barrier("measure")["state"] == "end"


@pytest.mark.parametrize("operation", ["GetConsoleOutput", "DescribeInstances", "ListObjectsV2", "PutObject"])
def test_what_helps_to_find_out_more_never_stands_in_the_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    bench.launched()

    def broken(number: int, made: str, call: Call) -> Any:
        if made == operation:
            raise ClientError({"Error": {"Code": "InternalError", "Message": "no"}}, made)
        return call()

    with calls(monkeypatch, broken):
        assert bench.step("fail", error="X", cause="why")["state"] == "failed"
    cell = bench.cell()
    assert (cell.status, cell.phase, cell.reason) == (CellStatus.FAILED, "teardown", "X: why")


def test_a_console_that_ec2_cannot_show_at_once_is_asked_for_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.launched()
    asked: list[bool] = []

    def not_latest(number: int, made: str, call: Call) -> Any:
        if made == "GetConsoleOutput":
            asked.append(True)
            if len(asked) % 2:
                raise ClientError({"Error": {"Code": "UnsupportedOperation", "Message": "no"}}, made)
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
        with calls(monkeypatch, cut_at(number, acted=True)) as made:
            try:
                bench.step(step, **more)
            except Cut:
                continue
        if number >= len(made):
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

    def throttled(number: int, operation: str, call: Call) -> Any:
        if operation == "DescribeInstances":
            raise ClientError({"Error": {"Code": "RequestLimitExceeded", "Message": "slow down"}}, operation)
        return call()

    with calls(monkeypatch, throttled), pytest.raises(ClientError):
        bench.check(1)
    assert bench.cell().status is CellStatus.RUNNING
    assert bench.check(1) == "waiting"


def test_more_nodes_than_a_page_of_the_list_are_all_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    bench.register(bench.nodes())
    for number in range(1001):
        bench.put(f"{names.nodes_prefix(bench.run, CELL)}i-00-stranger-{number}.json", {})
    with calls(monkeypatch, through) as made:
        assert bench.gather() == "ready"
    assert made.count("ListObjectsV2") >= 2
    assert made.count("GetObject") <= BENCHMARK.nodes + 2, "what strangers have written is not read"


def test_an_answer_is_small_and_has_all_that_the_workflow_reads(bench: Bench) -> None:
    bench.launched()
    answer = bench.step("gather")
    assert set(answer) == {
        *("run", "cell", "phase_index", "state", "wait_seconds", "status", "reason", "bucket", "key", "parallel")
    }
