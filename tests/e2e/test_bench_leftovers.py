"""What people do to runs meanwhile, what looks like a run's and is not, and what the reaper finds."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.e2e.benches import INSTANCE_TYPE, LONG, NOTHING, TAKEN_ONCE, Bench, assert_nothing_left, left
from tests.e2e.conftest import eventually
from tests.e2e.roles import UNOBSERVED, allowed, is_of_queues, role_of
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.records.record import Kind, Resource
from troop.shared.tags import CELL_TAG, DEPLOYMENT_TAG, PROTECTED_TAG, RUN_TAG

CELL = "cell#c001"
SCARCE, SCARCE_ON_SPOT, DYING = "c7g.xlarge", "m7g.4xlarge", "r7g.xlarge"
OURS = (
    *("BenchmarksBenchmarkRole", "BenchmarksTeardownRole", "ReaperScheduleRole"),
    *("FunctionsLaunchRole", "FunctionsCellRole", "FunctionsTeardownRole", "FunctionsReportRole"),
    "FunctionsReaperRole",
)
"""The roles of the half that runs benchmarks, but its nodes'."""

ONLY_OF_CHANGES = {"dynamodb:UpdateItem"}
"""What reports do after a benchmark has changed, in the twentieth run of a schedule at the earliest."""

OTHERS = "SomebodyElses"
MINUTES = 20
"""More than the reaper's patience."""


ENOUGH = 8
"""Steps of a teardown, after which one that finds nothing is over."""


@dataclass(frozen=True)
class Thing:
    """A group of one instance with its template and its security group, made by hand: ids and names."""

    group: str
    template: str
    security_group: str
    instance: str

    def exists(self, bench: Bench) -> bool:
        ec2, groups = bench.account.client("ec2"), bench.account.client("autoscaling")
        (state,) = [
            one["State"]["Name"]
            for reservation in ec2.describe_instances(InstanceIds=[self.instance])["Reservations"]
            for one in reservation["Instances"]
        ]
        scaling_groups = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[self.group])["AutoScalingGroups"]
        templates = ec2.describe_launch_templates(LaunchTemplateIds=[self.template])["LaunchTemplates"]
        security = ec2.describe_security_groups(GroupIds=[self.security_group])["SecurityGroups"]
        return state == "running" and all(len(one) == 1 for one in (scaling_groups, templates, security))


def site(bench: Bench) -> tuple[str, str]:
    """The id of the nodes' network, and the ARN of their instance profile."""
    pages = bench.account.client("lambda").get_paginator("list_functions").paginate()
    (reaper,) = [
        one["Environment"]["Variables"]
        for page in pages
        for one in page["Functions"]
        if one["FunctionName"].startswith(bench.deployment.name) and "FunctionsReaper" in one["FunctionName"]
    ]
    return reaper["TROOP_NETWORK_VPC"], reaper["TROOP_NODE_PROFILE"]


def subnet_of(bench: Bench) -> dict[str, Any]:
    """One of the nodes' network."""
    filters = [{"Name": "vpc-id", "Values": [site(bench)[0]]}]
    subnet: dict[str, Any] = bench.account.client("ec2").describe_subnets(Filters=filters)["Subnets"][0]
    return subnet


def make(bench: Bench, name: str, tags: dict[str, str], *, security: str = "", profile: str = "") -> Thing:
    """Something by hand, with these tags and no others.

    Args:
        security: name of its security group; by default the same.
        profile: ARN of its instance's profile; by default none.
    """
    ec2, groups, subnet = bench.account.client("ec2"), bench.account.client("autoscaling"), subnet_of(bench)
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]

    def specified(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": listed}] if listed else []

    security = ec2.create_security_group(
        GroupName=security or name,
        Description="by hand",
        VpcId=subnet["VpcId"],
        TagSpecifications=specified("security-group"),
    )["GroupId"]
    data = {
        "ImageId": "ami-12345678",
        "InstanceType": INSTANCE_TYPE,
        "SecurityGroupIds": [security],
        "UserData": base64.b64encode(b"#!/bin/sh\n").decode(),
        "TagSpecifications": [*specified("instance"), *specified("volume")],
        **({"IamInstanceProfile": {"Arn": profile}} if profile else {}),
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8, "Encrypted": True}}],
    }
    template = ec2.create_launch_template(
        LaunchTemplateName=name, LaunchTemplateData=data, TagSpecifications=specified("launch-template")
    )["LaunchTemplate"]["LaunchTemplateId"]
    groups.create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=1,
        MaxSize=1,
        LaunchTemplate={"LaunchTemplateId": template},
        VPCZoneIdentifier=subnet["SubnetId"],
        Tags=[{**tag, "PropagateAtLaunch": True} for tag in listed],
    )
    members = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0]["Instances"]
    return Thing(name, template, security, members[0]["InstanceId"])


def record(bench: Bench, resource: Resource) -> None:
    """Puts something on record, as a step does that has seen it."""
    table = RunTable(bench.deployment.dynamodb, bench.deployment.outputs["RunsTable"])
    table.resources.record_seen([resource], datetime.now(UTC))


@pytest.fixture(scope="module")
def lookalikes(bench: Bench) -> Iterator[dict[str, Thing]]:
    """Beside a run that has ended: everything but this deployment's tag and the run's together."""
    detail = bench.ended(bench.start("beside"))
    run, cell, ours = detail["run"]["run"], names.cell_id(1), bench.deployment.name
    full = names.fleet_tags(names.tags(ours, run, cell, detail["run"]["expires_at"]), "drivers")
    kinds = {
        "of another deployment": full | {DEPLOYMENT_TAG: OTHERS},
        "of a deployment whose name begins like ours": full | {DEPLOYMENT_TAG: f"{ours}2"},
        "without the deployment's tag": {key: value for key, value in full.items() if key != DEPLOYMENT_TAG},
        "without the run's tag": {key: value for key, value in full.items() if key != RUN_TAG},
        "without any tags": {},
    }
    things = {
        kind: make(bench, names.fleet_name(run, cell, f"drivers{number}"), tags)
        for number, (kind, tags) in enumerate(kinds.items())
    }
    yield things
    groups = bench.account.client("autoscaling")
    for thing in things.values():
        groups.delete_auto_scaling_group(AutoScalingGroupName=thing.group, ForceDelete=True)


def lone(bench: Bench, tags: dict[str, str]) -> None:
    """A volume on record, and a security group and a placement group that nothing uses, in the cell after the first."""
    ec2, subnet = bench.account.client("ec2"), subnet_of(bench)
    tags = names.fleet_tags(tags, "drivers") | {CELL_TAG: names.cell_id(2)}

    def tagged(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]

    volume = ec2.create_volume(
        Size=8, Encrypted=True, AvailabilityZone=subnet["AvailabilityZone"], TagSpecifications=tagged("volume")
    )
    record(bench, Resource(tags[RUN_TAG], tags[CELL_TAG], Kind.VOLUME, volume["VolumeId"], datetime.now(UTC)))
    ec2.create_security_group(
        GroupName=names.security_group_name(tags[RUN_TAG], tags[CELL_TAG]),
        Description="by hand",
        VpcId=subnet["VpcId"],
        TagSpecifications=tagged("security-group"),
    )
    ec2.create_placement_group(
        GroupName=names.fleet_name(tags[RUN_TAG], tags[CELL_TAG], "drivers"),
        Strategy="spread",
        TagSpecifications=tagged("placement-group"),
    )


def test_the_reaper_removes_an_orphan_and_nothing_of_anybody_elses(bench: Bench, lookalikes: dict[str, Thing]) -> None:
    """What carries the tags of a run that has ended, and is old enough. It says so in its metric, whose alarm goes."""
    detail = bench.ended(bench.start("orphaned"))
    run = detail["run"]["run"]
    tags = names.fleet_tags(
        names.tags(bench.deployment.name, run, names.cell_id(1), detail["run"]["expires_at"]), "drivers"
    )
    security = names.security_group_name(run, names.cell_id(1))
    fleet = names.fleet_name(run, names.cell_id(1), "drivers")
    make(bench, fleet, tags, security=security, profile=site(bench)[1])
    lone(bench, tags)
    bench.deployment.reap()
    assert eventually(lambda: _reaper_finds(bench)[:1] or None, LONG) == [0], "it is too young: somebody may be at work"
    assert bench.left(run) != NOTHING
    (bench.orders / "ahead").write_text(str(MINUTES * 60))
    try:
        bench.deployment.reap()
        finds = eventually(lambda: [n for n in _reaper_finds(bench) if n] or None, LONG)
        assert finds[0] >= 6, "the group, its template, its security group; a volume and two groups of no instance"
        eventually(lambda: bench.left(run) == NOTHING or None, LONG)
    finally:
        (bench.orders / "ahead").unlink()
    assert {kind: thing.exists(bench) for kind, thing in lookalikes.items()} == dict.fromkeys(lookalikes, True)
    _assert_alarm(bench, finds[0])


def _reaper_finds(bench: Bench) -> list[float]:
    """What the reaper has said in its metric, call by call."""
    return _counts(bench, "ReaperFinds")


def _assert_alarm(bench: Bench, finds: float) -> None:
    """CloudWatch would make a metric of that line: with it, the deployment's alarm goes, and tells its topic."""
    cloudwatch = bench.account.client("cloudwatch")
    (line,) = [one for one in bench.deployment.metric_lines("Reaper") if one.get("ReaperFinds") == [finds]][:1]
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    alarms = [one for page in cloudwatch.get_paginator("describe_alarms").paginate() for one in page["MetricAlarms"]]
    (alarm,) = [one for one in alarms if one["AlarmName"] == f"{bench.deployment.name}-ReaperFound"]
    assert (alarm["Namespace"], alarm["MetricName"]) == (directive["Namespace"], "ReaperFinds")
    assert alarm["Dimensions"] == [{"Name": name, "Value": line[name]} for name in directive["Dimensions"][0]]
    assert alarm["AlarmActions"] == [bench.deployment.outputs["WarningTopicArn"]]
    assert alarm["ComparisonOperator"] in ("GreaterThanThreshold", "GreaterThanOrEqualToThreshold")
    assert finds > alarm["Threshold"] >= 0


def protect(bench: Bench, group: str) -> dict[str, str]:
    """Tags a group ``troop:protected``; the tag."""
    tag = {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": PROTECTED_TAG, "Value": "by ann"}
    groups = bench.account.client("autoscaling")
    groups.create_or_update_tags(Tags=[{**tag, "PropagateAtLaunch": False}])
    return tag


def test_all_our_tags_remove_nothing_of_another_owner_s_and_what_is_protected_stays(bench: Bench) -> None:
    """Through all of a run, from its phases to the reaper's rounds after its end."""
    ec2, groups = bench.account.client("ec2"), bench.account.client("autoscaling")
    run = bench.start("spoofed", orders={"pause": {"step": "release", "before": ""}})
    bench.await_there(run)
    (own,) = bench.left(run)["groups"]
    nodes = bench.left(run)["instances"]
    expires = bench.detail(run)["run"]["expires_at"]
    tags = names.fleet_tags(names.tags(bench.deployment.name, run, names.cell_id(1), expires), "drivers")
    theirs = make(bench, "payments-prod", tags)
    unknown = make(bench, "billing-prod", tags | {RUN_TAG: "x"})
    volume = ec2.create_volume(
        Size=8,
        AvailabilityZone=subnet_of(bench)["AvailabilityZone"],
        TagSpecifications=[
            {"ResourceType": "volume", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )["VolumeId"]
    tag = protect(bench, own)
    bench.let_go(run)
    detail = bench.ended(run)
    left = {(one["kind"], one["name"]): one["reason"] for one in detail["run"]["left_behind"]}
    assert {theirs.group, theirs.instance, volume} <= {name for _, name in left}, "the run has ended, and names them"
    assert PROTECTED_TAG in left["auto-scaling-group", own]
    assert theirs.exists(bench)
    assert set(nodes) <= set(bench.left(run)["instances"])
    (bench.orders / "ahead").write_text(str(MINUTES * 60))
    try:
        bench.deployment.reap()
        counted = eventually(lambda: _counts(bench, "LeftBehind")[-1:] or None, LONG)
        assert counted[0] > len(left), "those of the run that nobody knows, too"
        assert set(nodes) <= set(bench.left(run)["instances"])
        groups.delete_tags(Tags=[tag])
        bench.deployment.reap()
        eventually(lambda: own not in bench.left(run)["groups"] or None, LONG)
        eventually(lambda: not set(nodes) & set(bench.left(run)["instances"]) or None, LONG)
    finally:
        (bench.orders / "ahead").unlink()
    assert theirs.exists(bench)
    assert unknown.exists(bench)
    assert volume in bench.left(run)["volumes"]
    for thing in (theirs, unknown):
        groups.delete_auto_scaling_group(AutoScalingGroupName=thing.group, ForceDelete=True)
        ec2.delete_launch_template(LaunchTemplateId=thing.template)
        ec2.delete_tags(Resources=[thing.security_group], Tags=[{"Key": RUN_TAG}])
    ec2.delete_volume(VolumeId=volume)


def _counts(bench: Bench, metric: str) -> list[float]:
    """What the reaper has said in a metric, call by call."""
    return [line[metric][0] for line in bench.deployment.metric_lines("Reaper") if metric in line]


def test_a_run_that_is_stopped_while_it_launches(bench: Bench, lookalikes: dict[str, Thing]) -> None:
    """The step is just about to create something, and does so long after the run was closed: teardown waits for it."""
    orders = {"pause": {"step": "launch", "before": "CreateSecurityGroup"}}
    run = bench.start("stopped-in-launch", orders=orders)
    bench.await_there(run)
    lone(bench, names.tags(bench.deployment.name, run, names.cell_id(2), "2099-01-01T00:00:00Z"))
    bench.stop(run)
    bench.stop(run)  # repeated it is harmless

    def is_waiting() -> bool | None:
        assert "ended_at" not in bench.item(run, "run")
        return True if bench.left(run) == NOTHING and bench.teardown_steps(run) > ENOUGH else None

    eventually(is_waiting, LONG)
    bench.let_go(run)
    detail = bench.ended(run)
    assert_nothing_left(bench, run)
    assert (detail["run"]["status"], {cell["status"] for cell in detail["cells"]}) == ("STOPPED", {"STOPPED"})
    assert "stopped by arn:" in detail["run"]["reason"]
    assert bench.execution(run)["status"] == "ABORTED"
    created_by_kind = {
        one["kind"]: one["created_at"] for one in detail["resources"] if one["name"].endswith(names.cell_id(1))
    }
    assert created_by_kind["security-group"] > detail["run"]["closed_at"]
    assert not any(one["created_at"] for one in detail["resources"] if one["kind"] == "auto-scaling-group")
    assert all(thing.exists(bench) for thing in lookalikes.values())


def test_a_group_that_somebody_deletes_while_it_measures(bench: Bench) -> None:
    """Beside another run, to which nothing happens."""
    orders = {"pause": {"step": "release", "before": ""}}
    run, other = bench.start("deleted-by-hand", orders=orders), bench.start("beside-deleted", {"drivers": 2})
    bench.await_there(run)
    (group,) = bench.left(run)["groups"]
    bench.account.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    bench.let_go(run)
    detail = bench.ended(run)
    assert_nothing_left(bench, run)
    assert detail["run"]["status"] == "FAILED"
    assert detail["cells"][0]["status"] == "INVALID"
    assert "lost during the phase measure" in detail["cells"][0]["reason"]
    assert bench.ended(other)["run"]["status"] == "SUCCEEDED"
    assert_nothing_left(bench, other)


def test_nothing_but_the_lookalikes_carries_our_tag(bench: Bench, lookalikes: dict[str, Thing]) -> None:
    leftovers = left(bench.account, {DEPLOYMENT_TAG: bench.deployment.name, CELL_TAG: names.cell_id(1)})
    assert leftovers["groups"] == [lookalikes["without the run's tag"].group]


def test_a_fleet_that_cannot_be_launched(bench: Bench) -> None:
    bench.account.make_scarce(SCARCE, 1, "VcpuLimitExceeded")
    detail = bench.ended(bench.start("scarce", {"drivers": 3}, fleets={"drivers": {"instance_type": SCARCE}}))
    assert_nothing_left(bench, detail["run"]["run"])
    (cell,) = detail["cells"]
    assert cell["status"] == "FAILED"
    assert "of 3 nodes in the fleet drivers, only 1 could be launched" in cell["reason"]
    assert "vCPU" in cell["reason"]


def test_a_fleet_whose_instances_die_while_they_are_pending(bench: Bench) -> None:
    """The reason is known at once: nothing waits for boot_timeout."""
    bench.account.make_scarce(DYING, 1, "Client.InvalidKMSKey.InvalidState")
    fleets = {"drivers": {"instance_type": DYING, "boot_timeout": "2h"}}
    detail = bench.ended(bench.start("dying", {"drivers": 3}, fleets=fleets, expires_after="8h"))
    assert_nothing_left(bench, detail["run"]["run"])
    (cell,) = detail["cells"]
    assert cell["status"] == "FAILED"
    assert "of 3 nodes in the fleet drivers, only 1 could be launched" in cell["reason"]
    assert "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state" in cell["reason"]


def test_no_role_may_do_what_it_never_does(bench: Bench) -> None:
    """Those of the half that runs benchmarks; of nodes, and of the API, test_bench_smoke.py tells."""
    cuts = bench.cuts("roles", after=["Create"])
    run = bench.start("roles", {"mute": 1}, cuts, fleets={"mute": {"placement": "spread"}})
    eventually(lambda: True if bench.item(run, CELL).get("phase") == {"S": names.BOOT} else None, LONG)
    bench.backdate(run, CELL, "phases.boot")
    bench.ended(run)
    spot = {"purchase": "spot", "spot_timeout": "5m"}
    bench.account.make_scarce(SCARCE_ON_SPOT, 1, "MaxSpotInstanceCountExceeded", "spot")
    backed = bench.start("roles-backed", {"drivers": 2}, fleets={"drivers": {**spot, "instance_type": SCARCE_ON_SPOT}})
    again = bench.start("roles-again", {TAKEN_ONCE: 1}, fleets={TAKEN_ONCE: spot}, attempts=2, budget=1000)
    replaced = bench.start("roles-replaced", {"broken-drivers": 2})
    bench.ended(bench.start("roles-well"))
    assert {bench.ended(run)["run"]["status"] for run in (backed, again, replaced)} == {"SUCCEEDED"}
    assert len(bench.places("roles", "cut")) == 4, "what was made before is found again"
    used: dict[str, set[str]] = {}
    for entry in bench.account.decisions():
        if entry["decision"] == "Allow":
            used.setdefault(role_of(entry["caller"]), set()).add(entry["action"].lower())
    unused = {}
    for role, actions in allowed(bench.deployment).items():
        if any(part in role for part in OURS):
            idle = {action for action in actions if action.lower() not in used.get(role, set())} - UNOBSERVED
            idle -= ONLY_OF_CHANGES if "FunctionsReportRole" in role else set()
            unused[role] = {action for action in idle if not is_of_queues(action)}
    assert len(unused) == len(OURS)
    assert {role: idle for role, idle in unused.items() if idle} == {}


def test_nothing_was_refused_by_iam(bench: Bench) -> None:
    def place(entry: dict[str, Any]) -> tuple[str, str, str]:
        return entry["caller"], entry["action"], entry["resource"]

    decisions = [e for e in bench.account.decisions() if "Fleets" in e["caller"]]
    # Two teardowns may delete the same thing. The second finds none of the tags that would have allowed it.
    allowed = {place(e) for e in decisions if e["decision"] == "Allow" and ":Delete" in e["action"]}
    assert [e for e in decisions if e["decision"] != "Allow" and place(e) not in allowed] == []
