"""What a role needs to create, launch and delete a fleet: tags asked for, tags carried, the role passed on."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.patience import eventually

from .helpers import Fleet, World, allow, unique

EC2 = "arn:aws:ec2:us-east-1:000000000000:"
TAG = {"Key": "troop:deployment", "Value": "Mine"}
REQUEST_TAG = {"StringEquals": {"aws:RequestTag/troop:deployment": "Mine"}}
CARRIED = {"StringEquals": {"aws:ResourceTag/troop:deployment": "Mine"}}


def attempt(client: Any, call: str, **arguments: Any) -> str:
    """ "allowed", or the error's code."""
    try:
        getattr(client, call)(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "allowed"


class Launcher:
    """A role's attempts to make what a fleet needs."""

    def __init__(self, world: World, fleet: Fleet, *statements: dict[str, Any]) -> None:
        session = world.as_role(world.role(*statements))
        self.ec2, self.groups = (world.account.client(name, session) for name in ("ec2", "autoscaling"))
        self.fleet = fleet
        self.vpc = fleet.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["VpcId"]

    def security_group(self, *tags: dict[str, str]) -> str:
        specification = [{"ResourceType": "security-group", "Tags": list(tags)}] if tags else []
        parameters = {"GroupName": unique("group"), "Description": "of a test", "VpcId": self.vpc}
        return attempt(self.ec2, "create_security_group", **parameters, TagSpecifications=specification)

    def template(self, *tags: dict[str, str]) -> str:
        specification = [{"ResourceType": "launch-template", "Tags": list(tags)}] if tags else []
        parameters = {"LaunchTemplateName": unique("template"), "LaunchTemplateData": {"InstanceType": "t3.micro"}}
        return attempt(self.ec2, "create_launch_template", **parameters, TagSpecifications=specification)

    def group(self, template: str, *tags: dict[str, str]) -> str:
        return attempt(
            self.groups,
            "create_auto_scaling_group",
            AutoScalingGroupName=unique("group"),
            MinSize=0,
            MaxSize=0,
            VPCZoneIdentifier=self.fleet.subnets[0],
            LaunchTemplate={"LaunchTemplateId": template, "Version": "1"},
            Tags=[{**tag, "PropagateAtLaunch": True} for tag in tags],
        )


def test_created_resource_needs_the_tag(world: World, fleet: Fleet) -> None:
    role = Launcher(
        world,
        fleet,
        allow("ec2:CreateSecurityGroup", f"{EC2}security-group/*", Condition=REQUEST_TAG),
        allow("ec2:CreateSecurityGroup", f"{EC2}vpc/*"),
        allow("ec2:CreateLaunchTemplate", f"{EC2}launch-template/*", Condition=REQUEST_TAG),
        allow("ec2:CreateTags", "*", Condition={"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}}),
    )
    assert role.security_group(TAG) == "allowed"
    assert role.security_group({**TAG, "Value": "Other"}) == role.security_group() == "UnauthorizedOperation"
    assert role.template(TAG) == "UnauthorizedOperation", "its tags may not be made"
    assert role.template() == "UnauthorizedOperation"


def launching(*left_out: str) -> list[dict[str, Any]]:
    """Statements that allow a fleet's launch, less those named."""
    new_arns = [f"{EC2}{kind}/*" for kind in ("instance", "volume", "network-interface")]
    used = [f"{EC2}{kind}/*" for kind in ("subnet", "security-group")]
    amazons = {"StringEquals": {"ec2:Owner": "amazon"}}
    passed = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    tagged = {"StringEquals": {**REQUEST_TAG["StringEquals"], "ec2:CreateAction": "RunInstances"}}
    statements = {
        "create": allow("autoscaling:CreateAutoScalingGroup", "*", Condition=REQUEST_TAG),
        "made": allow("ec2:RunInstances", new_arns, Condition=REQUEST_TAG),
        "used": allow("ec2:RunInstances", used),
        "image": allow("ec2:RunInstances", "arn:aws:ec2:us-east-1::image/*", Condition=amazons),
        "template": allow("ec2:RunInstances", f"{EC2}launch-template/*", Condition=CARRIED),
        "tags": allow("ec2:CreateTags", new_arns, Condition=tagged),
        "role": allow("iam:PassRole", "arn:aws:iam::000000000000:role/*", Condition=passed),
    }
    return [statement for name, statement in statements.items() if name not in left_out]


@pytest.fixture(scope="module")
def templates(world: World, fleet: Fleet) -> dict[str, str]:
    """A launch template whose resources carry the tag ("tagged"), and one whose resources do not ("bare")."""
    profile = {"Arn": world.profile(world.role())}
    image = fleet.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    specification = [{"ResourceType": kind, "Tags": [TAG]} for kind in ("instance", "volume", "network-interface")]
    ids = {
        "tagged": fleet.template(None, ImageId=image, IamInstanceProfile=profile, TagSpecifications=specification),
        "bare": fleet.template(None, ImageId=image, IamInstanceProfile=profile),
        "unknown image": fleet.template(None, IamInstanceProfile=profile, TagSpecifications=specification),
    }
    fleet.ec2.create_tags(Resources=list(ids.values()), Tags=[TAG])
    return ids


@pytest.mark.parametrize("missing", ["create", "made", "used", "image", "template", "tags", "role"])
def test_a_group_needs_all_that_its_launches_do(
    world: World, fleet: Fleet, templates: dict[str, str], missing: str
) -> None:
    assert Launcher(world, fleet, *launching(missing)).group(templates["tagged"], TAG) == "AccessDenied"


def test_who_may_launch_may_launch_only_what_carries_the_tag(
    world: World, fleet: Fleet, templates: dict[str, str]
) -> None:
    role = Launcher(world, fleet, *launching())
    assert role.group(templates["tagged"], TAG) == "allowed"
    assert role.group(templates["tagged"]) == "AccessDenied"
    assert role.group(templates["bare"], TAG) == "AccessDenied"
    assert role.group(templates["unknown image"], TAG) == "AccessDenied"
    assert role.group(fleet.template(None), TAG) == "AccessDenied", "the template does not carry it"


def test_public_parameters_belong_to_no_account(world: World) -> None:
    name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
    for account, expected in (("", "allowed"), ("000000000000", "AccessDeniedException")):
        role = world.role(allow("ssm:GetParameter", f"arn:aws:ssm:us-east-1:{account}:parameter/aws/service/*"))
        client = world.account.client("ssm", world.as_role(role))
        assert attempt(client, "get_parameter", Name=name) == expected


def test_only_what_carries_the_tag_is_deleted(world: World, fleet: Fleet) -> None:
    role = Launcher(
        world,
        fleet,
        allow(["ec2:DeleteSecurityGroup", "ec2:DeleteLaunchTemplate", "ec2:DeleteVolume"], "*", Condition=CARRIED),
        allow(["autoscaling:DeleteAutoScalingGroup", "autoscaling:SuspendProcesses"], "*", Condition=CARRIED),
    )
    for tags, denied, refused in (([], "UnauthorizedOperation", "AccessDenied"), ([TAG], "allowed", "allowed")):
        name = unique("template")
        fleet.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"InstanceType": "t3.micro"})
        listed = fleet.ec2.describe_launch_templates(LaunchTemplateNames=[name])["LaunchTemplates"]
        security_group = fleet.ec2.create_security_group(GroupName=name, Description="x", VpcId=role.vpc)["GroupId"]
        volume = fleet.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)["VolumeId"]
        if tags:
            ids = [listed[0]["LaunchTemplateId"], security_group, volume]
            fleet.ec2.create_tags(Resources=ids, Tags=tags)
        group = fleet.group(0, tags={tag["Key"]: tag["Value"] for tag in tags})
        assert attempt(role.ec2, "delete_launch_template", LaunchTemplateName=name) == denied
        assert attempt(role.ec2, "delete_security_group", GroupId=security_group) == denied
        assert attempt(role.ec2, "delete_volume", VolumeId=volume) == denied
        for call in ("suspend_processes", "delete_auto_scaling_group"):
            assert attempt(role.groups, call, AutoScalingGroupName=group) == refused


def test_a_volume_has_the_data_of_a_snapshot_that_the_role_may_use(
    world: World, fleet: Fleet, templates: dict[str, str]
) -> None:
    zone = fleet.ec2.describe_subnets(SubnetIds=fleet.subnets[:1])["Subnets"][0]["AvailabilityZone"]
    source = fleet.ec2.create_volume(AvailabilityZone=zone, Size=10, Encrypted=True)["VolumeId"]
    snapshot = fleet.ec2.create_snapshot(VolumeId=source)["SnapshotId"]
    data = fleet.ec2.describe_launch_template_versions(LaunchTemplateId=templates["tagged"])["LaunchTemplateVersions"]
    ebs = {"SnapshotId": snapshot, "VolumeInitializationRate": 200, "VolumeSize": 12, "VolumeType": "gp3"}
    mapping = {"DeviceName": "/dev/sdf", "Ebs": {**ebs, "DeleteOnTermination": True}}
    template = fleet.template(None, **{**data[0]["LaunchTemplateData"], "BlockDeviceMappings": [mapping]})
    fleet.ec2.create_tags(Resources=[template], Tags=[TAG])
    arn = f"arn:aws:ec2:us-east-1::snapshot/{snapshot}"
    for owner, expected in (("000000000000", "allowed"), ("111111111111", "AccessDenied")):
        own = {"StringEquals": {"ec2:Owner": owner}}
        role = Launcher(world, fleet, *launching(), allow("ec2:RunInstances", arn, Condition=own))
        assert role.group(template, TAG) == expected
    assert Launcher(world, fleet, *launching()).group(template, TAG) == "AccessDenied"

    launched = fleet.ec2.run_instances(LaunchTemplate={"LaunchTemplateId": template}, MinCount=1, MaxCount=1)
    (node,) = launched["Instances"]
    attached = [{"Name": "attachment.instance-id", "Values": [node["InstanceId"]]}]
    volumes = fleet.ec2.describe_volumes(Filters=attached)["Volumes"]
    (volume,) = (one for one in volumes if one["Attachments"][0]["Device"] == "/dev/sdf")
    assert {key: volume.get(key) for key in ("SnapshotId", "VolumeInitializationRate", "Size", "Encrypted")} == {
        "SnapshotId": snapshot,
        "VolumeInitializationRate": 200,
        "Size": 12,
        "Encrypted": True,
    }
    fleet.ec2.terminate_instances(InstanceIds=[node["InstanceId"]])


def test_placement_group_needs_its_name_and_tag_and_stays_while_in_use(world: World, fleet: Fleet) -> None:
    name = unique("troop")
    arn = f"{EC2}placement-group/troop*"
    role = Launcher(
        world,
        fleet,
        allow("ec2:CreatePlacementGroup", arn, Condition=REQUEST_TAG),
        allow("ec2:CreateTags", arn),
        allow("ec2:DeletePlacementGroup", arn, Condition=CARRIED),
    )

    def create(name: str, *tags: dict[str, str]) -> str:
        specification = [{"ResourceType": "placement-group", "Tags": list(tags)}] if tags else []
        parameters = {"GroupName": name, "Strategy": "spread", "TagSpecifications": specification}
        return attempt(role.ec2, "create_placement_group", **parameters)

    assert create(name) == create(unique("other"), TAG) == "UnauthorizedOperation"
    assert create(name, TAG) == "allowed"
    assert create(name, TAG) == "InvalidPlacementGroup.Duplicate"
    foreign = unique("troop")
    fleet.ec2.create_placement_group(GroupName=foreign, Strategy="cluster")
    assert attempt(role.ec2, "delete_placement_group", GroupName=foreign) == "UnauthorizedOperation"
    template = fleet.template(None, Placement={"GroupName": name})
    launched = fleet.ec2.run_instances(LaunchTemplate={"LaunchTemplateId": template}, MinCount=1, MaxCount=1)
    (node,) = launched["Instances"]
    assert node["Placement"]["GroupName"] == name
    assert attempt(role.ec2, "delete_placement_group", GroupName=name) == "InvalidPlacementGroup.InUse"
    fleet.ec2.terminate_instances(InstanceIds=[node["InstanceId"]])
    assert eventually(lambda: attempt(role.ec2, "delete_placement_group", GroupName=name) == "allowed")
