"""Spot that does not come: the rest is launched on demand, never too much, whatever is repeated or cut off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from botocore.client import BaseClient
from moto.autoscaling import autoscaling_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2 import ec2_backends
from moto.ec2.models.instances import InstanceState, StateReason

from handlers import launch as launch_handler
from tests.unit.account.account import CONTEXT, Call, Cut, calls, cut_at
from tests.unit.account.benches import BENCHMARK, CELL, WRITER, Bench
from tests.unit.account.fast_moto import calls_are_usual
from troop.bench.definition import names
from troop.bench.definition.definition import SPOT
from troop.bench.records.record import CellStatus, Kind, RunStatus
from troop.shared.errors import RunClosedError

SERVERS, DRIVERS = BENCHMARK.fleets
SPOTTY = replace(BENCHMARK, fleets=(SERVERS, replace(DRIVERS, count=4, purchase=SPOT, spot_timeout=60)))
CAPACITY = "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available"


class Spot:
    """A run whose drivers are to be spot instances, where spot gives only some.

    Attributes:
        gives: how many.
        refusal: what the group's activities say of the others.
        begun: whether a launch of its is under way.
    """

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench, self.gives, self.refusal, self.begun = bench, 1, CAPACITY, False
        make: Any = BaseClient
        real = make._make_api_call

        def call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            name = parameters.get("AutoScalingGroupName")
            if operation == "CreateAutoScalingGroup" and "MixedInstancesPolicy" in parameters:
                answer = real(client, operation, {**parameters, "DesiredCapacity": self.gives})
                for instance_id in bench.account.instances(str(name)):
                    ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].get_instance(instance_id).lifecycle = "spot"
                return answer
            if operation == "UpdateAutoScalingGroup":  # moto forgets how a group buys
                group = autoscaling_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].autoscaling_groups[str(name)]
                policy = group.mixed_instances_policy
                answer = real(client, operation, parameters)
                group.mixed_instances_policy = policy
                return answer
            if operation == "DescribeScalingActivities":
                if name != self.own:
                    return {"Activities": []}
                under_way = {"StatusCode": "InProgress", "Description": "Launching a new EC2 instance"}
                failed = {"StatusCode": "Failed", "StatusMessage": self.refusal, "Description": "Launching a new one"}
                return {"Activities": [failed, *([under_way] if self.begun else [])]}
            return real(client, operation, parameters)

        monkeypatch.setattr(BaseClient, "_make_api_call", call)
        calls_are_usual((self, "gives", "refusal", "begun"))

    @property
    def own(self) -> str:
        return names.fleet_name(self.bench.run, CELL, "drivers")

    @property
    def backup(self) -> str:
        return names.backup_name(self.bench.run, CELL, "drivers")

    def launched(self, gives: int = 1, key: str = "spotty") -> Spot:
        self.gives = gives
        self.bench.admit(SPOTTY, key).launched()
        return self

    def late(self) -> Spot:
        """Spot's time is over."""
        self.bench.account.clock.forward(seconds=60)
        return self

    def back_up(self) -> dict[str, Any]:
        event = {"step": "backup", "run": self.bench.run, "cell": CELL}
        answer: dict[str, Any] = launch_handler.handler(event, CONTEXT)
        return answer

    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """Maximum, desired and actual size of the groups of drivers, by what follows the fleet's name."""
        return {
            name.removeprefix(self.own): (g["MaxSize"], g["DesiredCapacity"], len(g["Instances"]))
            for name, g in self.bench.groups().items()
            if name.startswith(self.own)
        }

    def drivers(self) -> list[str]:
        groups = [g for name, g in self.bench.groups().items() if name.startswith(self.own)]
        return sorted(i["InstanceId"] for g in groups for i in g["Instances"])

    def register(self) -> None:
        self.bench.roles |= dict.fromkeys(self.drivers(), "drivers")
        self.bench.register([*self.bench.nodes("servers"), *self.drivers()])

    def vanish(self) -> None:
        """A spot node that has booted is gone, and its group has seen it; nothing may be launched in its place."""
        (one, *_) = self.bench.account.instances(self.own)
        self.bench.autoscaling.detach_instances(
            InstanceIds=[one], AutoScalingGroupName=self.own, ShouldDecrementDesiredCapacity=True
        )
        self.bench.lose(one)


@pytest.fixture
def spot(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Spot:
    return Spot(bench, monkeypatch)


@pytest.mark.parametrize("settings", [{"tags": {"CostCenter": "1234"}}], indirect=True)
def test_nodes_that_spot_lacks_are_launched_on_demand(spot: Spot) -> None:
    bench = spot.launched().bench
    spot.register()
    assert bench.gather() == "waiting", "capacity may come"
    bench.account.clock.forward(seconds=50)
    assert bench.step("gather")["wait_seconds"] == 10, "not a third of the time so far: then spot's time is over"
    bench.account.clock.forward(seconds=10)
    assert bench.gather() == "short"
    answer = spot.back_up()
    assert (answer["state"], answer["wait_seconds"]) == ("waiting", 20)
    assert spot.sizes() == {"": (1, 1, 1), ".backup": (3, 3, 3)}
    own, backup = (bench.groups()[name] for name in (spot.own, spot.backup))
    assert "Launch" in {p["ProcessName"] for p in own["SuspendedProcesses"]}
    assert backup["LaunchTemplate"]["LaunchTemplateName"] == spot.own
    assert backup["VPCZoneIdentifier"] == own["VPCZoneIdentifier"]
    assert {t["Key"]: t["Value"] for t in backup["Tags"]} == {t["Key"]: t["Value"] for t in own["Tags"]}
    assert {"CostCenter", "troop:run"} <= {t["Key"] for t in backup["Tags"]}
    assert bench.gather() == "waiting"
    spot.register()
    assert bench.gather() == "ready"
    roster = bench.get(names.roster_key(bench.run, CELL))["nodes"]
    bought = [node["purchase"] for node in roster if node["role"] == "drivers"]
    assert sorted(bought) == ["on-demand"] * 3 + ["spot"]
    assert {node["purchase"] for node in roster if node["role"] == "servers"} == {"on-demand"}
    for group in bench.groups().values():
        assert {p["ProcessName"] for p in group["SuspendedProcesses"]} >= {"Launch", "ReplaceUnhealthy"}
    groups = {r.name: r for r in bench.runs.resources.get_all(bench.run) if r.kind is Kind.AUTO_SCALING_GROUP}
    assert groups[spot.backup].created_at
    assert bench.runs.launches.get_all(bench.run) == []


@pytest.mark.parametrize("gives", [0, 3])
def test_spot_may_give_nothing_or_nearly_all(spot: Spot, gives: int) -> None:
    spot.launched(gives).late().back_up()
    assert spot.sizes() == {"": (gives, gives, gives), ".backup": (4 - gives,) * 3}


def test_spot_with_all_its_nodes_has_no_backup(spot: Spot) -> None:
    spot.launched(4).late().back_up()
    assert spot.sizes() == {"": (4, 4, 4)}
    assert "Launch" not in {p["ProcessName"] for p in spot.bench.groups()[spot.own]["SuspendedProcesses"]}


@pytest.mark.parametrize(
    ("refusal", "state"),
    [
        (CAPACITY, "waiting"),
        ("Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded", "short"),
        ("Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price is too low", "short"),
        ("Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity", "waiting"),
        ("You have requested more vCPU capacity than your current vCPU limit of 0 allows", "short"),
    ],
)
def test_a_refusal_that_waiting_does_not_change_is_not_waited_for(spot: Spot, refusal: str, state: str) -> None:
    spot.refusal = refusal
    assert spot.launched().bench.gather() == state


def test_spot_nodes_that_vanish_before_all_are_there_are_backed_up_as_well(spot: Spot) -> None:
    bench = spot.launched(2).late().bench
    spot.back_up()
    spot.vanish()
    assert bench.gather() == "short"
    spot.back_up()
    assert spot.sizes() == {"": (1, 1, 1), ".backup": (3, 3, 3)}
    spot.register()
    assert bench.gather() == "ready"


def test_a_dead_node_that_its_group_keeps_is_not_counted_on(spot: Spot) -> None:
    """Nobody knows for certain when a group that may not launch lets go of it."""
    bench = spot.launched(2).late().bench
    spot.back_up()
    dead = bench.account.instances(spot.own)[0]
    bench.autoscaling.set_instance_health(InstanceId=dead, HealthStatus="Unhealthy")
    assert bench.gather() == "short"
    spot.back_up()
    assert spot.sizes() == {"": (1, 1, 1), ".backup": (3, 3, 3)}


def test_node_with_an_interruption_notice_is_not_accepted(spot: Spot) -> None:
    bench = spot.launched(1).late().bench
    spot.back_up()
    spot.register()
    (doomed,) = bench.account.instances(spot.own)
    bench.put(f"{names.interruptions_prefix(bench.run, CELL)}{WRITER}{doomed}.json", {"id": doomed})
    bench.put(
        f"{names.nodes_prefix(bench.run, CELL)}{WRITER}{doomed}.json", {"format": "troop.node/1", "error": "gone"}
    )
    assert bench.gather() == "waiting"
    spot.vanish()
    assert bench.gather() == "short"


def test_a_launch_that_is_under_way_is_waited_for(spot: Spot) -> None:
    bench = spot.launched().late().bench
    spot.begun = True
    spot.back_up()
    assert set(spot.sizes()) == {""}
    assert bench.gather() == "short"
    spot.begun = False
    spot.back_up()
    assert spot.sizes()[".backup"] == (3, 3, 3)


def test_nothing_is_launched_for_a_closed_run(spot: Spot) -> None:
    bench = spot.launched().late().bench
    bench.runs.close(bench.run, RunStatus.STOPPED, "enough", bench.account.clock())
    with pytest.raises(RunClosedError):
        spot.back_up()
    assert set(spot.sizes()) == {""}
    assert bench.gather() == "failed"


def test_a_backup_that_comes_late_does_nothing(spot: Spot) -> None:
    """Once the roster is made, nobody joins."""
    bench = spot.launched().late().bench
    spot.back_up()
    spot.register()
    assert bench.gather() == "ready"
    spot.vanish()
    spot.back_up()
    assert spot.sizes()[".backup"] == (3, 3, 3)


def test_a_quota_on_demand_fails_the_cell(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = spot.launched().late().bench
    spot.back_up()

    def refused(number: int, operation: str, call: Call) -> Any:
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            for group in answer["AutoScalingGroups"]:
                group["Instances"] = [] if group["AutoScalingGroupName"] == spot.backup else group["Instances"]
        if operation == "DescribeScalingActivities" and not answer["Activities"]:
            answer["Activities"] = [{"StatusCode": "Failed", "StatusMessage": "VcpuLimitExceeded, vCPU limit of 0"}]
        return answer

    with calls(monkeypatch, refused):
        assert bench.gather() == "failed"
    assert "1 could be launched: VcpuLimitExceeded" in (bench.cell().reason or "")
    assert bench.cell().status is CellStatus.FAILED


@contextmanager
def never_too_many(spot: Spot, monkeypatch: pytest.MonkeyPatch, number: int, acted: bool) -> Iterator[None]:
    """Cuts the call off, and looks at the number of nodes at each call it makes."""
    cut = cut_at(number, acted)

    def intercept(at: int, operation: str, call: Call) -> Any:
        answer = cut(at, operation, call)
        if operation in ("CreateAutoScalingGroup", "UpdateAutoScalingGroup"):
            most.append(len(spot.drivers()))
        return answer

    most: list[int] = []
    with calls(monkeypatch, intercept):
        yield
    assert max(most, default=0) <= 4


def test_whatever_is_cut_off_the_next_try_makes_it_whole(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    spot.launched(2, "whole").late()
    with calls(monkeypatch) as operations:
        spot.back_up()
    changing = [operations.index(name) for name in ("SuspendProcesses", "UpdateAutoScalingGroup")]
    changing += [operations.index("CreateAutoScalingGroup") + n for n in (-1, 0)]  # also before it, once it is planned
    spot.bench.drop()
    for number in changing:
        spot.launched(2, f"cut {number}").late()
        with never_too_many(spot, monkeypatch, number, acted=True), pytest.raises(Cut):
            spot.back_up()
        spot.back_up()
        assert spot.sizes() == {"": (2, 2, 2), ".backup": (2, 2, 2)}, operations[number]
        ends = spot.bench.autoscaling.describe_scheduled_actions(AutoScalingGroupName=spot.backup)
        assert [one["MaxSize"] for one in ends["ScheduledUpdateGroupActions"]] == [0], operations[number]
        assert spot.bench.groups()[spot.backup]["SuspendedProcesses"], operations[number]
        spot.bench.drop()


# Once all are on the roster


def _taken(spot: Spot) -> str:
    """A spot node that is at its first phase with all others."""
    bench = spot.bench

    def take() -> None:
        spot.launched().late().back_up()
        spot.register()
        assert bench.gather() == "ready"
        bench.step("release", phase_index=0)

    bench.once("taken", take)
    return bench.account.instances(spot.own)[0]


def test_a_notice_makes_the_cell_invalid_though_nothing_is_measured_yet(spot: Spot) -> None:
    bench, doomed = spot.bench, _taken(spot)
    bench.put(f"{names.interruptions_prefix(bench.run, CELL)}{WRITER}{doomed}.json", {"id": doomed})
    assert bench.check(0) == "failed"
    assert bench.cell().status is CellStatus.INVALID
    assert bench.cell().reason == f"spot took {doomed} back during the phase prepare"


@pytest.mark.parametrize(
    ("code", "reason"),
    [("Server.SpotInstanceTermination", "spot took {} back"), ("Client.UserInitiatedShutdown", "{} was lost")],
)
def test_a_node_that_vanishes_without_notice_is_spots_if_ec2_says_so(spot: Spot, code: str, reason: str) -> None:
    bench, doomed = spot.bench, _taken(spot)
    bench.lose(doomed)
    ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].get_instance(doomed).state_reason.code = code
    assert bench.check(0) == "failed"
    assert bench.cell().status is CellStatus.INVALID
    assert bench.cell().reason == f"{reason.format(doomed)} during the phase prepare"


def _shutting_down(spot: Spot, node: str) -> Any:
    """Lost, and EC2 has not said yet why."""
    spot.bench.lose(node)
    instance = ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].get_instance(node)
    instance._state, instance.state_reason = InstanceState("shutting-down", 32), StateReason()
    return instance


def test_why_a_spot_node_shuts_down_is_waited_for(spot: Spot) -> None:
    bench, doomed = spot.bench, _taken(spot)
    instance = _shutting_down(spot, doomed)
    assert bench.check(0) == "waiting"
    bench.account.clock.forward(seconds=5)
    assert bench.check(0) == "waiting"
    instance.state_reason = StateReason("taken", "Server.SpotInstanceTermination")
    assert bench.check(0) == "failed"
    assert bench.cell().status is CellStatus.INVALID


@pytest.mark.parametrize("ends", [True, False])
def test_wait_for_the_cause_of_a_spot_shutdown_is_limited(spot: Spot, ends: bool) -> None:
    bench, doomed = spot.bench, _taken(spot)
    instance = _shutting_down(spot, doomed)
    assert bench.check(0) == "waiting"
    if ends:
        instance._state = InstanceState("terminated", 48)
    else:
        bench.account.clock.forward(seconds=15)
    assert bench.check(0) == "failed"
    assert bench.cell().reason == f"{doomed} was lost during the phase prepare"


def test_why_a_node_on_demand_shuts_down_is_not_waited_for(spot: Spot) -> None:
    bench = spot.bench
    _taken(spot)
    _shutting_down(spot, bench.account.instances(spot.backup)[0])
    assert bench.check(0) == "failed"


def test_results_tell_which_node_was_which_and_what_ec2_expected(spot: Spot) -> None:
    bench, doomed = spot.bench, _taken(spot)
    bench.finish("prepare", spot.bench.nodes("servers") + spot.drivers())
    assert bench.check(0) == "next"
    bench.step("release", phase_index=1)
    bench.finish("measure", spot.drivers())
    key = f"{names.phase_prefix(bench.run, CELL, 'measure')}{WRITER}{doomed}.json"
    bench.put(key, bench.get(key) | {"rebalance_recommended_at": "2026-11-21T15:01:00Z"})
    bench.account.clock.forward(minutes=6)
    assert bench.check(1) == "done"
    assert bench.step("collect")["state"] == "done"
    (phase,) = bench.get(names.results_key(bench.run, CELL))["phases"]
    lines = phase["roles"]["drivers"]["nodes"]
    assert {i: line["purchase"] for i, line in lines.items()} == dict.fromkeys(spot.drivers(), "on-demand") | {
        doomed: "spot"
    }
    assert [i for i, line in lines.items() if line["rebalance_recommended_at"]] == [doomed]
