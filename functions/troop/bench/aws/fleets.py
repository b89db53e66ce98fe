"""Creates a cell's fleets on EC2 and Auto Scaling. Every resource has a fixed name, so nothing is created twice.

If a name is taken, the resource's tags decide: with the run's tags it comes from an earlier try, without them the
launch fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.definition.definition import Fleet
from troop.bench.fleets.fleet_requests import (
    IMAGE_PARAMETER,
    Image,
    LaunchImpossibleError,
    Subnet,
    egress,
    expiry_request,
    group_request,
    ingress,
    is_ours,
    placement_request,
    tag_specification,
    template_data,
)
from troop.bench.fleets.queue_requests import Endpoint, EndpointService, Site, endpoint_request, service_names
from troop.shared.tags import CELL_TAG, DEPLOYMENT_TAG, RUN_TAG

NO_SECURITY_GROUP = frozenset({"InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound"})
"""EC2's codes for a security group that does not exist, of different calls."""

NOT_YET = frozenset(
    {
        *NO_SECURITY_GROUP,
        "InvalidLaunchTemplateId.NotFound",
        "InvalidPlacementGroup.Unknown",
        "InvalidVpcEndpointId.NotFound",
        "IdempotentParameterMismatch",  # an endpoint of an earlier try, which is not listed yet
    }
)
"""Error codes of services that do not see a new resource yet."""

NOT_YET_WORDS = (
    *("invalid iaminstanceprofile", "launch template", "security group", "group name not found"),
    *("placement group", "invalidplacementgroup"),
)
"""Auto Scaling's only code is ValidationError; its message names what it has not found."""

TAKEN = frozenset({"AlreadyExists", "AlreadyExistsFault"})
"""Auto Scaling's two spellings of the error code for a taken name."""

_DUPLICATE = "InvalidPermission.Duplicate"

TRIES = 6
LONGEST_PAUSE = 8.0

AT_ONCE = 100
"""The most ids or names in one call."""

_BY_GROUP = "group-name"

DEAD = frozenset({"deleted", "deleting", "expired", "failed", "rejected"})
"""The states of endpoints that serve nobody."""

GONE = "deleted"
"""The state in which EC2 shows an endpoint for a while after its end."""


@dataclass(frozen=True)
class Fleets:
    """Creates what the step Launch needs."""

    ec2: Any
    autoscaling: Any
    ssm: Any
    sleep: Callable[[float], None] = time.sleep

    # Reading

    def architectures(self, types: Collection[str]) -> dict[str, frozenset[str]]:
        """Returns the architectures that each instance type supports.

        Raises:
            ClientError: InvalidInstanceType if the region does not offer a type.
        """
        names = sorted(types)
        architectures: dict[str, frozenset[str]] = {}
        for i in range(0, len(names), AT_ONCE):
            answer = self.ec2.describe_instance_types(InstanceTypes=names[i : i + AT_ONCE])
            for one in answer["InstanceTypes"]:
                architectures[one["InstanceType"]] = frozenset(one["ProcessorInfo"]["SupportedArchitectures"])
        return architectures

    def zones_of(self, types: Collection[str]) -> dict[str, frozenset[str]]:
        """Returns the names of the availability zones that offer each instance type."""
        pages = self.ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": sorted(types)}]
        )
        zones_by_type: dict[str, set[str]] = {one: set() for one in types}
        for page in pages:
            for offering in page["InstanceTypeOfferings"]:
                zones_by_type[offering["InstanceType"]].add(offering["Location"])
        return {one: frozenset(zones) for one, zones in zones_by_type.items()}

    def subnets(self, ids: Sequence[str]) -> list[Subnet]:
        """Returns the network's available subnets.

        Raises:
            ClientError: InvalidSubnetID.NotFound if one does not exist.
        """
        answer = self.ec2.describe_subnets(SubnetIds=list(ids))
        return [
            Subnet(one["SubnetId"], one["AvailabilityZone"]) for one in answer["Subnets"] if one["State"] == "available"
        ]

    def newest_image(self, architecture: str) -> Image:
        """Returns the current image of Amazon Linux 2023.

        Raises:
            LaunchImpossibleError: the parameter names an image that cannot be used.
        """
        name = IMAGE_PARAMETER + architecture
        image_id = self.ssm.get_parameter(Name=name)["Parameter"]["Value"]
        images = self.ec2.describe_images(ImageIds=[image_id])["Images"]
        if not images:
            raise LaunchImpossibleError(f"the image {image_id} that the parameter {name} names does not exist here")
        return Image(image_id, images[0]["RootDeviceName"])

    def s3_prefix_list(self) -> str:
        """Returns the id of the list of S3's addresses in the region; its name is the same in every partition.

        Raises:
            LaunchImpossibleError: there is none.
        """
        name = f"com.amazonaws.{self.ec2.meta.region_name}.s3"
        answer = self.ec2.describe_managed_prefix_lists(Filters=[{"Name": "prefix-list-name", "Values": [name]}])
        prefix_lists = [one["PrefixListId"] for one in answer["PrefixLists"]]
        if not prefix_lists:
            raise LaunchImpossibleError(f"there is no prefix list {name}: nodes could not reach S3 without a NAT")
        return str(prefix_lists[0])

    def endpoint_service(self) -> EndpointService:
        """Returns the service to which endpoints of SQS lead in the region.

        Raises:
            LaunchImpossibleError: AWS offers none here.
        """
        region = self.ec2.meta.region_name
        expected = service_names(region)
        answer = self.ec2.describe_vpc_endpoint_services(Filters=[{"Name": "service-name", "Values": expected}])
        for one in answer["ServiceDetails"]:
            described = [one, *one.get("PrivateDnsNames", [])]
            hosts = [host for each in described if (host := each.get("PrivateDnsName"))]
            usual = [host for host in hosts if host.startswith(f"sqs.{region}.amazonaws.com")]  # .cn follows in China
            if hosts:
                return EndpointService(one["ServiceName"], frozenset(one["AvailabilityZones"]), (usual or hosts)[0])
        raise LaunchImpossibleError(
            f"AWS offers no endpoint of SQS in {region}: leave out queue, or use another region"
        )

    # Creating

    def security_group(self, name: str, vpc: str, tags: Mapping[str, str]) -> str:
        """Creates a security group of the cell, with EC2's default rules only. Returns its id.

        Raises:
            LaunchImpossibleError: a group of this name is not the run's.
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
        """Adds the rules of a cell's nodes to a security group, and removes EC2's default, which allows all outbound
        traffic.
        """
        self._rule(self.ec2.authorize_security_group_ingress, group, ingress(group))
        for permission in egress(group, s3_prefix_list):
            self._rule(self.ec2.authorize_security_group_egress, group, [permission])
        self._close(group)

    def open(self, group: str, permissions: Sequence[dict[str, Any]]) -> None:
        """Replaces EC2's default egress rule of a security group, which would count for its quota, by these."""
        self._close(group)
        try:
            self._settled(
                lambda: self.ec2.authorize_security_group_egress(GroupId=group, IpPermissions=list(permissions))
            )
        except ClientError as error:
            if _code(error) != _DUPLICATE:  # EC2 adds all or none, so an earlier try has added all
                raise

    def _close(self, group: str) -> None:
        for anywhere in ({"IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, {"Ipv6Ranges": [{"CidrIpv6": "::/0"}]}):
            self._rule(self.ec2.revoke_security_group_egress, group, [{"IpProtocol": "-1", **anywhere}])

    def _rule(self, change: Callable[..., Any], group: str, permissions: list[dict[str, Any]]) -> None:
        done = (_DUPLICATE, "InvalidPermission.NotFound")
        try:
            self._settled(lambda: change(GroupId=group, IpPermissions=permissions))
        except ClientError as error:
            if _code(error) not in done:
                raise

    def endpoint(self, name: str, site: Site, group: str, queue: str, tags: Mapping[str, str]) -> Endpoint:
        """Creates the endpoint of a fleet's queue. Nodes can use it a minute or two later.

        Args:
            name, site, group, queue, tags: as in :func:`~troop.bench.fleets.queue_requests.endpoint_request`.

        Raises:
            LaunchImpossibleError: the network has too many endpoints, or AWS could not create this one.
        """
        request = endpoint_request(name, site, group, queue, tags)

        def find_or_create() -> dict[str, Any]:
            return self._endpoint(tags, site) or self.ec2.create_vpc_endpoint(**request)["VpcEndpoint"]

        try:
            endpoint = self._settled(find_or_create)
        except ClientError as error:
            if _code(error) != "VpcEndpointLimitExceeded":
                raise
            raise LaunchImpossibleError(
                f"the network {site.vpc} has no room for the endpoint of a queue: remove a fleet that has one, or "
                'raise the account\'s quota "Interface VPC endpoints per VPC" (vpc, L-29B6F2EB)'
            ) from error

        def named() -> dict[str, Any]:
            shown = endpoint if endpoint.get("DnsEntries") else self._endpoint(tags, site)
            return _the_one([shown] if shown and shown.get("DnsEntries") else [], "InvalidVpcEndpointId.NotFound", name)

        if endpoint["State"].lower() in DEAD:
            why = (endpoint.get("LastError") or {}).get("Message") or f"its state is {endpoint['State']}"
            raise LaunchImpossibleError(f"AWS could not create the endpoint {endpoint['VpcEndpointId']}: {why}")
        hosts = tuple(entry["DnsName"] for entry in self._settled(named)["DnsEntries"])
        return Endpoint(endpoint["VpcEndpointId"], hosts)

    def _endpoint(self, tags: Mapping[str, str], site: Site) -> dict[str, Any] | None:
        """Returns the endpoint that an earlier try has created; None if none is listed."""
        filters = [{"Name": f"tag:{key}", "Values": [tags[key]]} for key in (DEPLOYMENT_TAG, RUN_TAG, CELL_TAG)]
        pages = self.ec2.get_paginator("describe_vpc_endpoints").paginate(Filters=filters)
        every = [one for page in pages for one in page["VpcEndpoints"]]
        ours = (one for one in every if (one["ServiceName"], one["VpcId"]) == (site.service.name, site.vpc))
        return next((one for one in ours if one["State"].lower() != GONE), None)

    def placement_group(self, name: str, strategy: str, tags: Mapping[str, str]) -> None:
        """Creates a fleet's placement group.

        Raises:
            LaunchImpossibleError: a group of this name is not the run's.
        """
        try:
            self.ec2.create_placement_group(**placement_request(name, strategy, tags))
        except ClientError as error:
            if _code(error) != "InvalidPlacementGroup.Duplicate":
                raise
            filters = [{"Name": _BY_GROUP, "Values": [name]}]

            def find() -> dict[str, Any]:
                groups = self.ec2.describe_placement_groups(Filters=filters)["PlacementGroups"]
                return _the_one(groups, "InvalidPlacementGroup.Unknown", name)

            _check_ours("placement group", name, _tags(self._settled(find)), tags)

    def launch_template(
        self,
        name: str,
        fleet: Fleet,
        image: Image,
        groups: Sequence[str],
        profile: str,
        user_data: str,
        tags: Mapping[str, str],
        placement_group: str | None = None,
    ) -> str:
        """Creates a fleet's launch template. Returns its id.

        Raises:
            LaunchImpossibleError: a template of this name is not the run's; or its content is too large.
        """
        data = template_data(fleet, image, groups, profile, user_data, tags, placement_group)
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

    def group(
        self,
        name: str,
        fleet: Fleet,
        template: str,
        subnets: Sequence[str],
        tags: Mapping[str, str],
        *,
        is_balanced: bool = True,
        is_protected: bool = False,
    ) -> None:
        """Creates a fleet's Auto Scaling group, which starts to launch at once. Always call :meth:`keep` next.

        Args:
            is_balanced, is_protected: as in :func:`~troop.bench.fleets.fleet_requests.group_request`.

        Raises:
            LaunchImpossibleError: a group of this name is not the run's, or is being deleted.
        """
        request = group_request(
            fleet, name, template, subnets, tags, is_balanced=is_balanced, is_protected=is_protected
        )
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

    def keep(self, name: str, until: datetime, *, rebalances: bool = False) -> None:
        """Schedules a new group's size to 0 at a given moment, and stops it from rebalancing its nodes unless it may.

        The schedule works without Troop. Nodes shut themselves down at that moment too, and the group would replace
        them. Those that are protected from scale-in go only so. Local AWS stores the schedule, but does not run it.
        """
        if not rebalances:
            self._settled(
                lambda: self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["AZRebalance"])
            )
        self._settled(lambda: self.autoscaling.put_scheduled_update_group_action(**expiry_request(name, until)))

    def _settled(self, call: Callable[[], Any]) -> Any:
        """Repeats a call until all of AWS knows a new resource, for about half a minute at most."""
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
        raise ClientError({"Error": {"Code": code, "Message": f"{name} exists, but cannot be seen yet"}}, "Describe")
    return matches[0]


def _check_ours(kind: str, name: str, tags: Mapping[str, str], expected: Mapping[str, str]) -> None:
    if not is_ours(tags, expected):
        raise LaunchImpossibleError(f"the {kind} {name} exists, but this run did not create it: remove or rename it")


def _tags(described: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in described.get("Tags") or []}


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
