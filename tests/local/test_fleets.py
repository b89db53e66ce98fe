"""Fleets as benchmarks make them: what a launch template says is launched, and nothing of it is left in the end."""

from __future__ import annotations

import base64
from ipaddress import IPv4Network
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.patience import eventually
from troop.bench.aws.surroundings import routes_of

from .helpers import Fleet, World, code, unique

TALKS = "#!/bin/sh\necho booted as $INSTANCE_ID\ntouch $READY_FILE\nexec sleep infinity\n"


def image(fleet: Fleet, world: World, architecture: str) -> dict[str, Any]:
    name = f"/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"
    image_id = world.account.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    return dict(fleet.ec2.describe_images(ImageIds=[image_id])["Images"][0])


def test_nodes_have_a_route_to_services_of_the_machine(fleet: Fleet) -> None:
    vpc = fleet.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["VpcId"]
    routes = routes_of(fleet.ec2, vpc, fleet.subnets)
    assert set(routes) == set(fleet.subnets)
    assert all(IPv4Network("127.0.0.0/8") in {one.to for one in its} for its in routes.values())


class Run:
    """One group of two instances with everything that a cell creates for it."""

    def __init__(self, world: World, fleet: Fleet) -> None:
        self.fleet, self.ec2, self.name = fleet, fleet.ec2, unique("run")
        self.tags = [{"Key": "troop:run", "Value": self.name}]
        self.filter = [{"Name": "tag:troop:run", "Values": [self.name]}]
        vpc = self.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["VpcId"]
        self.security_group = self.ec2.create_security_group(
            GroupName=self.name, Description="of a run", VpcId=vpc, TagSpecifications=self._tagged("security-group")
        )["GroupId"]
        self.profile = world.profile(world.role())
        self.image = image(fleet, world, "arm64")
        self.template = self.ec2.create_launch_template(
            LaunchTemplateName=self.name,
            LaunchTemplateData=self._template(),
            TagSpecifications=self._tagged("launch-template"),
        )["LaunchTemplate"]["LaunchTemplateId"]
        fleet.groups.create_auto_scaling_group(
            AutoScalingGroupName=self.name,
            MinSize=0,
            MaxSize=2,
            DesiredCapacity=2,
            VPCZoneIdentifier=",".join(fleet.subnets[:2]),
            LaunchTemplate={"LaunchTemplateId": self.template, "Version": "1"},
            Tags=[{**tag, "PropagateAtLaunch": True} for tag in self.tags],
        )
        self.members = fleet.in_service(self.name, 2)

    def _tagged(self, *kinds: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": self.tags} for kind in kinds]

    def _template(self) -> dict[str, Any]:
        ebs = {"VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True}
        return {
            "ImageId": self.image["ImageId"],
            "InstanceType": "c7g.large",
            "UserData": base64.b64encode(TALKS.encode()).decode(),
            "IamInstanceProfile": {"Arn": self.profile},
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "InstanceInitiatedShutdownBehavior": "terminate",
            "NetworkInterfaces": [
                {"DeviceIndex": 0, "AssociatePublicIpAddress": False, "Groups": [self.security_group]}
            ],
            "BlockDeviceMappings": [
                {"DeviceName": self.image["RootDeviceName"], "Ebs": {**ebs, "VolumeSize": 9}},
                {"DeviceName": "/dev/sdf", "Ebs": {**ebs, "VolumeSize": 50, "Iops": 4000, "Throughput": 250}},
            ],
            "TagSpecifications": self._tagged("instance", "volume", "network-interface"),
        }

    def volumes(self) -> list[dict[str, Any]]:
        return list(self.ec2.describe_volumes(Filters=self.filter)["Volumes"])

    def interfaces(self) -> list[dict[str, Any]]:
        return list(self.ec2.describe_network_interfaces(Filters=self.filter)["NetworkInterfaces"])

    def instances(self, *states: str) -> list[dict[str, Any]]:
        filters = [*self.filter, {"Name": "instance-state-name", "Values": list(states)}]
        reservations = self.ec2.describe_instances(Filters=filters)["Reservations"]
        return [instance for reservation in reservations for instance in reservation["Instances"]]


@pytest.fixture(scope="module")
def run(world: World, fleet: Fleet) -> Run:
    return Run(world, fleet)


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_amazon_linux_is_there_for_both_architectures(world: World, fleet: Fleet, architecture: str) -> None:
    ami = image(fleet, world, architecture)
    assert (ami["Architecture"], ami["RootDeviceName"]) == (architecture, "/dev/xvda")
    assert ami["ImageId"] in [one["ImageId"] for one in fleet.ec2.describe_images(Owners=["amazon"])["Images"]]


def test_instance_types_have_an_architecture_and_zones(fleet: Fleet) -> None:
    (seen,) = fleet.ec2.describe_instance_types(InstanceTypes=["c7g.large"])["InstanceTypes"]
    assert seen["ProcessorInfo"]["SupportedArchitectures"] == ["arm64"]
    offered = fleet.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["c7g.large"]}]
    )["InstanceTypeOfferings"]
    assert {"us-east-1a", "us-east-1b"} <= {one["Location"] for one in offered}
    with pytest.raises(ClientError) as unknown:
        fleet.ec2.describe_instance_types(InstanceTypes=["c7g.large", "c7g.small-ish"])
    assert code(unknown) == "InvalidInstanceType"


def test_the_prefix_list_of_s3_is_there(fleet: Fleet) -> None:
    filters = [{"Name": "prefix-list-name", "Values": ["com.amazonaws.us-east-1.s3"]}]
    (prefix_list,) = fleet.ec2.describe_managed_prefix_lists(Filters=filters)["PrefixLists"]
    assert prefix_list["PrefixListId"].startswith("pl-")


def test_instances_are_what_the_template_says(run: Run) -> None:
    for instance in run.instances("running"):
        assert instance["Architecture"] == "arm64"
        assert instance["IamInstanceProfile"]["Arn"] == run.profile
        assert instance["MetadataOptions"]["HttpTokens"] == "required"
        assert [one["GroupId"] for one in instance["SecurityGroups"]] == [run.security_group]
        assert "PublicIpAddress" not in instance
        shutdown = run.ec2.describe_instance_attribute(
            InstanceId=instance["InstanceId"], Attribute="instanceInitiatedShutdownBehavior"
        )
        assert shutdown["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
    assert {one["InstanceId"] for one in run.instances("running")} == run.members.keys()


def test_volumes_and_interfaces_are_what_the_template_says(run: Run) -> None:
    volumes = run.volumes()
    assert sorted((one["Size"], one["Iops"], one["VolumeType"], one["Encrypted"]) for one in volumes) == [
        (9, 3000, "gp3", True),
        (9, 3000, "gp3", True),
        (50, 4000, "gp3", True),
        (50, 4000, "gp3", True),
    ]
    assert {one["Throughput"] for one in volumes if one["Size"] == 50} == {250}
    mapped = {one["DeviceName"] for instance in run.instances("running") for one in instance["BlockDeviceMappings"]}
    assert mapped == {"/dev/xvda", "/dev/sdf"}
    assert [one["Groups"][0]["GroupId"] for one in run.interfaces()] == [run.security_group] * 2


def test_the_console_says_what_the_instance_printed(run: Run) -> None:
    instance = next(iter(run.members))
    assert run.ec2.get_console_output(InstanceId=instance)["Output"] == f"booted as {instance}\n"


def test_activities_tell_of_launches(run: Run) -> None:
    activities = run.fleet.activities(run.name)
    assert {(one["Description"].split()[-1], one["StatusCode"]) for one in activities} == {
        (instance, "Successful") for instance in run.members
    }
    with pytest.raises(ClientError) as unknown:
        run.fleet.groups.describe_scaling_activities(AutoScalingGroupName="there-is-none")
    assert code(unknown) == "ValidationError"


def test_names_are_taken_once(run: Run) -> None:
    with pytest.raises(ClientError) as group:
        run.fleet.groups.create_auto_scaling_group(
            AutoScalingGroupName=run.name,
            MinSize=0,
            MaxSize=0,
            VPCZoneIdentifier=run.fleet.subnets[0],
            LaunchTemplate={"LaunchTemplateId": run.template},
        )
    assert code(group) == "AlreadyExists"
    with pytest.raises(ClientError) as template:
        run.ec2.create_launch_template(LaunchTemplateName=run.name, LaunchTemplateData={"InstanceType": "t3.micro"})
    assert code(template) == "InvalidLaunchTemplateName.AlreadyExistsException"


def test_a_node_that_dies_while_nothing_is_replaced_stays_and_is_unhealthy(fleet: Fleet) -> None:
    group = fleet.group(2, TALKS)
    victim, other = fleet.in_service(group, 2)
    processes = ["Launch", "ReplaceUnhealthy", "AZRebalance"]
    fleet.groups.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=processes)
    fleet.ec2.terminate_instances(InstanceIds=[victim])

    def health() -> dict[str, str]:
        return {one["InstanceId"]: one["HealthStatus"] for one in fleet.describe(group)["Instances"]}

    assert eventually(lambda: health() == {victim: "Unhealthy", other: "Healthy"})
    fleet.groups.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=3)
    assert len(fleet.members(group)) == 2, "launched although Launch is suspended"


def test_scarce_types_are_not_launched_and_the_activities_say_why(fleet: Fleet) -> None:
    kind = "m7i.metal-48xl"
    fleet.account.make_scarce(kind, left=1)
    template = fleet.template(TALKS, InstanceType=kind)
    group = fleet.group(3, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})
    assert len(fleet.members(group)) == 1
    activities = fleet.activities(group)
    failed = [one for one in activities if one["StatusCode"] == "Failed"]
    assert failed
    assert all("do not have sufficient m7i.metal-48xl capacity" in one["StatusMessage"] for one in failed)


def test_instances_can_die_while_they_are_pending_and_the_activities_say_of_what(world: World, fleet: Fleet) -> None:
    kind, code = "m7i.metal-24xl", "Client.InvalidKMSKey.InvalidState"
    fleet.account.make_scarce(kind, 1, code)
    template = fleet.template(TALKS, InstanceType=kind)
    group = fleet.group(2, LaunchTemplate={"LaunchTemplateId": template, "Version": "1"})
    assert len(fleet.members(group)) == 1
    activities = fleet.activities(group)
    (cancelled,) = [one for one in activities if one["StatusCode"] == "Cancelled"]
    assert f"Termination Reason: {code}: The KMS key provided is in an incorrect state" in cancelled["StatusMessage"]
    died = cancelled["Description"].split(": ")[1].split(".")[0]
    (described,) = world.account.client("ec2").describe_instances(InstanceIds=[died])["Reservations"][0]["Instances"]
    assert described["State"]["Name"] in ("shutting-down", "terminated")
    assert described["StateReason"]["Code"] == code
    assert died not in [one["id"] for one in fleet.account.instances()]


def test_deletion_follows_the_order_of_aws(world: World, fleet: Fleet) -> None:
    run = Run(world, fleet)
    groups = fleet.groups
    with pytest.raises(ClientError) as full:
        groups.delete_auto_scaling_group(AutoScalingGroupName=run.name)
    assert code(full) == "ResourceInUse"
    with fleet.account.transitions_held():
        for _ in range(2):
            groups.delete_auto_scaling_group(AutoScalingGroupName=run.name, ForceDelete=True)
        assert fleet.describe(run.name)["Status"] == "Delete in progress"
        assert set(fleet.members(run.name).values()) == {"Terminating"}
        assert len(run.instances("shutting-down")) == 2
        assert len(run.volumes()) == 4
        with pytest.raises(ClientError) as used:
            run.ec2.delete_security_group(GroupId=run.security_group)
        assert code(used) == "DependencyViolation"
    eventually(lambda: len(run.instances("terminated")) == 2)
    eventually(lambda: not groups.describe_auto_scaling_groups(Filters=run.filter)["AutoScalingGroups"])
    assert run.volumes() == run.interfaces() == []
    run.ec2.delete_security_group(GroupId=run.security_group)
    run.ec2.delete_launch_template(LaunchTemplateName=run.name)
    assert run.ec2.describe_security_groups(Filters=run.filter)["SecurityGroups"] == []
    assert run.ec2.describe_launch_templates(Filters=run.filter)["LaunchTemplates"] == []
    assert run.ec2.get_console_output(InstanceId=next(iter(run.members)))["Output"].startswith("booted")


@pytest.mark.parametrize(
    ("service", "call", "arguments", "expected"),
    [
        ("ec2", "delete_security_group", {"GroupId": "sg-0123456789abcdef0"}, "InvalidGroup.NotFound"),
        (
            "ec2",
            "delete_launch_template",
            {"LaunchTemplateName": "none"},
            "InvalidLaunchTemplateName.NotFoundException",
        ),
        (
            "ec2",
            "delete_launch_template",
            {"LaunchTemplateId": "lt-0123456789abcdef0"},
            "InvalidLaunchTemplateId.NotFound",
        ),
        ("ec2", "delete_volume", {"VolumeId": "vol-0123456789abcdef0"}, "InvalidVolume.NotFound"),
        ("groups", "delete_auto_scaling_group", {"AutoScalingGroupName": "none"}, "ValidationError"),
        (
            "groups",
            "suspend_processes",
            {"AutoScalingGroupName": "none", "ScalingProcesses": ["Launch"]},
            "ValidationError",
        ),
        ("groups", "update_auto_scaling_group", {"AutoScalingGroupName": "none", "MaxSize": 0}, "ValidationError"),
    ],
)
def test_missing_resource_is_named_in_the_error(
    fleet: Fleet, service: str, call: str, arguments: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ClientError) as gone:
        getattr(getattr(fleet, service), call)(**arguments)
    assert code(gone) == expected
