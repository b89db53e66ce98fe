"""Copies networks that CloudFormation created in MiniStack into moto, with the same ids, for launches of groups."""

from __future__ import annotations

from typing import Any

from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import ec2 as source
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.security_groups import SecurityGroup
from moto.ec2.models.subnets import Subnet
from moto.ec2.models.vpcs import VPC

from .config import ACCOUNT_ID, REGION

LOOPBACK = "127.0.0.0/8"
"""Instances are processes of this machine, so all networks have a route to its services."""


def mirror(backend: Any) -> dict[str, int]:
    """Copies new networks; returns their numbers: {"vpcs", "subnets", "security_groups"}."""
    set_request_account_id(ACCOUNT_ID)
    set_request_region(REGION)
    return {
        "vpcs": sum(_vpc(backend, vpc) for vpc in list(source._vpcs.values())),
        "subnets": sum(_subnet(backend, subnet) for subnet in list(source._subnets.values())),
        "security_groups": sum(_security_group(backend, group) for group in list(source._security_groups.values())),
    }


def _tags(resource_id: str) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in source._tags.get(resource_id, [])}


def _vpc(backend: Any, vpc: dict[str, Any]) -> bool:
    if vpc.get("IsDefault") or vpc["VpcId"] in backend.vpcs:
        return False
    copy = VPC(backend, vpc["VpcId"], vpc["CidrBlock"], is_default=False)
    backend.vpcs[copy.id] = copy
    table = backend.create_route_table(copy.id, main=True)
    backend.create_route(table.id, LOOPBACK, local=True)
    backend.create_network_acl(copy.id, default=True)
    copy.add_tags(_tags(copy.id))
    return True


def _subnet(backend: Any, subnet: dict[str, Any]) -> bool:
    known = any(subnet["SubnetId"] in zone_subnets for zone_subnets in backend.subnets.values())
    if known or subnet["VpcId"] not in backend.vpcs:
        return False
    zone = next(one for one in RegionsAndZonesBackend.zones[REGION] if one.name == subnet["AvailabilityZone"])
    public = bool(subnet.get("MapPublicIpOnLaunch", False))
    copy = Subnet(backend, subnet["SubnetId"], subnet["VpcId"], subnet["CidrBlock"], None, zone, False, public)
    backend.subnets[zone.name][copy.id] = copy
    copy.add_tags(_tags(copy.id))
    return True


def _security_group(backend: Any, group: dict[str, Any]) -> bool:
    vpc_id = group.get("VpcId")
    if vpc_id not in backend.vpcs or group["GroupId"] in backend.groups[vpc_id]:
        return False
    backend.groups[vpc_id][group["GroupId"]] = SecurityGroup(
        backend,
        group["GroupId"],
        group["GroupName"],
        group.get("Description") or "-",
        vpc_id=vpc_id,
        tags=_tags(group["GroupId"]),
    )
    return True
