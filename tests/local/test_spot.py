"""Spot, as the account plays it: bought by a policy, scarce by itself, and taken back with a notice."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from agent.spot import Metadata
from local.launcher import LocalAccount
from tests.patience import PATIENCE, eventually

from .helpers import Fleet, World, allow, unique
from .test_launching import EC2, TAG, Launcher, launching, templates
from .test_metadata import Node

__all__ = ["templates"]

KIND = "c6g.12xlarge"
POLICY = {
    "InstancesDistribution": {
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
    }
}


def spot(template: str, **more: Any) -> dict[str, Any]:
    """A group's policy."""
    named = {"LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"}}
    return {"MixedInstancesPolicy": {**deepcopy(POLICY), "LaunchTemplate": named}, **more}


def failures(fleet: Fleet, group: str) -> list[str]:
    activities = fleet.activities(group)
    return [one["StatusMessage"] for one in activities if one["StatusCode"] == "Failed"]


def lifecycles(fleet: Fleet, group: str) -> list[str | None]:
    return [fleet.instance(one).get("InstanceLifecycle") for one in fleet.members(group)]


def test_a_group_of_spot_stays_one_when_its_size_is_changed(fleet: Fleet) -> None:
    group = fleet.group(1, **spot(fleet.template(None)))
    fleet.groups.update_auto_scaling_group(AutoScalingGroupName=group, MaxSize=3, DesiredCapacity=3)
    assert lifecycles(fleet, group) == ["spot"] * 3
    fleet.groups.update_auto_scaling_group(AutoScalingGroupName=group, MaxSize=2, DesiredCapacity=2)
    assert lifecycles(fleet, group) == ["spot"] * 2
    description = fleet.describe(group)
    assert (description["MaxSize"], description["DesiredCapacity"]) == (2, 2)
    assert description["MixedInstancesPolicy"]["InstancesDistribution"]["SpotAllocationStrategy"] == (
        "price-capacity-optimized"
    )


def test_spot_can_be_scarce_while_there_is_enough_on_demand(fleet: Fleet) -> None:
    fleet.account.make_scarce(KIND, left=1, reason="MaxSpotInstanceCountExceeded", market="spot")
    template = fleet.template(None, InstanceType=KIND)
    group = fleet.group(3, **spot(template))
    assert lifecycles(fleet, group) == ["spot"]
    assert "MaxSpotInstanceCountExceeded" in failures(fleet, group)[0]
    other = fleet.group(2, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})
    assert lifecycles(fleet, other) == [None, None]


def test_spot_comes_back_to_a_group_that_lacks_it(fleet: Fleet) -> None:
    kind = "c6g.8xlarge"
    fleet.account.make_scarce(kind, left=1, reason="UnfulfillableCapacity", market="spot")
    group = fleet.group(2, **spot(fleet.template(None, InstanceType=kind)))
    (lost,) = fleet.members(group)
    fleet.account.interrupt(lost, 0)
    eventually(lambda: not fleet.members(group))
    fleet.account.make_scarce(kind, left=5, market="spot")
    assert lifecycles(fleet, group) == ["spot"] * 2


def test_a_maximum_price_below_that_of_spot_gets_nothing(fleet: Fleet) -> None:
    template = fleet.template(None, InstanceType="c7g.large")
    groups = {}
    for price in ("0.001", "0.05"):
        bought = spot(template)
        bought["MixedInstancesPolicy"]["InstancesDistribution"] |= {"SpotMaxPrice": price}
        groups[price] = fleet.group(1, **bought)
    assert lifecycles(fleet, groups["0.05"]) == ["spot"]
    assert fleet.members(groups["0.001"]) == {}
    assert "SpotMaxPriceTooLow" in failures(fleet, groups["0.001"])[0]


def test_the_launch_of_a_spot_group_needs_the_same_rights(
    world: World, fleet: Fleet, templates: dict[str, str]
) -> None:
    for left_out, expected in ((), "allowed"), (("template",), "AccessDenied"), (("made",), "AccessDenied"):
        role = Launcher(world, fleet, *launching(*left_out), allow("ec2:Describe*", f"{EC2}*"))
        parameters = spot(templates["tagged"], MinSize=0, MaxSize=0, VPCZoneIdentifier=fleet.subnets[0])
        try:
            role.groups.create_auto_scaling_group(
                AutoScalingGroupName=unique("group"), Tags=[{**TAG, "PropagateAtLaunch": True}], **parameters
            )
            answer = "allowed"
        except role.groups.exceptions.ClientError as error:
            answer = error.response["Error"]["Code"]
        assert answer == expected, left_out


@pytest.fixture
def node(world: World, fleet: Fleet) -> Node:
    return Node(world, fleet, spot, script='#!/bin/sh\nenv > environment\ntouch "$READY_FILE"\n')


def test_spot_instance_has_a_notice_before_its_interruption(account: LocalAccount, fleet: Fleet, node: Node) -> None:
    token = node.token()
    seen = Metadata(node.environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"])  # as the agent does

    def metadata(path: str) -> str:
        return node.ask(f"meta-data/{path}", token=token)

    action, rebalance = "spot/instance-action", "events/recommendations/rebalance"
    assert metadata("instance-life-cycle") == "spot"
    assert (metadata(action), metadata(rebalance)) == ("404", "404")
    account.recommend_rebalance(node.id)
    assert json.loads(metadata(rebalance))["noticeTime"].endswith("Z")
    assert metadata(action) == "404"
    account.interrupt(node.id, PATIENCE)
    assert json.loads(metadata(action))["action"] == "terminate"
    assert json.loads(seen.read(f"meta-data/{action}") or "") == json.loads(metadata(action))
    assert seen.read("meta-data/instance-life-cycle") == "spot"
    assert seen.read("meta-data/there-is-none") is None
    assert fleet.instance(node.id)["State"]["Name"] == "running"
    account.interrupt(node.id, 0)
    reasons = {}

    def is_over() -> bool:
        instance = fleet.instance(node.id)
        reasons[instance["State"]["Name"]] = (instance.get("StateReason") or {}).get("Code")
        return bool(instance["State"]["Name"] == "terminated")

    eventually(is_over)
    reasons.pop("running", None)
    assert reasons == dict.fromkeys(("shutting-down", "terminated"), "Server.SpotInstanceTermination")
