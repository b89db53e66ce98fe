"""Teardown: in the end nothing of the run is left, the record says so of each thing, and look-alikes are untouched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import calls, changing, refusing
from tests.unit.bench.flows.removal.tables import NOON, OTHER, RUN
from tests.unit.bench.flows.removal.world import World
from troop.bench.definition import names
from troop.bench.records.record import CellStatus, Kind, Resource, RunStatus
from troop.bench.removal.teardown import QUIET, TeardownIncompleteError
from troop.shared import moments
from troop.shared.errors import MissingRunError, RunClosedError

FLEET = names.fleet_name(RUN, "c001", "drivers")


@pytest.fixture
def launched(world: World) -> World:
    """A run with one cell, and the look-alikes."""
    world.doubles()
    world.launched()
    assert len(world.left()) >= 5, "a security group, a template, a group and two instances"
    return world


def _names_left(world: World, kind: str) -> list[str]:
    """What is left of it."""
    return [name for one, name in world.left() if one == kind]


def all_gone(world: World, run: str = RUN) -> None:
    """Nothing of a run is left, the record is complete, and nobody else's is touched."""
    existing = world.existing()
    assert [one for one in existing if one not in world.strangers] == []
    assert [one for one in world.strangers if one not in existing] == []
    assert [r for r in world.runs.resources.get_all(run) if not r.gone_at] == []
    record = world.runs.get(run)
    assert record.closed_at
    assert record.ended_at
    assert record.status is record.outcome
    assert run not in [one.run for one in world.runs.open_runs().items]
    assert {cell.phase for cell in world.runs.cells.get_all(run)} == {"over"}


def test_a_run_is_torn_down(launched: World) -> None:
    looks = launched.tear_down(status="SUCCEEDED")
    all_gone(launched)
    assert looks <= 3 + QUIET, "nodes, then the endpoint, then its security group"
    assert launched.runs.get(RUN).status is RunStatus.SUCCEEDED
    resources = launched.runs.resources.get_all(RUN)
    assert all(r.created_at for r in resources)
    kinds = [r.kind for r in resources]
    assert kinds.count(Kind.INSTANCE) == 2, "nobody had recorded them: teardown has"
    assert set(kinds) >= set(Kind) - {Kind.VOLUME}


def test_report_is_due_for_a_run_but_not_for_a_cell_or_standing_fleet(world: World) -> None:
    def reported(run: str, **cell: str) -> list[bool]:
        work = [world.step("close", {"run": run, **cell})]
        while not work[-1]["over"]:
            work.append(world.step("remove", work[-1]))
        work.append(world.step("conclude", work[-1]))
        return [one["report"] for one in work]

    world.admit(cells=2)
    assert not any(reported(RUN, cell="c001"))
    *before, due = reported(RUN)
    assert (any(before), due) == (False, True)
    world.admit_fleet(OTHER)
    assert not any(reported(OTHER))


def test_planned_resource_that_was_never_created_is_gone(world: World) -> None:
    world.admit()
    lease = world.runs.launches.begin(RUN, "c001", NOON)
    world.runs.resources.plan([Resource(RUN, "c001", Kind.SECURITY_GROUP, "troop-x", NOON)])
    world.runs.close(RUN, RunStatus.STOPPED, "stopped by ann", NOON)
    with pytest.raises(RunClosedError):
        world.launch(lease=lease)
    world.runs.launches.end(lease)
    assert world.tear_down() == QUIET
    all_gone(world)
    (planned,) = world.runs.resources.get_all(RUN)
    assert (planned.created_at, planned.gone_at) == (None, NOON)
    assert (world.runs.get(RUN).status, world.runs.get(RUN).reason) == (RunStatus.STOPPED, "stopped by ann")


def test_cells_that_came_to_no_end_get_the_run_s(world: World) -> None:
    world.admit(cells=2)
    world.runs.cells.change(RUN, "c001", status=CellStatus.SUCCEEDED)
    world.tear_down(status="STOPPED", reason="stopped by ann")
    first, second = world.runs.cells.get_all(RUN)
    assert (first.status, first.reason) == (CellStatus.SUCCEEDED, None)
    assert (second.status, second.reason) == (CellStatus.STOPPED, "stopped by ann")
    world.admit(OTHER)
    world.tear_down(OTHER, status="FAILED", reason="its workflow took too long")
    cell = world.runs.cells.get(OTHER, "c001")
    assert (cell.status, cell.reason) == (CellStatus.FAILED, "its workflow took too long")


def test_a_cell_is_torn_down_and_the_others_go_on(world: World) -> None:
    world.admit(cells=2)
    for cell in ("c001", "c002"):
        world.launch_by_the_rules(cell=cell)
    world.tear_down(cell="c001")
    assert all("c001" not in name for _, name in world.existing())
    assert world.runs.get(RUN).closed_at is None
    assert {r.cell for r in world.runs.resources.get_all(RUN) if not r.gone_at} == {"c002"}
    assert [cell.phase for cell in world.runs.cells.get_all(RUN)] == ["over", "launch"]
    with pytest.raises(RunClosedError):
        world.runs.launches.begin(RUN, "c001", NOON)
    world.runs.launches.begin(RUN, "c002", NOON)
    assert ("group", names.fleet_name(RUN, "c002", "drivers")) in world.existing()
    world.tear_down(status="SUCCEEDED")
    all_gone(world)


def test_teardown_of_one_run_spares_another(launched: World) -> None:
    launched.admit(OTHER)
    launched.launch_by_the_rules(OTHER)
    others = [one for one in launched.left() if OTHER in one[1]]
    assert others
    launched.tear_down()
    assert [one for one in launched.left() if RUN in one[1]] == []
    assert [one for one in launched.left() if OTHER in one[1]] == others
    instances = launched.autoscaling.describe_auto_scaling_groups(
        AutoScalingGroupNames=[names.fleet_name(OTHER, "c001", "drivers")]
    )["AutoScalingGroups"][0]["Instances"]
    assert [i["LifecycleState"] for i in instances] == ["InService"] * 2
    launched.tear_down(OTHER)
    all_gone(launched)
    all_gone(launched, OTHER)


def test_a_group_deleted_by_hand_is_as_good_as_removed(launched: World) -> None:
    launched.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=FLEET, ForceDelete=True)
    launched.tear_down()
    all_gone(launched)


def test_teardown_may_be_repeated_after_its_end(launched: World) -> None:
    launched.tear_down(status="STOPPED", reason="stopped by ann")
    before = launched.runs.get(RUN), launched.runs.resources.get_all(RUN), launched.runs.cells.get_all(RUN)
    launched.forward(hours=1)
    launched.tear_down(status="FAILED", reason="late")
    assert (launched.runs.get(RUN), launched.runs.resources.get_all(RUN), launched.runs.cells.get_all(RUN)) == before
    all_gone(launched)


def test_a_run_that_nobody_knows_is_not_torn_down(world: World) -> None:
    with pytest.raises(MissingRunError, match=OTHER):
        world.tear_down(OTHER)


def test_more_than_one_page_of_groups_is_removed(world: World) -> None:
    """moto's pages are of 50 groups."""
    world.admit()
    tags = names.tags("Troop", RUN, "c001", moments.iso(NOON))
    security = world.security_group(names.security_group_name(RUN, "c001"), tags)
    world.template(FLEET, security, names.fleet_tags(tags, "drivers"))
    for number in range(60):
        role = f"drivers-{number:03d}"
        world.group(names.fleet_name(RUN, "c001", role), names.fleet_tags(tags, role), count=0, template=FLEET)
    world.tear_down()
    all_gone(world)


# Leases


def test_teardown_continues_while_a_launch_may_create_something(world: World) -> None:
    """Teardown comes between a launch's look and its creation."""
    world.doubles()
    world.admit()
    world.runs.launches.begin(RUN, "c001", NOON + timedelta(seconds=310))
    work = world.step("close", {"run": RUN})
    for _ in range(4):
        work = world.step("remove", work)
        assert not work["over"], "the launch may still create something"
    world.launch()  # it had looked before the run was closed
    work = world.step("remove", work)
    assert not work["over"]
    left = [kind for kind, _ in world.left()]
    assert left == ["placement group", "security group"], "what can go at once goes at once"
    while not work["over"]:
        world.forward(seconds=work["wait_seconds"])
        work = world.step("remove", work)
    assert world.now > NOON + timedelta(seconds=310), "a launch that died has its right to the end"
    world.step("conclude", work)
    all_gone(world)


def test_a_launch_refuses_what_is_closed_between_two_creations(world: World) -> None:
    world.admit()
    lease = world.runs.launches.begin(RUN, "c001", NOON + timedelta(seconds=310))
    closed: list[Any] = []

    def close(answer: Any) -> None:
        closed.append(world.step("close", {"run": RUN, "status": "STOPPED", "reason": "stopped by ann"}))

    between = changing("CreateLaunchTemplate", close)
    with pytest.MonkeyPatch.context() as patch, calls(patch, between), pytest.raises(RunClosedError):
        world.launch(lease=lease)
    assert closed
    world.runs.launches.end(lease)
    assert "group" not in [kind for kind, _ in world.existing()]
    world.tear_down()
    all_gone(world)


# What AWS does


class Slow:
    """AWS takes its time: groups that are being deleted are shown a while, instances shut down, security groups depend
    on them, and a deletion can be refused because something else is under way.
    """

    def __init__(self, world: World, looks: int, refusals: int) -> None:
        self.world, self.looks, self.refusals = world, looks, refusals
        self.group: dict[str, Any] | None = None
        self.instances: dict[str, int] = {}
        self.deleted: list[str] = []

    def __call__(self, number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "DeleteAutoScalingGroup":
            if self.refusals:
                self.refusals -= 1
                raise refusal("ScalingActivityInProgress", operation)
            described = self.world.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[FLEET])
            (self.group,) = described["AutoScalingGroups"]
            self.instances = {i["InstanceId"]: self.looks for i in self.group["Instances"]}
        if operation == "DeleteSecurityGroup" and self.going():
            raise refusal("DependencyViolation", operation)
        answer = call()
        if operation.startswith("Delete"):
            self.deleted.append(operation)
        if operation == "DescribeAutoScalingGroups" and self.group and self.looks:
            self.looks -= 1
            answer["AutoScalingGroups"].append(self.group | {"Status": "Delete in progress"})
        if operation == "DescribeInstances" and self.going():
            self.instances = {i: n - 1 for i, n in self.instances.items()}
            tags = [{"Key": k, "Value": v} for k, v in names.tags("Troop", RUN, "c001", "").items()]
            shown = [
                {"InstanceId": i, "State": {"Name": "shutting-down"}, "LaunchTime": NOON, "Tags": tags}
                for i, n in self.instances.items()
            ]
            answer["Reservations"].append({"Instances": shown})
        return answer

    def going(self) -> bool:
        return any(n > 0 for n in self.instances.values())


def refusal(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "not now"}}, operation)


def test_teardown_waits_for_slow_removals(launched: World, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(launched, looks=5, refusals=2)
    with calls(monkeypatch, slow):
        looks = launched.tear_down()
    assert looks >= 2 + 5 + QUIET
    assert slow.deleted.count("DeleteAutoScalingGroup") == 1, "what is going is not asked again"
    all_gone(launched)


def test_no_other_resource_is_removed_before_the_group_accepts_its_deletion(
    launched: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would replace its instances, and fail without its template."""
    before = launched.existing()
    with calls(monkeypatch, refusing("DeleteAutoScalingGroup", "ResourceInUse")) as operations:
        work = launched.step("remove", launched.step("close", {"run": RUN}))
    assert not work["over"]
    assert [call for call in operations if call.startswith(("Delete", "Terminate"))] == ["DeleteAutoScalingGroup"]
    assert launched.existing() == before


def test_one_that_cannot_be_removed_holds_up_no_other_and_is_named(
    launched: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = refusing("DeleteLaunchTemplate", "UnauthorizedOperation")
    with calls(monkeypatch, refused), pytest.raises(TeardownIncompleteError) as caught:
        launched.tear_down()
    assert [kind for kind, _ in launched.left()] == ["template"]
    assert "launch-template lt-" in str(caught.value)
    assert "UnauthorizedOperation" in str(caught.value)
    assert timedelta(minutes=45) < launched.now - NOON < timedelta(minutes=75)
    assert launched.runs.get(RUN).ended_at is None
    assert [r.kind for r in launched.runs.resources.get_all(RUN) if not r.gone_at] == [Kind.LAUNCH_TEMPLATE]
    launched.tear_down()
    all_gone(launched)


def test_a_volume_of_a_node_is_recorded_and_goes_although_somebody_detaches_it(launched: World) -> None:
    tags = names.fleet_tags(names.tags("Troop", RUN, "c001", ""), "drivers")
    nodes = launched.members(FLEET)
    free, held = (launched.volume_of_a_node(node, tags) for node in nodes)
    launched.step("close", {"run": RUN})
    in_use = refusing("DeleteAutoScalingGroup", "ResourceInUse")
    with pytest.MonkeyPatch.context() as patch, calls(patch, in_use):
        launched.step("remove", {"run": RUN})
    assert {free, held} == {r.name for r in launched.runs.resources.get_all(RUN) if r.kind is Kind.VOLUME}
    launched.ec2.detach_volume(VolumeId=free, InstanceId=nodes[0])
    launched.tear_down()
    all_gone(launched)


def test_an_instance_that_cannot_go_holds_up_no_other(launched: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """EC2 refuses the whole call for the sake of one id."""
    launched.detach(launched.members(FLEET))
    first = sorted(_names_left(launched, "instance"))[0]
    launched.ec2.modify_instance_attribute(InstanceId=first, DisableApiTermination={"Value": True})
    work = launched.step("remove", launched.step("close", {"run": RUN}))
    assert _names_left(launched, "instance") == [first]
    assert not work["over"]
    launched.ec2.modify_instance_attribute(InstanceId=first, DisableApiTermination={"Value": False})
    launched.tear_down()
    all_gone(launched)


def test_resource_that_reappears_after_a_quiet_pass_is_not_gone(
    launched: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the account answers lags behind: one look that shows nothing says little."""
    hidden = {"DescribeAutoScalingGroups": "AutoScalingGroups", "DescribeInstances": "Reservations"}
    hidden |= {"DescribeVolumes": "Volumes", "DescribeLaunchTemplates": "LaunchTemplates"}
    hidden |= {"DescribeSecurityGroups": "SecurityGroups", "DescribePlacementGroups": "PlacementGroups"}
    hidden |= {"DescribeVpcEndpoints": "VpcEndpoints", "ListQueues": "QueueUrls"}

    def lags(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation in hidden:
            answer[hidden[operation]] = []
        return answer

    work = launched.step("close", {"run": RUN})
    with calls(monkeypatch, lags):
        work = launched.step("remove", work)
    assert not work["over"]
    assert work["quiet"] == 1
    assert all(r.gone_at for r in launched.runs.resources.get_all(RUN))
    work = launched.step("remove", work)
    assert work["quiet"] == 0
    assert not all(r.gone_at for r in launched.runs.resources.get_all(RUN)), "the record is put right"
    launched.tear_down()
    all_gone(launched)
