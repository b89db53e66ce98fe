"""Makes a cell's fleets on EC2 and Auto Scaling: everything by its name, so that nothing is made twice.

A name that is taken is looked at: what carries our run's tags was made by an earlier try, anything else is a refusal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.definition import Fleet
from troop.bench.fleet_requests import (
    Image,
    LaunchImpossibleError,
    Subnet,
    egress,
    group_request,
    ingress,
    is_ours,
    tag_specification,
    template_data,
)

IMAGE_PARAMETER = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-"
"""And the architecture. AWS keeps it in every region of every partition."""

NOT_YET = frozenset({"InvalidGroup.NotFound", "InvalidGroupId.NotFound", "InvalidLaunchTemplateId.NotFound"})
"""What a service says of something just made that it does not see yet."""

NOT_YET_WORDS = ("invalid iaminstanceprofile", "launch template", "security group", "group name not found")
"""Auto Scaling says only ValidationError, and with it what it has not found."""

TAKEN = frozenset({"AlreadyExists", "AlreadyExistsFault"})
"""What Auto Scaling says of a name that is taken, in the two ways in which it is spelled."""

TRIES = 6
LONGEST_PAUSE = 8.0

AT_ONCE = 100
"""Ids or names that one call asks for."""

_BY_GROUP = "group-name"


@dataclass(frozen=True)
class Fleets:
    """What Launch makes."""

    ec2: Any
    autoscaling: Any
    ssm: Any
    sleep: Callable[[float], None] = time.sleep

    # What there is

    def architectures(self, types: Collection[str]) -> dict[str, frozenset[str]]:
        """What each instance type supports.

        Raises:
            ClientError: InvalidInstanceType for one that the region does not have.
        """
        names = sorted(types)
        architectures: dict[str, frozenset[str]] = {}
        for i in range(0, len(names), AT_ONCE):
            answer = self.ec2.describe_instance_types(InstanceTypes=names[i : i + AT_ONCE])
            for one in answer["InstanceTypes"]:
                architectures[one["InstanceType"]] = frozenset(one["ProcessorInfo"]["SupportedArchitectures"])
        return architectures

    def zones_of(self, types: Collection[str]) -> dict[str, frozenset[str]]:
        """Names of the availability zones that offer each instance type."""
        pages = self.ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": sorted(types)}]
        )
        zones_by_type: dict[str, set[str]] = {one: set() for one in types}
        for page in pages:
            for offering in page["InstanceTypeOfferings"]:
                zones_by_type[offering["InstanceType"]].add(offering["Location"])
        return {one: frozenset(zones) for one, zones in zones_by_type.items()}

    def subnets(self, ids: Sequence[str]) -> list[Subnet]:
        """The network's subnets that can be used.

        Raises:
            ClientError: InvalidSubnetID.NotFound for one that does not exist.
        """
        answer = self.ec2.describe_subnets(SubnetIds=list(ids))
        return [
            Subnet(one["SubnetId"], one["AvailabilityZone"]) for one in answer["Subnets"] if one["State"] == "available"
        ]

    def newest_image(self, architecture: str) -> Image:
        """Amazon Linux 2023 as it is today.

        Raises:
            LaunchImpossibleError: the parameter names an image that cannot be used.
        """
        name = IMAGE_PARAMETER + architecture
        image_id = self.ssm.get_parameter(Name=name)["Parameter"]["Value"]
        images = self.ec2.describe_images(ImageIds=[image_id])["Images"]
        if not images:
            raise LaunchImpossibleError(f"the image {image_id} that {name} names does not exist here")
        return Image(image_id, images[0]["RootDeviceName"])

    def s3_prefix_list(self) -> str:
        """Id of the list of S3's addresses in the region, which AWS keeps under the same name in every partition.

        Raises:
            LaunchImpossibleError: there is none.
        """
        name = f"com.amazonaws.{self.ec2.meta.region_name}.s3"
        answer = self.ec2.describe_managed_prefix_lists(Filters=[{"Name": "prefix-list-name", "Values": [name]}])
        prefix_lists = [one["PrefixListId"] for one in answer["PrefixLists"]]
        if not prefix_lists:
            raise LaunchImpossibleError(f"there is no prefix list {name}: nodes could not reach S3 without a NAT")
        return str(prefix_lists[0])

    # What is made

    def security_group(self, name: str, vpc: str, tags: Mapping[str, str]) -> str:
        """Makes the cell's security group, without any rule but EC2's own; its id.

        Raises:
            LaunchImpossibleError: there is one of that name which is not the run's.
        """
        try:
            answer = self.ec2.create_security_group(
                GroupName=name,
                Description="Nodes of one cell of a Troop benchmark",
                VpcId=vpc,
                TagSpecifications=tag_specification("security-group", tags),
            )
            return str(answer["GroupId"])
        except ClientError as error:
            if _code(error) != "InvalidGroup.Duplicate":
                raise
        filters = [{"Name": _BY_GROUP, "Values": [name]}, {"Name": "vpc-id", "Values": [vpc]}]

        def find() -> dict[str, Any]:
            groups = self.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
            return _the_one(groups, "InvalidGroup.NotFound", name)

        group = self._settled(find)
        _check_ours("security group", name, _tags(group), tags)
        return str(group["GroupId"])

    def restrict(self, group: str, s3_prefix_list: str) -> None:
        """Gives a security group the rules of a cell's nodes, and takes EC2's own, which lets out everything."""
        self._rule(self.ec2.authorize_security_group_ingress, group, ingress(group))
        for permission in egress(group, s3_prefix_list):
            self._rule(self.ec2.authorize_security_group_egress, group, [permission])
        for anywhere in ({"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, {"Ipv6Ranges": [{"CidrIpv6": "::/0"}]}):
            self._rule(self.ec2.revoke_security_group_egress, group, [{"IpProtocol": "-1", **anywhere}])

    def _rule(self, change: Callable[..., Any], group: str, permissions: list[dict[str, Any]]) -> None:
        done = ("InvalidPermission.Duplicate", "InvalidPermission.NotFound")
        try:
            self._settled(lambda: change(GroupId=group, IpPermissions=permissions))
        except ClientError as error:
            if _code(error) not in done:
                raise

    def launch_template(
        self, name: str, fleet: Fleet, image: Image, group: str, profile: str, user_data: str, tags: Mapping[str, str]
    ) -> str:
        """Makes a fleet's launch template; its id.

        Raises:
            LaunchImpossibleError: there is one of that name which is not the run's; or what it is to hold is too large.
        """
        data = template_data(fleet, image, group, profile, user_data, tags)
        try:
            answer = self.ec2.create_launch_template(
                LaunchTemplateName=name,
                LaunchTemplateData=data,
                TagSpecifications=tag_specification("launch-template", tags),
            )
            return str(answer["LaunchTemplate"]["LaunchTemplateId"])
        except ClientError as error:
            if _code(error) != "InvalidLaunchTemplateName.AlreadyExistsException":
                raise
        filters = [{"Name": "launch-template-name", "Values": [name]}]

        def find() -> dict[str, Any]:
            templates = self.ec2.describe_launch_templates(Filters=filters)["LaunchTemplates"]
            return _the_one(templates, "InvalidLaunchTemplateId.NotFound", name)

        template = self._settled(find)
        _check_ours("launch template", name, _tags(template), tags)
        return str(template["LaunchTemplateId"])

    def group(self, name: str, fleet: Fleet, template: str, subnets: Sequence[str], tags: Mapping[str, str]) -> None:
        """Makes a fleet's Auto Scaling group, which begins to launch at once; :meth:`keep` belongs to it.

        Raises:
            LaunchImpossibleError: there is one of that name which is not the run's, or which is being deleted.
        """
        request = group_request(fleet, name, template, subnets, tags)
        try:
            self._settled(lambda: self.autoscaling.create_auto_scaling_group(**request))
        except ClientError as error:
            if _code(error) not in TAKEN:
                raise

            def find() -> dict[str, Any]:
                answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
                return _the_one(answer["AutoScalingGroups"], "InvalidGroup.NotFound", name)

            group = self._settled(find)
            _check_ours("Auto Scaling group", name, _tags(group), tags)
            if group.get("Status"):
                raise LaunchImpossibleError(f"the Auto Scaling group {name} is being deleted") from None

    def keep(self, name: str, until: datetime) -> None:
        """Keeps a group just made from moving its nodes about; and has Auto Scaling itself take it down to nothing at a
        moment, whatever has become of all that is to remove it before. Nodes shut themselves down then, too, and a
        group would replace them. Local AWS only takes note of that moment.
        """
        self._settled(
            lambda: self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["AZRebalance"])
        )
        self._settled(
            lambda: self.autoscaling.put_scheduled_update_group_action(
                AutoScalingGroupName=name,
                ScheduledActionName=f"{name}-expires",
                StartTime=until,
                MinSize=0,
                MaxSize=0,
                DesiredCapacity=0,
            )
        )

    def _settled(self, call: Callable[[], Any]) -> Any:
        """Calls until all of AWS knows what was just made, within about half a minute."""
        for attempt in range(1, TRIES + 1):
            try:
                return call()
            except ClientError as error:
                if attempt == TRIES or not _not_yet(error):
                    raise
                self.sleep(min(LONGEST_PAUSE, 0.5 * 2**attempt))
        raise AssertionError  # the last try returns or raises


def _not_yet(error: ClientError) -> bool:
    if _code(error) != "ValidationError":
        return _code(error) in NOT_YET
    message = error.response["Error"].get("Message", "").lower()
    return any(words in message for words in NOT_YET_WORDS)


def _the_one(matches: Sequence[dict[str, Any]], code: str, name: str) -> dict[str, Any]:
    if not matches:
        raise ClientError({"Error": {"Code": code, "Message": f"{name} is said to exist, and not seen"}}, "Describe")
    return matches[0]


def _check_ours(what: str, name: str, tags: Mapping[str, str], expected: Mapping[str, str]) -> None:
    if not is_ours(tags, expected):
        raise LaunchImpossibleError(f"there is a {what} named {name} that this run has not made: remove or rename it")


def _tags(described: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in described.get("Tags") or []}


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
