"""A fleet's requests are tried, and a node is launched and ended."""

from __future__ import annotations

from typing import Any, NoReturn

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from cli.prove.ledger import PREFIX
from cli.prove.probes import Probes


@pytest.fixture
def launches(account: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Adds to moto what it lacks; returns the placement groups."""
    subnets = [one["SubnetId"] for one in account.client("ec2").describe_subnets()["Subnets"]]
    monkeypatch.setattr(Probes, "_resources", lambda *_: subnets)
    placements, real = dict[str, Any](), BaseClient._make_api_call  # type: ignore[attr-defined]

    def missing(code: str) -> NoReturn:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "Delete")

    def call(self: Any, operation: str, parameters: Any) -> Any:
        if operation == "CreatePlacementGroup":  # moto has none
            placements[parameters["GroupName"]] = parameters
            return {}
        if operation == "DeletePlacementGroup":
            return placements.pop(parameters["GroupName"], None) or missing("InvalidPlacementGroup.Unknown")
        if operation == "DeleteLaunchTemplate" and "never" in parameters["LaunchTemplateName"]:  # moto has another code
            missing("InvalidLaunchTemplateName.NotFoundException")
        if operation == "CreateLaunchTemplate":  # moto has no placement groups, or looks for them after other tests
            data = {key: value for key, value in parameters["LaunchTemplateData"].items() if key != "Placement"}
            parameters = parameters | {"LaunchTemplateData": data}
        answer = real(self, operation, parameters)
        for reservation in answer["Reservations"] if operation == "DescribeInstances" else ():
            for instance in reservation["Instances"]:
                instance |= {"InstanceLifecycle": "spot", "Placement": {"GroupName": next(iter(placements), "")}}
        for volume in answer["Volumes"] if operation == "DescribeVolumes" else ():
            volume["VolumeInitializationRate"] = 100
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return placements


def test_a_fleets_requests_are_tried_with_a_group_of_size_zero(
    probes: Probes, account: boto3.Session, launches: dict[str, Any]
) -> None:
    ec2, scaling = account.client("ec2"), account.client("autoscaling")
    outcomes = probes.launch_requests()
    assert {one["status"] for one in outcomes} == {"done"}, outcomes
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (group["MaxSize"], group["DesiredCapacity"]) == (0, 0)
    assert group["MixedInstancesPolicy"]["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 0
    (template,) = ec2.describe_launch_templates()["LaunchTemplates"]
    names = {group["AutoScalingGroupName"], template["LaunchTemplateName"], *launches}
    assert len(names) == 3
    assert all(name.startswith(PREFIX) for name in names)
    assert probes.ledger.remove_all()
    assert not launches
    assert not scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert not ec2.describe_launch_templates()["LaunchTemplates"]
    assert not ec2.describe_instances()["Reservations"]
    for kind in ("placement group", "launch template", "group", "bucket"):
        probes.ledger.add(kind, f"{PREFIX}never-created")
    assert probes.ledger.remove_all(), "a missing thing is no error"


def test_one_node_is_launched_and_ended(probes: Probes, account: boto3.Session, launches: dict[str, Any]) -> None:
    outcomes = probes.launch()
    assert [one["status"] for one in outcomes] == ["done"] * 9, outcomes
    scaling = account.client("autoscaling")
    (action,) = scaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    assert (action["MaxSize"], action["DesiredCapacity"]) == (0, 0), "the node ends even if this command is killed"
    assert probes.ledger.remove_all()
    assert _running(account) == []


def test_a_node_whose_step_fails_is_removed_before_its_placement_group(
    probes: Probes, account: boto3.Session, launches: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.prove.launch_probes._INITIALIZATION_RATE", 200)
    failed = probes.launch()[-1]
    assert failed == {"step": "volume with an initialization rate", "status": "the volumes have the rates {100}"}
    assert len(_running(account)) == 1
    assert probes.ledger.remove_all()
    assert _running(account) == []
    assert not launches


def _running(account: boto3.Session) -> list[str]:
    reservations = account.client("ec2").describe_instances()["Reservations"]
    instances = [instance for reservation in reservations for instance in reservation["Instances"]]
    return [one["InstanceId"] for one in instances if one["State"]["Name"] != "terminated"]
