"""What people do to runs meanwhile, what looks like a run's and is not, and what the reaper finds."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.benches import INSTANCE_TYPE, LONG, NOTHING, TAKEN_ONCE, Bench, assert_nothing_left, left
from tests.e2e.conftest import eventually
from tests.e2e.roles import UNOBSERVED, allowed, role_of
from troop.bench import names
from troop.tags import CELL_TAG, DEPLOYMENT_TAG, RUN_TAG

CELL = "cell#c001"
SCARCE, SCARCE_ON_SPOT, DYING = "c7g.xlarge", "m7g.4xlarge", "r7g.xlarge"
OURS = (
    *("BenchmarksBenchmarkRole", "BenchmarksTeardownRole", "ReaperScheduleRole"),
    *("FunctionsLaunchRole", "FunctionsCellRole", "FunctionsTeardownRole", "FunctionsReportRole"),
    "FunctionsReaperRole",
)
"""The roles of the half that runs benchmarks, but its nodes'."""

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
        found = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[self.group])["AutoScalingGroups"]
        templates = ec2.describe_launch_templates(LaunchTemplateIds=[self.template])["LaunchTemplates"]
        security = ec2.describe_security_groups(GroupIds=[self.security_group])["SecurityGroups"]
        return state == "running" and all(len(one) == 1 for one in (found, templates, security))


def make(bench: Bench, name: str, tags: dict[str, str]) -> Thing:
    """Something named like a cell's own, with these tags and no others."""
    ec2, groups = bench.account.client("ec2"), bench.account.client("autoscaling")
    subnets = ec2.describe_subnets(Filters=[{"Name": "tag:troop:deployment", "Values": [bench.deployment.name]}])
    subnet = (subnets["Subnets"] or ec2.describe_subnets()["Subnets"])[0]
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]

    def specified(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": listed}] if listed else []

    security = ec2.create_security_group(
        GroupName=name, Description="by hand", VpcId=subnet["VpcId"], TagSpecifications=specified("security-group")
    )["GroupId"]
    data = {
        "ImageId": "ami-12345678",
        "InstanceType": INSTANCE_TYPE,
        "SecurityGroupIds": [security],
        "UserData": base64.b64encode(b"#!/bin/sh\n").decode(),
        "TagSpecifications": [*specified("instance"), *specified("volume")],
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


@pytest.fixture(scope="module")
def lookalikes(bench: Bench) -> Iterator[dict[str, Thing]]:
    """Beside a run that has ended: everything but this deployment's tag and the run's together."""
    told = bench.ended(bench.start("beside"))
    run, cell, ours = told["run"]["run"], names.cell_id(1), bench.deployment.name
    full = names.of_fleet(names.tags(ours, run, cell, told["run"]["expires_at"]), "drivers")
    kinds = {
        "of another deployment": full | {DEPLOYMENT_TAG: OTHERS},
        "of a deployment whose name begins like ours": full | {DEPLOYMENT_TAG: f"{ours}2"},
        "without the deployment's tag": {key: value for key, value in full.items() if key != DEPLOYMENT_TAG},
        "without the run's tag": {key: value for key, value in full.items() if key != RUN_TAG},
        "without any tags": {},
    }
    made = {
        what: make(bench, names.fleet_name(run, cell, f"drivers{number}"), tags)
        for number, (what, tags) in enumerate(kinds.items())
    }
    yield made
    groups = bench.account.client("autoscaling")
    for thing in made.values():
        groups.delete_auto_scaling_group(AutoScalingGroupName=thing.group, ForceDelete=True)


def lone(bench: Bench, tags: dict[str, str]) -> None:
    """A volume and a security group that nothing uses, in the cell after the first."""
    ec2, tags = bench.account.client("ec2"), tags | {CELL_TAG: names.cell_id(2)}
    subnet = ec2.describe_subnets()["Subnets"][0]

    def tagged(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]

    ec2.create_volume(Size=8, AvailabilityZone=subnet["AvailabilityZone"], TagSpecifications=tagged("volume"))
    ec2.create_security_group(
        GroupName=f"lone-{tags[RUN_TAG]}",
        Description="by hand",
        VpcId=subnet["VpcId"],
        TagSpecifications=tagged("security-group"),
    )


def test_the_reaper_removes_an_orphan_and_nothing_of_anybody_elses(bench: Bench, lookalikes: dict[str, Thing]) -> None:
    """What carries the tags of a run that has ended, and is old enough. It says so in its metric, whose alarm goes."""
    told = bench.ended(bench.start("orphaned"))
    run = told["run"]["run"]
    tags = names.of_fleet(
        names.tags(bench.deployment.name, run, names.cell_id(1), told["run"]["expires_at"]), "drivers"
    )
    make(bench, names.fleet_name(run, names.cell_id(1), "drivers"), tags)
    lone(bench, tags)
    bench.deployment.reap()
    assert eventually(lambda: _found(bench)[:1] or None, LONG) == [0], "it is too young: somebody may be at work"
    assert bench.left(run) != NOTHING
    (bench.orders / "ahead").write_text(str(MINUTES * 60))
    try:
        bench.deployment.reap()
        finds = eventually(lambda: [n for n in _found(bench) if n] or None, LONG)
        assert finds[0] >= 5, "the group, its template, its security group; a volume and another security group"
        eventually(lambda: bench.left(run) == NOTHING or None, LONG)
    finally:
        (bench.orders / "ahead").unlink()
    assert {what: thing.exists(bench) for what, thing in lookalikes.items()} == dict.fromkeys(lookalikes, True)
    _assert_alarm(bench, finds[0])


def _found(bench: Bench) -> list[float]:
    """What the reaper has said in its metric, call by call."""
    lines = bench.deployment.metric_lines("Reaper")
    return [line["ReaperFinds"][0] for line in lines if "ReaperFinds" in line]


def _assert_alarm(bench: Bench, finds: float) -> None:
    """CloudWatch would make a metric of that line: with it, the deployment's alarm goes, and tells its topic."""
    cloudwatch = bench.account.client("cloudwatch")
    (line,) = [one for one in bench.deployment.metric_lines("Reaper") if one.get("ReaperFinds") == [finds]][:1]
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    alarms = [one for page in cloudwatch.get_paginator("describe_alarms").paginate() for one in page["MetricAlarms"]]
    (alarm,) = [one for one in alarms if one["AlarmName"] == f"{bench.deployment.name}-ReaperFound"]
    assert (alarm["Namespace"], alarm["MetricName"]) == (directive["Namespace"], "ReaperFinds")
    assert alarm["Dimensions"] == [{"Name": name, "Value": line[name]} for name in directive["Dimensions"][0]]
    assert alarm["AlarmActions"] == [bench.deployment.outputs["LookSoonTopicArn"]]
    assert alarm["ComparisonOperator"] in ("GreaterThanThreshold", "GreaterThanOrEqualToThreshold")
    assert finds > alarm["Threshold"] >= 0


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
    told = bench.ended(run)
    assert_nothing_left(bench, run)
    assert (told["run"]["status"], {cell["status"] for cell in told["cells"]}) == ("STOPPED", {"STOPPED"})
    assert "stopped by arn:" in told["run"]["reason"]
    assert bench.execution(run)["status"] == "ABORTED"
    made = {one["kind"]: one["created_at"] for one in told["resources"] if one["name"].endswith(names.cell_id(1))}
    assert made["security-group"] > told["run"]["closed_at"]
    assert not any(one["created_at"] for one in told["resources"] if one["kind"] == "auto-scaling-group")
    assert all(thing.exists(bench) for thing in lookalikes.values())


def test_a_group_that_somebody_deletes_while_it_measures(bench: Bench) -> None:
    """Beside another run, to which nothing happens."""
    orders = {"pause": {"step": "release", "before": ""}}
    run, other = bench.start("deleted-by-hand", orders=orders), bench.start("beside-deleted", {"drivers": 2})
    bench.await_there(run)
    (group,) = bench.left(run)["groups"]
    bench.account.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    bench.let_go(run)
    told = bench.ended(run)
    assert_nothing_left(bench, run)
    assert told["run"]["status"] == "FAILED"
    assert told["cells"][0]["status"] == "INVALID"
    assert "lost during the phase measure" in told["cells"][0]["reason"]
    assert bench.ended(other)["run"]["status"] == "SUCCEEDED"
    assert_nothing_left(bench, other)


def test_nothing_but_the_lookalikes_carries_our_tag(bench: Bench, lookalikes: dict[str, Thing]) -> None:
    found = left(bench.account, {DEPLOYMENT_TAG: bench.deployment.name, CELL_TAG: names.cell_id(1)})
    assert found["groups"] == [lookalikes["without the run's tag"].group]


def test_a_fleet_that_cannot_be_launched(bench: Bench) -> None:
    bench.account.make_scarce(SCARCE, 1, "VcpuLimitExceeded")
    told = bench.ended(bench.start("scarce", {"drivers": 3}, fleets={"drivers": {"instance_type": SCARCE}}))
    assert_nothing_left(bench, told["run"]["run"])
    (cell,) = told["cells"]
    assert cell["status"] == "FAILED"
    assert "of 3 nodes in the fleet drivers, 1 could be launched" in cell["reason"]
    assert "vCPU" in cell["reason"]


def test_a_fleet_whose_instances_die_while_they_are_pending(bench: Bench) -> None:
    """The reason is known at once: nothing waits for boot_timeout."""
    bench.account.make_scarce(DYING, 1, "Client.InvalidKMSKey.InvalidState")
    fleets = {"drivers": {"instance_type": DYING, "boot_timeout": "2h"}}
    told = bench.ended(bench.start("dying", {"drivers": 3}, fleets=fleets, expires_after="8h"))
    assert_nothing_left(bench, told["run"]["run"])
    (cell,) = told["cells"]
    assert cell["status"] == "FAILED"
    assert "of 3 nodes in the fleet drivers, 1 could be launched" in cell["reason"]
    assert "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state" in cell["reason"]


def test_no_role_may_do_what_it_never_does(bench: Bench) -> None:
    """Those of the half that runs benchmarks; of nodes, and of the API, test_bench_smoke.py tells."""
    run = bench.start("roles", {"mute": 1}, bench.cuts("roles", after=["Create"]))
    eventually(lambda: True if bench.item(run, CELL).get("phase") == {"S": names.BOOT} else None, LONG)
    bench.backdate(run, CELL, "phases.boot")
    bench.ended(run)
    spot = {"purchase": "spot", "spot_timeout": "5m"}
    bench.account.make_scarce(SCARCE_ON_SPOT, 1, "MaxSpotInstanceCountExceeded", "spot")
    backed = bench.start("roles-backed", {"drivers": 2}, fleets={"drivers": {**spot, "instance_type": SCARCE_ON_SPOT}})
    again = bench.start("roles-again", {TAKEN_ONCE: 1}, fleets={TAKEN_ONCE: spot}, attempts=2, budget=1000)
    bench.ended(bench.start("roles-well"))
    assert [bench.ended(run)["run"]["status"] for run in (backed, again)] == ["SUCCEEDED", "SUCCEEDED"]
    assert len(bench.places("roles", "cut")) == 3, "what was made before is found again"
    used: dict[str, set[str]] = {}
    for entry in bench.account.decisions():
        if entry["decision"] == "Allow":
            used.setdefault(role_of(entry["caller"]), set()).add(entry["action"].lower())
    unused = {}
    for role, actions in allowed(bench.deployment).items():
        if any(part in role for part in OURS):
            idle = {action for action in actions if action.lower() not in used.get(role, set())} - UNOBSERVED
            unused[role] = idle
    assert len(unused) == len(OURS)
    assert {role: idle for role, idle in unused.items() if idle} == {}


def test_nothing_was_refused_by_iam(bench: Bench) -> None:
    assert [e for e in bench.account.decisions() if e["decision"] != "Allow" and "Fleets" in e["caller"]] == []
