"""Auto Scaling groups as AWS runs them: spread, pending until ready, replaced after a while, honest errors."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.aws_facts.test_events import DOCUMENTED
from tests.patience import eventually

from .helpers import WAITS, Fleet, Listener, code

NEVER = "#!/bin/sh\n# READY_FILE is never written\nexec sleep infinity\n"


def test_instances_are_spread_over_the_zones(fleet: Fleet) -> None:
    group = fleet.group(5)
    zones = Counter(one["AvailabilityZone"] for one in fleet.describe(group)["Instances"])
    assert sorted(zones.values()) == [1, 2, 2]
    subnets = {fleet.instance(one)["SubnetId"] for one in fleet.members(group)}
    assert subnets == set(fleet.subnets)


@pytest.mark.parametrize(
    ("strategy", "zones"), [("balanced-only", [2, 2]), ("balanced-best-effort", [3, 3]), ("", [3, 3])]
)
def test_other_zones_take_over_for_a_full_one_unless_the_group_is_balanced(
    fleet: Fleet, strategy: str, zones: list[int]
) -> None:
    kind = {"balanced-only": "c6g.8xlarge", "": "c6g.2xlarge"}.get(strategy, "c6g.4xlarge")
    fleet.account.make_scarce(kind, left=0, zone="us-east-1b")
    distribution = {"CapacityDistributionStrategy": strategy}
    more: dict[str, Any] = {"AvailabilityZoneDistribution": distribution} if strategy else {}
    template = {"LaunchTemplateId": fleet.template(None, InstanceType=kind), "Version": "1"}
    group = fleet.group(6, LaunchTemplate=template, **more)
    counts = Counter(one["AvailabilityZone"] for one in fleet.describe(group)["Instances"])
    assert [counts["us-east-1a"], counts["us-east-1c"]] == zones
    assert counts["us-east-1b"] == 0
    activities = fleet.activities(group)
    assert any("(us-east-1b)" in one["StatusMessage"] for one in activities if one["StatusCode"] == "Failed")


def test_a_group_says_that_its_launch_template_is_gone(fleet: Fleet) -> None:
    template = fleet.template(None)
    group = fleet.group(1, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})
    (instance,) = fleet.in_service(group, 1)
    fleet.ec2.delete_launch_template(LaunchTemplateId=template)
    fleet.ec2.terminate_instances(InstanceIds=[instance])
    eventually(lambda: instance not in fleet.members(group))

    def last() -> str:
        activities = fleet.activities(group)
        return str(activities[0].get("StatusMessage"))

    eventually(lambda: template in last())
    other = {"LaunchTemplateId": fleet.template(None), "Version": "1"}
    fleet.groups.update_auto_scaling_group(AutoScalingGroupName=group, LaunchTemplate=other)
    assert fleet.in_service(group, 1)


def test_an_instance_that_fails_a_status_check_is_replaced(fleet: Fleet) -> None:
    group = fleet.group(1)
    (instance,) = fleet.in_service(group, 1)
    fleet.account.impair(instance)
    eventually(lambda: instance not in fleet.members(group))
    assert fleet.in_service(group, 1)


def test_only_its_owner_removes_the_mark_of_an_unhealthy_instance(fleet: Fleet) -> None:
    group = fleet.group(1)
    (instance,) = fleet.in_service(group, 1)

    def health() -> str:
        return str(fleet.describe(group)["Instances"][0]["HealthStatus"])

    fleet.groups.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["ReplaceUnhealthy"])
    fleet.account.impair(instance)
    assert health() == "Unhealthy"
    fleet.groups.set_instance_health(InstanceId=instance, HealthStatus="Healthy")
    assert health() == "Healthy"
    fleet.groups.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["HealthCheck"])
    fleet.account.impair(instance)
    assert health() == "Healthy", "nobody looks"
    fleet.groups.set_instance_health(InstanceId=instance, HealthStatus="Unhealthy")
    assert fleet.members(group) == {instance: "InService"}
    fleet.groups.resume_processes(AutoScalingGroupName=group)
    eventually(lambda: instance not in fleet.members(group))


def test_a_group_that_shrinks_keeps_its_protected_instances(fleet: Fleet) -> None:
    group = fleet.group(3, NewInstancesProtectedFromScaleIn=True)
    first, second, third = fleet.in_service(group, 3)

    def protect(*instances: str, protected: bool) -> None:
        fleet.groups.set_instance_protection(
            AutoScalingGroupName=group, InstanceIds=instances, ProtectedFromScaleIn=protected
        )

    protect(second, protected=False)
    fleet.groups.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    assert sorted(fleet.members(group)) == sorted([first, third]), "larger than it should be"
    assert fleet.describe(group)["DesiredCapacity"] == 1
    shown = fleet.groups.describe_auto_scaling_instances(InstanceIds=[first, third])["AutoScalingInstances"]
    assert [one["ProtectedFromScaleIn"] for one in [*shown, *fleet.describe(group)["Instances"]]] == [True] * 4
    protect(first, protected=False)
    eventually(lambda: list(fleet.members(group)) == [third])


def test_only_instances_in_service_of_the_group_are_protected(fleet: Fleet) -> None:
    group, pending = fleet.group(1), fleet.group(1, NEVER)
    (instance,) = fleet.in_service(group, 1)
    (waiting,) = fleet.members(pending)

    def refusal(name: str, *instances: str) -> str:
        with pytest.raises(ClientError) as error:
            fleet.groups.set_instance_protection(
                AutoScalingGroupName=name, InstanceIds=instances, ProtectedFromScaleIn=True
            )
        return code(error)

    assert refusal(group, instance, waiting) == "ValidationError"
    assert refusal(pending, waiting) == "ValidationError"
    assert refusal(group, *[instance] * 51) in ("LimitExceeded", "LimitExceededFault")
    assert fleet.describe(group)["Instances"][0]["ProtectedFromScaleIn"] is False


def test_protection_begins_when_an_instance_is_in_service(fleet: Fleet) -> None:
    group = fleet.group(2, NEVER, NewInstancesProtectedFromScaleIn=True)
    fleet.groups.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    assert fleet.members(group) == {}


def test_protection_does_not_keep_what_is_unhealthy(fleet: Fleet) -> None:
    group = fleet.group(2, NewInstancesProtectedFromScaleIn=True)
    sick, ended = fleet.in_service(group, 2)
    fleet.groups.set_instance_health(InstanceId=sick, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False)
    eventually(lambda: sick not in fleet.members(group))
    fleet.groups.terminate_instance_in_auto_scaling_group(InstanceId=ended, ShouldDecrementDesiredCapacity=True)
    eventually(lambda: ended not in fleet.members(group))
    (replacement,) = fleet.in_service(group, 1)
    assert fleet.describe(group)["Instances"][0]["ProtectedFromScaleIn"] is True
    assert replacement != sick


def test_a_grace_period_holds_back_bad_health_by_default(fleet: Fleet) -> None:
    group = fleet.group(1, HealthCheckGracePeriod=3600)
    (instance,) = fleet.in_service(group, 1)
    fleet.groups.set_instance_health(InstanceId=instance, HealthStatus="Unhealthy")
    assert fleet.describe(group)["Instances"][0]["HealthStatus"] == "Healthy"
    fleet.groups.set_instance_health(InstanceId=instance, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False)
    eventually(lambda: instance not in fleet.members(group))


def test_an_instance_is_pending_until_it_is_ready(fleet: Fleet) -> None:
    group = fleet.group(1, WAITS)
    assert list(fleet.members(group).values()) == ["Pending"]
    (instance,) = fleet.boot(group, 1)
    shown = fleet.groups.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"]
    assert [one["LifecycleState"] for one in shown] == ["InService"]


def test_pending_instances_count_as_launched(fleet: Fleet) -> None:
    group = fleet.group(2, NEVER)
    fleet.groups.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=3)
    assert list(fleet.members(group).values()) == ["Pending"] * 3


def test_a_crash_is_noticed_after_a_while_and_the_instance_replaced(fleet: Fleet) -> None:
    group = fleet.group(2, WAITS)
    before = fleet.boot(group, 2)
    victim = next(iter(before))
    with fleet.account.transitions_held():
        answer = fleet.ec2.terminate_instances(InstanceIds=[victim])["TerminatingInstances"][0]
        assert answer["CurrentState"]["Name"] == "shutting-down"
        assert fleet.members(group) == before, "noticed at once"
        assert fleet.instance(victim)["State"]["Name"] == "shutting-down"
    launched = eventually(lambda: fleet.members(group).keys() - before.keys())
    assert fleet.members(group).keys() == before.keys() - {victim} | launched
    assert fleet.members(group)[next(iter(launched))] == "Pending"
    assert fleet.boot(group, 2)


def test_an_orderly_termination_shows_as_terminating(fleet: Fleet) -> None:
    group = fleet.group(2)
    before = fleet.in_service(group, 2)
    victim = next(iter(before))
    with fleet.account.transitions_held():
        fleet.groups.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=False)
        assert fleet.members(group)[victim] == "Terminating"
    eventually(lambda: victim not in fleet.members(group))
    assert fleet.in_service(group, 2)


def test_an_orderly_termination_can_shrink_the_group(fleet: Fleet) -> None:
    group = fleet.group(2)
    victim = next(iter(fleet.in_service(group, 2)))
    fleet.groups.terminate_instance_in_auto_scaling_group(InstanceId=victim, ShouldDecrementDesiredCapacity=True)
    eventually(lambda: victim not in fleet.members(group))
    assert len(fleet.members(group)) == fleet.describe(group)["DesiredCapacity"] == 1


def test_unknown_instances_are_errors_of_the_caller(fleet: Fleet) -> None:
    with pytest.raises(ClientError) as unknown:
        fleet.groups.terminate_instance_in_auto_scaling_group(
            InstanceId="i-0123456789abcdef0", ShouldDecrementDesiredCapacity=False
        )
    assert code(unknown) == "ValidationError"
    with pytest.raises(ClientError) as unknown:
        fleet.ec2.terminate_instances(InstanceIds=["i-0123456789abcdef0"])
    assert code(unknown) == "InvalidInstanceID.NotFound"


def test_terminating_twice_is_harmless(fleet: Fleet) -> None:
    group = fleet.group(1)
    (victim,) = fleet.in_service(group, 1)
    for _ in range(2):
        fleet.ec2.terminate_instances(InstanceIds=[victim])
    eventually(lambda: victim not in fleet.members(group))
    assert len(fleet.in_service(group, 1)) == 1


def test_resources_are_listed_by_id_and_by_tag(fleet: Fleet) -> None:
    group, other = fleet.group(2, tags={"kind": "wanted"}), fleet.group(1, tags={"kind": "other"})
    ids, others = set(fleet.in_service(group, 2)), set(fleet.in_service(other, 1))

    def tagged(*values: str) -> set[str]:
        response = fleet.ec2.describe_instances(Filters=[{"Name": "tag:kind", "Values": list(values)}])
        return {one["InstanceId"] for reservation in response["Reservations"] for one in reservation["Instances"]}

    def tags(*names: str) -> set[str]:
        filters = [{"Name": "resource-id", "Values": list(names)}, {"Name": "key", "Values": ["kind"]}]
        return {one["ResourceId"] for one in fleet.ec2.describe_tags(Filters=filters)["Tags"]}

    assert (tagged("wanted"), tagged("wanted", "other"), tagged("neither")) == (ids, ids | others, set())
    assert (tags(*ids), tags("i-00000000000000000"), tags("i-*") >= ids | others) == (ids, set(), True)
    volumes = {mapping["Ebs"]["VolumeId"]: one for one in ids for mapping in fleet.instance(one)["BlockDeviceMappings"]}
    descriptions = fleet.ec2.describe_volumes(VolumeIds=[*volumes])["Volumes"]
    assert {one["VolumeId"]: one["Attachments"][0]["InstanceId"] for one in descriptions} == volumes
    with pytest.raises(ClientError) as unknown:
        fleet.ec2.describe_volumes(VolumeIds=[*volumes, "vol-00000000000000000"])
    assert code(unknown) == "InvalidVolume.NotFound"
    with pytest.raises(ClientError) as no_instance:
        fleet.ec2.attach_volume(VolumeId=next(iter(volumes)), InstanceId="i-00000000000000000", Device="/dev/sdf")
    assert code(no_instance) == "InvalidInstanceID.NotFound"


def test_a_group_whose_launches_are_suspended_does_not_recover(fleet: Fleet) -> None:
    group = fleet.group(1)
    (victim,) = fleet.in_service(group, 1)
    fleet.groups.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["Launch"])
    assert [one["ProcessName"] for one in fleet.describe(group)["SuspendedProcesses"]] == ["Launch"]
    fleet.ec2.terminate_instances(InstanceIds=[victim])
    eventually(lambda: not fleet.members(group))
    time.sleep(0.7)
    assert not fleet.members(group)
    fleet.groups.resume_processes(AutoScalingGroupName=group, ScalingProcesses=["Launch"])
    assert fleet.in_service(group, 1)


def test_instance_refreshes(fleet: Fleet) -> None:
    group = fleet.group(1)

    def statuses() -> list[str]:
        refreshes = fleet.groups.describe_instance_refreshes(AutoScalingGroupName=group)["InstanceRefreshes"]
        return [one["Status"] for one in refreshes]

    assert statuses() == []
    fleet.groups.start_instance_refresh(AutoScalingGroupName=group)
    assert statuses() == ["InProgress"]
    with pytest.raises(ClientError) as twice:
        fleet.groups.start_instance_refresh(AutoScalingGroupName=group)
    assert code(twice) == "InstanceRefreshInProgress"
    fleet.groups.cancel_instance_refresh(AutoScalingGroupName=group)
    assert statuses() == ["Cancelled"]
    with pytest.raises(ClientError) as unknown:
        fleet.groups.describe_instance_refreshes(AutoScalingGroupName="no-such-group")
    assert code(unknown) == "ValidationError"


def test_targets_are_healthy_when_their_instances_serve(fleet: Fleet) -> None:
    balancing = fleet.account.client("elbv2")
    vpc = fleet.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["VpcId"]
    target_group = balancing.create_target_group(Name="targets", Protocol="HTTP", Port=8080, VpcId=vpc)
    arn = target_group["TargetGroups"][0]["TargetGroupArn"]

    def health() -> dict[str, str]:
        descriptions = balancing.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
        return {one["Target"]["Id"]: one["TargetHealth"]["State"] for one in descriptions}

    group = fleet.group(1, WAITS, TargetGroupARNs=[arn])
    assert list(health().values()) == ["initial"]
    (victim,) = fleet.boot(group, 1)
    assert health() == {victim: "healthy"}
    fleet.ec2.terminate_instances(InstanceIds=[victim])
    eventually(lambda: [one for one in health() if one != victim])
    (replacement,) = fleet.boot(group, 1)
    assert health() == {replacement: "healthy"}


def test_weights_are_shown(fleet: Fleet) -> None:
    policy: dict[str, Any] = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": fleet.template(None), "Version": "1"},
            "Overrides": [{"InstanceType": "m5.large", "WeightedCapacity": "2"}],
        }
    }
    name = "weighted"
    fleet.groups.create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=8,
        DesiredCapacity=4,
        VPCZoneIdentifier=fleet.subnets[0],
        MixedInstancesPolicy=policy,
    )
    instances = fleet.describe(name)["Instances"]
    assert [(one["InstanceType"], one["WeightedCapacity"]) for one in instances] == [("m5.large", "2")] * 2
    fleet.in_service(name, 2)
    victim = instances[0]["InstanceId"]
    fleet.ec2.terminate_instances(InstanceIds=[victim])
    eventually(lambda: victim not in fleet.members(name))
    assert len(fleet.in_service(name, 2)) == 2


def test_the_named_version_of_the_template_is_launched(fleet: Fleet) -> None:
    template = fleet.template("#!/bin/sh\necho first > version; touch $READY_FILE\n")
    newer = fleet.template("#!/bin/sh\necho second > version; touch $READY_FILE\n")
    data = fleet.ec2.describe_launch_template_versions(LaunchTemplateId=newer)["LaunchTemplateVersions"][0]
    fleet.ec2.create_launch_template_version(LaunchTemplateId=template, LaunchTemplateData=data["LaunchTemplateData"])
    group = fleet.group(1, LaunchTemplate={"LaunchTemplateId": template, "Version": "2"})
    (instance,) = fleet.in_service(group, 1)
    assert (fleet.directory(instance) / "version").read_text() == "second\n"


@pytest.fixture(scope="module")
def listener(fleet: Fleet) -> Listener:
    return Listener(fleet.account, {"source": ["aws.ec2", "aws.autoscaling"]})


def test_an_activity_is_in_progress_until_its_instance_serves(fleet: Fleet) -> None:
    group = fleet.group(1, WAITS)
    (launch,) = fleet.activities(group)
    (instance,) = fleet.members(group)
    assert launch["Description"] == f"Launching a new EC2 instance: {instance}"
    assert (launch["StatusCode"], "EndTime" in launch) == ("InProgress", False)
    fleet.boot(group, 1)
    (ended,) = fleet.activities(group)
    assert (ended["ActivityId"], ended["StatusCode"]) == (launch["ActivityId"], "Successful")
    assert ended["StartTime"] == launch["StartTime"] <= ended["EndTime"]


def test_a_replacement_has_a_termination_and_a_launch_with_their_events(fleet: Fleet, listener: Listener) -> None:
    group = fleet.group(1, WAITS)
    (victim,) = fleet.boot(group, 1)
    with fleet.account.transitions_held():
        answer = fleet.groups.terminate_instance_in_auto_scaling_group(
            InstanceId=victim, ShouldDecrementDesiredCapacity=False
        )["Activity"]
        newest = fleet.activities(group)[0]
        assert (newest["ActivityId"], newest["StatusCode"]) == (answer["ActivityId"], "InProgress")
    eventually(lambda: victim not in fleet.members(group))
    (replacement,) = fleet.boot(group, 1)
    launch, termination, _ = fleet.activities(group)
    assert termination["ActivityId"] == answer["ActivityId"]
    assert termination["Description"] == f"Terminating EC2 instance: {victim}"
    assert termination["StatusCode"] == launch["StatusCode"] == "Successful"
    assert launch["Description"].endswith(replacement)

    def heard() -> set[tuple[str, str]]:
        details = [(event["detail-type"], event["detail"]) for event in listener.events()]
        states = {(one["instance-id"], one["state"]) for _, one in details if "state" in one}
        return states | {(one["EC2InstanceId"], kind) for kind, one in details if "ActivityId" in one}

    expected = {
        *((victim, state) for state in ("pending", "running", "shutting-down", "terminated")),
        *((replacement, state) for state in ("pending", "running")),
        *((instance, "EC2 Instance Launch Successful") for instance in (victim, replacement)),
        (victim, "EC2 Instance Terminate Successful"),
    }
    eventually(lambda: expected <= heard())
    for event in listener.events():
        assert event["detail"].keys() == DOCUMENTED[event["source"], event["detail-type"]]
    (event,) = [one for one in listener.events() if one["detail"].get("ActivityId") == launch["ActivityId"]]
    assert (event["detail"]["Origin"], event["detail"]["Destination"]) == ("EC2", "AutoScalingGroup")
    assert event["detail"]["AutoScalingGroupName"] == group
    arn = fleet.describe(group)["AutoScalingGroupARN"]
    assert event["resources"] == [arn, f"arn:aws:ec2:us-east-1:000000000000:instance/{replacement}"]


def test_a_launch_that_fails_sends_why(fleet: Fleet, listener: Listener) -> None:
    kind = "r7g.12xlarge"
    fleet.account.make_scarce(kind, left=0)
    template = {"LaunchTemplateId": fleet.template(None, InstanceType=kind), "Version": "1"}
    group = fleet.group(1, LaunchTemplate=template)
    failed = {one["ActivityId"]: one["StatusMessage"] for one in fleet.activities(group)}
    assert failed
    assert all("do not have sufficient r7g.12xlarge capacity" in message for message in failed.values())

    def heard() -> dict[str, str]:
        details = [e["detail"] for e in listener.events() if e["detail-type"] == "EC2 Instance Launch Unsuccessful"]
        return {one["ActivityId"]: one["StatusMessage"] for one in details if one["StatusCode"] == "Failed"}

    eventually(lambda: failed.items() <= heard().items())


def test_an_instance_that_ends_before_it_serves_cancels_its_launch(fleet: Fleet) -> None:
    group = fleet.group(1, NEVER)
    (instance,) = fleet.members(group)
    fleet.ec2.terminate_instances(InstanceIds=[instance])
    eventually(lambda: instance not in fleet.members(group))
    cancelled = next(one for one in fleet.activities(group) if one["StatusCode"] == "Cancelled")
    assert instance in cancelled["Description"]
    assert "Termination Reason: Client.UserInitiatedShutdown" in cancelled["StatusMessage"]


def test_a_group_that_shrinks_says_which_instances_it_ends(fleet: Fleet) -> None:
    group = fleet.group(2)
    before = fleet.in_service(group, 2)
    fleet.groups.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    (ended,) = before.keys() - fleet.members(group).keys()

    def termination() -> dict[str, Any]:
        return next(
            one for one in fleet.activities(group) if one["Description"] == f"Terminating EC2 instance: {ended}"
        )

    eventually(lambda: termination()["StatusCode"] == "Successful")
