"""Resources of other owners survive whatever their tags, and are reported; what is protected stays until released."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, combinations
from typing import Any

import pytest
from moto.backends import get_backend

from tests.unit.account.account import EXHAUSTIVE
from tests.unit.bench.flows.removal.tables import NOON, OTHER, RUN
from tests.unit.bench.flows.removal.test_costs import launched, nodes
from tests.unit.bench.flows.removal.test_teardown import all_gone
from tests.unit.bench.flows.removal.world import PROFILE, World, tagged
from tests.unit.shared.aws.test_metrics import values_of
from troop.bench.definition import names
from troop.bench.flows.reaper import Reaped
from troop.bench.records.record import Kind, Resource, RunStatus
from troop.bench.removal.inventory import MOST_LEFT, PROTECTED
from troop.bench.wiring import removal
from troop.shared import moments
from troop.shared.tags import DEPLOYMENT_TAG, FLEET_TAG, PROTECTED_TAG, RUN_TAG

FLEET = names.fleet_name(RUN, "c001", "drivers")
OURS = names.tags("Troop", RUN, "c001", moments.iso(NOON)) | {FLEET_TAG: "drivers"}
"""All tags by which Troop knows something."""

OWNERSHIP = {DEPLOYMENT_TAG, RUN_TAG}
"""Those of them that name a deployment's run."""


def subsets(tags: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yields some of the tags: all combinations of those of :data:`OWNERSHIP`, with all and with none of the others.
    With ``TROOP_EXHAUSTIVE`` all combinations.
    """
    keys = sorted(tags)
    for some in chain.from_iterable(combinations(keys, size) for size in range(len(keys) + 1)):
        others = set(some) - OWNERSHIP
        if EXHAUSTIVE or others in (set(), tags.keys() - OWNERSHIP):
            yield {key: tags[key] for key in some}


def every_tagging() -> list[dict[str, str]]:
    """Returns taggings of resources of another owner. Every second one protects."""
    return [tags | more for tags in subsets(OURS) for more in ({}, {PROTECTED_TAG: "yes"})]


def make(world: World, kind: Kind, name: str, tags: dict[str, str], template: str, group: str) -> None:
    """Creates a resource of another owner: ``template`` starts its instances, and ``group`` is of new templates."""
    if kind is Kind.SECURITY_GROUP:
        world.security_group(name, tags)
    elif kind is Kind.PLACEMENT_GROUP:
        world.placement_group(name, tags)
    elif kind is Kind.LAUNCH_TEMPLATE:
        world.template(name, group, tags, profile="")
    elif kind is Kind.AUTO_SCALING_GROUP:
        world.group(name, tags, count=1, template=template)
    elif kind is Kind.VOLUME:
        world.volume(tags)
    elif kind is Kind.ENDPOINT:
        world.endpoint(group, tags)
    elif kind is Kind.QUEUE:
        world.queue(name, tags)
    else:
        world.ec2.run_instances(
            LaunchTemplate={"LaunchTemplateName": template},
            MinCount=1,
            MaxCount=1,
            SubnetId=world.subnet,
            TagSpecifications=tagged("instance", tags),
        )


@pytest.fixture(params=["unknown", "open", "closed", "ended"])
def run(world: World, request: pytest.FixtureRequest) -> str:
    """The run that the tags name, by what is on record of it."""
    if request.param == "unknown":
        return str(request.param)
    world.admit()
    if request.param == "open":
        world.start_workflow()
    if request.param == "closed":
        world.runs.close(RUN, RunStatus.STOPPED, None, NOON)
    if request.param == "ended":
        world.tear_down()
    return str(request.param)


def test_no_combination_of_tags_removes_another_owner_s(world: World, run: str) -> None:
    group = world.security_group("theirs", {})
    world.template("theirs", group, {}, profile="")
    world.template("theirs-with-profile", group, {}, "arn:aws:iam::123456789012:instance-profile/payments")
    kinds = [*((kind, "theirs") for kind in Kind), (Kind.INSTANCE, "theirs-with-profile")]
    taggings = every_tagging()
    for kind, template in kinds:
        for number, tags in enumerate(taggings):
            make(world, kind, f"payments-{number}", tags, template, group)
    theirs = world.existing()
    assert len(theirs) >= len(taggings) * len(kinds)
    for hours in (1, 3, 3):
        world.forward(hours=hours)
        reaped = removal.reaper().sweep()
        assert reaped.removed == []
        assert reaped.left_behind, "those with both of our tags"
        if run != "unknown":
            assert world.tear_down() <= 4, "they do not hold it up"
            assert world.runs.get(RUN).ended_at
    assert world.existing() == theirs
    if run != "unknown":
        named = {(one.kind, one.name) for one in world.runs.get(RUN).left_behind}
        assert named, "the run's status names them"
        each = len(kinds) + 1 - 1  # a group has an instance; of a queue with another name, the tags are not read
        foreign = sum(tags.keys() >= OWNERSHIP for tags in taggings)
        assert len(reaped.left_behind) == each * foreign, "each with both tags, and a group's instance"
        sought = each - 1  # the teardown of a run without a queue looks for no endpoint
        assert len(named) == min(sought * foreign, MOST_LEFT)


def test_foreign_resource_attached_to_a_node_stays(world: World) -> None:
    """Attached by hand: EC2 does not delete it with the node, so the run has not created it."""
    world.launched()
    attached = world.volume(OURS)
    world.ec2.attach_volume(Device="/dev/sdf", InstanceId=world.members(FLEET)[0], VolumeId=attached)
    world.tear_down()
    assert [one for one in world.existing() if one[0] != "volume"] == []
    assert ("volume", attached) in world.existing()
    assert [one.name for one in world.runs.get(RUN).left_behind] == [attached]


@pytest.mark.parametrize("by", ["teardown", "reaper"])
@pytest.mark.parametrize("profile", ["", "arn:aws:iam::123456789012:instance-profile/payments", PROFILE])
def test_a_group_stays_with_every_stranger_that_somebody_attached_to_it(world: World, profile: str, by: str) -> None:
    """Deleting a group would terminate it, and Auto Scaling's tag of a member proves nothing."""
    world.launched()
    world.template("theirs", world.security_group("theirs", {}), {}, profile)
    taggings = [{"Name": "postgres"} | tags for tags in every_tagging()]
    for number, tags in enumerate(taggings):
        make(world, Kind.INSTANCE, f"postgres-{number}", tags, "theirs", "")
    nodes = set(world.members(FLEET))
    theirs = {ident for kind, ident in world.existing() if kind == "instance"} - nodes
    assert len(theirs) == len(taggings)
    world.autoscaling.update_auto_scaling_group(AutoScalingGroupName=FLEET, MaxSize=9 + len(theirs))
    world.autoscaling.attach_instances(AutoScalingGroupName=FLEET, InstanceIds=sorted(theirs))
    if by == "reaper":
        world.forward(hours=3)
        removal.reaper().sweep()
    world.tear_down()
    assert ("group", FLEET) in world.existing()
    assert {ident for kind, ident in world.existing() if kind == "instance"} == theirs | nodes
    reasons = {(one.kind, one.name): one.reason for one in world.runs.get(RUN).left_behind}
    assert "would also remove the instance" in reasons[Kind.AUTO_SCALING_GROUP, FLEET]
    assert {(Kind.INSTANCE, ident) for ident in theirs} <= reasons.keys()

    world.detach(sorted(theirs))
    world.swept()
    assert {ident for kind, ident in world.existing() if kind == "instance"} == theirs
    assert ("group", FLEET) not in world.existing()


def test_a_protected_member_without_our_tags_keeps_its_group(world: World) -> None:
    world.launched()
    (node, _) = world.members(FLEET)
    world.ec2.delete_tags(Resources=[node], Tags=[{"Key": DEPLOYMENT_TAG}, {"Key": RUN_TAG}])
    protect(world, "instance", node)
    before = world.existing()
    world.tear_down()
    assert world.existing() == before
    release(world, "instance", node)
    world.swept()
    all_gone(world)


def test_a_detached_node_is_removed(world: World) -> None:
    """Auto Scaling takes its tag away; EC2's own of the launch template stays, and the record knows it afterwards."""
    world.launched()
    nodes = world.members(FLEET)
    world.detach(nodes)
    world.ec2.delete_tags(Resources=nodes, Tags=[{"Key": "aws:autoscaling:groupName"}])
    world.tear_down()
    all_gone(world)


def test_a_node_that_has_lost_its_profile_is_named_and_stays_on_record(world: World) -> None:
    world.launched()
    (node, _) = world.members(FLEET)
    world.runs.resources.record_seen([Resource(RUN, "c001", Kind.INSTANCE, node, NOON)], NOON)
    world.detach([node])
    _profile(node, None)
    world.tear_down()
    record = world.runs.get(RUN)
    assert record.ended_at
    assert ("instance", node) in world.existing()
    assert "profile" in {one.name: one.reason for one in record.left_behind}[node]
    _profile(node, PROFILE)
    world.swept()
    all_gone(world)
    assert world.runs.get(RUN).left_behind == ()


def _profile(instance: str, arn: str | None) -> None:
    """moto does not show what was associated later."""
    backend = get_backend("ec2")["123456789012"]["eu-central-1"]
    backend.get_instance(instance).iam_instance_profile = arn and {"Arn": arn, "Id": "AIPA1"}


# What is protected


def protect(world: World, kind: str, name: str) -> None:
    if kind == "group":
        tag = {"Key": PROTECTED_TAG, "Value": "", "ResourceId": name, "ResourceType": "auto-scaling-group"}
        world.autoscaling.create_or_update_tags(Tags=[tag | {"PropagateAtLaunch": False}])
    else:
        world.ec2.create_tags(Resources=[name], Tags=[{"Key": PROTECTED_TAG, "Value": ""}])


def release(world: World, kind: str, name: str) -> None:
    if kind == "group":
        tag = {"Key": PROTECTED_TAG, "ResourceId": name, "ResourceType": "auto-scaling-group"}
        world.autoscaling.delete_tags(Tags=[tag])
    else:
        world.ec2.delete_tags(Resources=[name], Tags=[{"Key": PROTECTED_TAG}])


@pytest.mark.parametrize("kind", ["group", "instance", "volume", "template", "security group"])
def test_protected_resource_stays_until_it_is_released(
    world: World, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.doubles()
    world.launched()
    volume = world.volume_of_a_node(world.members(FLEET)[0], OURS)
    template = world.ec2.describe_launch_templates(LaunchTemplateNames=[FLEET])["LaunchTemplates"][0]
    ids = {
        "group": FLEET,
        "instance": world.members(FLEET)[0],
        "volume": volume,
        "template": template["LaunchTemplateId"],
        "security group": next(i for k, i in world.left() if k == "security group"),
    }
    protect(world, kind, ids[kind])
    shown = FLEET if kind == "template" else ids[kind]
    takes_all = kind in ("group", "instance", "volume")
    before = world.left()

    assert world.tear_down(status="SUCCEEDED") <= 5, "it is not waited for"
    record = world.runs.get(RUN)
    assert (record.status, bool(record.ended_at)) == (RunStatus.SUCCEEDED, True)
    assert world.left() == (before if takes_all else [(kind, shown)])
    named = {"template": FLEET, "security group": names.security_group_name(RUN, "c001")}.get(kind, ids[kind])
    reasons = {one.name: one.reason for one in record.left_behind if one.reason == PROTECTED}
    assert reasons == {named: PROTECTED}
    world.tear_down()
    capsys.readouterr()
    for _ in range(3):
        world.forward(minutes=15)
        assert world.reap() == {"started": [], "removed": []}
    assert values_of(capsys, "LeftBehind") == [len(record.left_behind)] * 3
    assert world.runs.get(RUN).left_behind == record.left_behind

    release(world, kind, ids[kind])
    world.forward(minutes=15)
    reaped = world.reap()
    assert reaped["removed"]
    world.tear_down(**world.teardowns()[reaped["started"][0]])
    all_gone(world)
    assert world.runs.get(RUN).left_behind == ()
    assert values_of(capsys, "LeftBehind") == [], "its alarm ends by that"
    world.forward(minutes=15)
    assert world.reap() == {"started": [], "removed": []}


def test_removal_by_the_owner_is_recorded(world: World) -> None:
    world.launched()
    protect(world, "group", FLEET)
    world.tear_down()
    world.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=FLEET, ForceDelete=True)
    protect_none = [i for k, i in world.existing() if k in ("template", "security group")]
    assert protect_none, "they had to stay with it"
    world.forward(minutes=16)
    started = world.reap()["started"]
    world.tear_down(**world.teardowns()[started[0]])
    all_gone(world)


def test_a_volume_that_its_owner_removes_is_written_down(world: World) -> None:
    world.launched()
    volume = world.volume(OURS)
    world.runs.resources.record_seen([Resource(RUN, "c001", Kind.VOLUME, volume, NOON)], NOON)
    protect(world, "volume", volume)
    world.tear_down()
    assert [one.name for one in world.runs.get(RUN).left_behind] == [volume]
    world.ec2.delete_volume(VolumeId=volume)
    world.forward(minutes=16)
    (name,) = world.reap()["started"]
    world.tear_down(**world.teardowns()[name])
    all_gone(world)
    world.states.stop_execution(executionArn=f"arn:aws:states:eu-central-1:123456789012:execution:teardown:{name}")
    world.forward(minutes=15)
    assert world.reap()["started"] == []


def test_an_open_run_s_strangers_are_on_its_record_while_they_are_there(world: World) -> None:
    world.admit()
    world.start_workflow()
    volume = world.volume(OURS)
    world.forward(minutes=20)
    removal.reaper().sweep()
    assert [one.name for one in world.runs.get(RUN).left_behind] == [volume]
    assert RUN in [one.run for one in world.runs.open_runs().items]
    world.ec2.delete_tags(Resources=[volume], Tags=[{"Key": "troop:run"}])
    removal.reaper().sweep()
    assert world.runs.get(RUN).left_behind == ()


def test_resource_on_record_of_an_open_run_is_followed_after_its_end(world: World) -> None:
    world.admit()
    world.start_workflow()
    volume = world.volume(OURS)
    world.forward(minutes=20)
    removal.reaper().sweep()
    world.tear_down()
    assert [one.name for one in world.runs.get(RUN).left_behind] == [volume]
    assert [one.run for one in world.runs.left_runs().items] == [RUN]
    world.ec2.delete_volume(VolumeId=volume)
    removal.reaper().sweep()
    assert world.runs.get(RUN).left_behind == ()
    assert world.runs.left_runs().items == ()


# The reaper's switch


def test_resource_released_while_the_reaper_is_off_stays_on_record(world: World) -> None:
    world.launched()
    protect(world, "group", FLEET)
    world.tear_down()
    world.switch_reaper(off=True)
    release(world, "group", FLEET)
    for _ in range(2):
        world.forward(minutes=16)
        removal.reaper().sweep()
        assert FLEET in {one.name for one in world.runs.get(RUN).left_behind}
    world.switch_reaper(off=False)
    (name,) = world.reap()["started"]
    world.tear_down(**world.teardowns()[name])
    all_gone(world)
    assert world.runs.get(RUN).left_behind == ()


def test_while_it_is_off_the_reaper_only_reports(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.launched()
    execution = world.start_workflow()
    world.admit(OTHER)
    world.tear_down(OTHER)
    world.launch(OTHER)
    world.volume(OURS)
    before = world.existing()
    world.forward(hours=3)
    world.switch_reaper(off=True)
    capsys.readouterr()
    reaped: Reaped = removal.reaper().sweep()
    assert (reaped.started, reaped.removed, reaped.off) == ([], [], True)
    assert any(one.startswith(f"the teardown {RUN}") for one in reaped.withheld)
    assert any("auto-scaling-group" in one for one in reaped.withheld)
    assert len(reaped.left_behind) == 1, "it still reports"
    heard = {
        "source": "aws.states",
        "id": "1",
        "detail": {
            "stateMachineArn": "arn:aws:states:eu-central-1:123456789012:stateMachine:benchmark",
            "name": RUN,
            "status": "FAILED",
        },
    }
    assert world.reap(heard) == world.reap() == {"started": [], "removed": []}
    assert world.existing() == before
    assert world.teardowns() == {}
    assert world.states.describe_execution(executionArn=execution)["status"] == "RUNNING"
    assert values_of(capsys, "ReaperOff") == [1]
    assert world.runs.get(RUN).closed_at is None
    world.tear_down(RUN, status="SUCCEEDED")
    assert world.runs.get(RUN).ended_at, "a run that ends removes its own"
    assert len(world.existing()) < len(before)
    world.switch_reaper(off=False)
    assert removal.reaper().sweep().removed
    world.reap()
    assert values_of(capsys, "ReaperOff") == []


def test_a_reaper_that_cannot_read_its_switch_does_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.launched()
    world.forward(hours=3)
    before = world.existing()
    monkeypatch.setenv("TROOP_STATE_TABLE", "gone")
    removal.reaper.cache_clear()
    with pytest.raises(world.runs.client.exceptions.ResourceNotFoundException):
        world.reap()
    assert world.existing() == before
    assert world.teardowns() == {}


def test_the_cost_of_what_is_left_behind_goes_on(world: World) -> None:
    launched(world, "c001")
    fleet = names.fleet_name(RUN, "c001", "drivers")
    world.clock.moment = NOON + timedelta(minutes=1)
    protect(world, "group", fleet)
    world.tear_down(RUN)
    first: Any = nodes(world, "c001")
    world.forward(hours=5)
    world.reap()
    assert nodes(world, "c001") > first
    release(world, "group", fleet)
    world.forward(minutes=15)
    (name, *_) = world.reap()["started"]
    world.tear_down(**world.teardowns()[name])
    last = nodes(world, "c001")
    world.forward(hours=5)
    world.reap()
    assert nodes(world, "c001") == last
