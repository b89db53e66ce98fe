"""Adapters where AWS answers otherwise than one might think."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import ClientError

from tests.unit.account.account import OVERDUE, Account, calls, changing, refusing
from tests.unit.account.asking import ask
from tests.unit.chaos.build import event
from troop.chaos.aws import groups
from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.event_items import from_item, to_item
from troop.chaos.aws.terminator import Terminator
from troop.chaos.events import Status, Watch
from troop.chaos.groups import Group
from troop.faults.fault import Answer
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import plain, typed


def test_groups_are_read_page_by_page_and_by_name(account: Account) -> None:
    for number in range(120):
        account.group(f"g{number:03d}", size=0)
    account.group("tagged", size=2, tags={"troop:unit": "u", "other": ""})
    assert len(groups.read_groups(account.autoscaling)) == 121
    (tagged,) = groups.read_groups(account.autoscaling, ["tagged", "missing"])
    assert tagged.tags == {"troop:unit": "u", "other": ""}
    assert tagged.desired == tagged.capacity_in_service == 2
    assert {i.zone for i in tagged.instances} <= {"eu-central-1a", "eu-central-1b"}
    many = [f"g{number:03d}" for number in range(120)]
    assert [g.name for g in groups.read_groups(account.autoscaling, many)] == many
    assert groups.read_groups(account.autoscaling, []) == []


def test_weights_protection_and_health_as_the_service_spells_them(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web", size=1)

    def spell(answer: Any) -> None:
        instance = answer["AutoScalingGroups"][0]["Instances"][0]
        instance |= {"WeightedCapacity": "4", "ProtectedFromScaleIn": True, "HealthStatus": "HEALTHY"}

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", spell)):
        (web,) = groups.read_groups(account.autoscaling, ["web"])
    (instance,) = web.instances
    assert (instance.weight, instance.scale_in_protected, instance.serving) == (4, True, True)


def test_a_group_being_deleted_is_gone(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    def delete(answer: Any) -> None:
        answer["AutoScalingGroups"][0]["Status"] = "Delete in progress"

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", delete)):
        assert groups.read_groups(account.autoscaling, ["web"]) == []


@pytest.mark.parametrize(
    ("status", "under_way"),
    [
        ("Pending", True),
        ("InProgress", True),
        ("Cancelling", True),
        ("RollbackInProgress", True),
        ("Baking", True),
        ("Successful", False),
        ("Failed", False),
        ("Cancelled", False),
        ("RollbackFailed", False),
        ("RollbackSuccessful", False),
    ],
)
def test_every_status_of_a_refresh_is_known(account: Account, status: str, under_way: bool) -> None:
    enum = client("autoscaling").meta.service_model.shape_for("InstanceRefreshStatus").enum
    assert status in enum
    assert len(enum) == 10
    account.refreshes["web"] = status
    assert groups.refreshing(account.autoscaling, ["web"]) == (frozenset({"web"}) if under_way else frozenset())


def test_a_group_that_vanished_counts_as_refreshing_and_other_errors_count(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "AutoScalingGroup name not found - AutoScalingGroup web not found"
    with calls(monkeypatch, refusing("DescribeInstanceRefreshes", "ValidationError", message=missing)):
        assert groups.refreshing(account.autoscaling, ["web"]) == {"web"}
    denied = refusing("DescribeInstanceRefreshes", "AccessDenied")
    with calls(monkeypatch, denied), pytest.raises(ClientError):
        groups.refreshing(account.autoscaling, ["web"])


def test_lifecycle_states_that_mean_leaving_are_the_services_own() -> None:
    states = client("autoscaling").meta.service_model.shape_for("LifecycleState").enum
    assert {s for s in states if s.startswith(groups.LEAVING)} == {
        "Terminating",
        "Terminating:Wait",
        "Terminating:Proceed",
        "Terminating:Retained",
        "Terminated",
    }


def test_a_deleted_target_group_has_no_healthy_targets(account: Account) -> None:
    arn = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/gone/0123456789abcdef"
    seen = Group("web", 1, target_groups=(arn,), load_balancers=("gone",))
    assert Balancers(client).healthy(seen) == {arn: frozenset(), "gone": frozenset()}


def test_who_is_healthy_behind_a_classic_load_balancer(account: Account) -> None:
    listener = {"Protocol": "HTTP", "LoadBalancerPort": 80, "InstancePort": 80}
    client("elb").create_load_balancer(
        LoadBalancerName="old", Listeners=[listener], AvailabilityZones=["eu-central-1a", "eu-central-1b"]
    )
    account.group("web", size=2, LoadBalancerNames=["old"])
    (seen,) = groups.read_groups(account.autoscaling)
    ill, well = account.instances("web")
    account.ec2.stop_instances(InstanceIds=[ill])
    assert seen.load_balancers == ("old",)
    assert Balancers(client).healthy(seen) == {"old": frozenset([well])}


LATTICE = "arn:aws:vpc-lattice:eu-central-1:123456789012:targetgroup/tg-0123456789abcdef0"


def test_who_is_healthy_behind_vpc_lattice(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = client("vpc-lattice").meta.service_model.shape_for("TargetStatus").enum

    def answer(number: int, operation: str, call: Callable[[], Any]) -> Any:
        assert operation == "ListTargets"
        return {"items": [{"id": status, "status": status} for status in statuses]}

    with calls(monkeypatch, answer):
        healthy = Balancers(client).healthy(Group("web", 1, lattice_groups=(LATTICE,)))
    assert healthy == {LATTICE: frozenset({"HEALTHY", "UNUSED", "UNAVAILABLE"})}


def test_both_fields_for_traffic_sources_of_a_group_are_read(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    arn = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/web/0123456789abcdef"

    def add_traffic(answer: Any) -> None:
        answer["AutoScalingGroups"][0] |= {
            "TargetGroupARNs": [arn],
            "TrafficSources": [
                {"Identifier": arn, "Type": "elbv2"},
                {"Identifier": f"{arn}0"},
                {"Identifier": "old", "Type": "elb"},
                {"Identifier": LATTICE},
                {"Identifier": "x", "Type": "of another year"},
            ],
        }

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", add_traffic)):
        (seen,) = groups.read_groups(account.autoscaling)
    assert seen.target_groups == (arn, f"{arn}0")
    assert (seen.load_balancers, seen.lattice_groups) == (("old",), (LATTICE,))


def test_a_group_that_a_service_operates_is_left_alone(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    def operate(answer: Any) -> None:
        answer["AutoScalingGroups"][0]["Operator"] = {"Principal": "eks.amazonaws.com"}

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", operate)):
        account.decide()
        assert account.decisions()["web"]["reason"] == "operated"
        assert account.terminate(account.item("web"))["reason"] == "operated"
        assert ask("POST", "/terminations", {"group": "web", "idempotency_key": "k"})[1]["reason"] == "operated"
    assert account.all_events() == account.gone() == []


def test_alarms_by_the_hundred(account: Account) -> None:
    names = {f"a{number:03d}" for number in range(130)}
    for name in names:
        account.alarm(name)
    assert set(groups.alarm_states(client("cloudwatch"), names | {"missing"})) == names
    assert groups.alarm_states(client("cloudwatch"), []) == {}


def test_draining_what_auto_scaling_no_longer_knows(account: Account) -> None:
    account.group("web", size=2)
    terminator = Terminator({"ec2": account.ec2, "autoscaling": account.autoscaling})
    detached, terminated = account.instances("web")
    account.autoscaling.detach_instances(
        InstanceIds=[detached], AutoScalingGroupName="web", ShouldDecrementDesiredCapacity=True
    )
    assert terminator.check("drain", detached) is Answer.LEFT
    account.autoscaling.detach_instances(
        InstanceIds=[terminated], AutoScalingGroupName="web", ShouldDecrementDesiredCapacity=True
    )
    account.ec2.terminate_instances(InstanceIds=[terminated])
    assert terminator.check("drain", terminated) is Answer.GONE


def test_terminating_what_ec2_does_not_know(account: Account) -> None:
    terminator = Terminator({"ec2": account.ec2, "autoscaling": account.autoscaling})
    assert terminator.terminate("crash", "i-0123456789abcdef0") is Answer.GONE


def test_an_event_survives_its_way_through_the_table() -> None:
    stored = event(zone="", rolled=0.1 + 0.2, probability=1 / 3, watch=Watch(3, 1, OVERDUE, OVERDUE), detail="x")
    assert from_item(to_item(stored)) == stored
    assert to_item(stored)["open"] == {"S": "open"}


def test_values_come_back_exactly() -> None:
    values = {"a": 0.1, "b": [1, 2.5, {"c": 1e-9}], "d": True, "e": None}
    assert plain(typed(values)) == {"a": Decimal("0.1"), "b": [1, Decimal("2.5"), {"c": Decimal("1e-9")}], "d": True}


def test_values_are_typed_as_boto3_types_them() -> None:
    values = {"a": "", "b": {"c": ["d", None, False, {}]}, "e": {"f"}, "g": b"h", "i": Status.CLAIMED, "j": 10**30}
    assert typed(values) == {key: TypeSerializer().serialize(value) for key, value in values.items()}
