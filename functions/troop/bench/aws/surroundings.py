"""Looks up what a file's targets name, and the routes of the nodes' subnets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from ipaddress import IPv4Network
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.admission.reach import Balancer, Route, Surroundings
from troop.bench.aws.fleets import NO_SECURITY_GROUP
from troop.bench.definition.definition import Target

_NO_BALANCER = "LoadBalancerNotFound"
_NO_GROUP = NO_SECURITY_GROUP | frozenset({"InvalidGroupId.Malformed", "InvalidSecurityGroupId.Malformed"})
_GATEWAYS = (
    *("GatewayId", "NatGatewayId", "TransitGatewayId", "VpcPeeringConnectionId", "NetworkInterfaceId"),
    *("InstanceId", "LocalGatewayId", "CarrierGatewayId", "CoreNetworkArn"),
)


def read_surroundings(
    ec2: Any, elb: Callable[[], Any], targets: Iterable[Target], vpc: str, subnets: Sequence[str]
) -> Surroundings:
    """Looks up only what the targets need.

    Args:
        elb: returns the client of Elastic Load Balancing (version 2), which few requests need.
        vpc: id of the nodes' network.
        subnets: ids of the nodes' subnets.

    Raises:
        ClientError: AWS refused.
    """
    every = list(targets)
    balancers = sorted({one.load_balancer for one in every if one.load_balancer})
    groups = sorted({one.security_group for one in every if one.security_group})
    return Surroundings(
        vpc,
        routes_of(ec2, vpc, subnets) if any(one.addresses for one in every) else {},
        {name: _balancer(ec2, elb(), name) for name in balancers},
        {group: _network_of(ec2, group) for group in groups},
    )


def _balancer(ec2: Any, elb: Any, name: str) -> Balancer | None:
    try:
        (one,) = elb.describe_load_balancers(Names=[name])["LoadBalancers"]
    except ClientError as error:
        if error.response["Error"]["Code"] == _NO_BALANCER:
            return None
        raise
    groups = tuple(one.get("SecurityGroups") or ())
    addresses = () if groups else _addresses(ec2, one["LoadBalancerArn"])
    # A Gateway Load Balancer, which is refused later, has neither name nor scheme.
    return Balancer(one.get("DNSName", ""), one["VpcId"], one["Type"], one.get("Scheme", ""), groups, addresses)


def _addresses(ec2: Any, arn: str) -> tuple[str, ...]:
    """Returns the addresses of a load balancer's network interfaces, which those of a Network Load Balancer keep."""
    description = f"ELB {arn.partition(':loadbalancer/')[2]}"
    pages = ec2.get_paginator("describe_network_interfaces").paginate(
        Filters=[{"Name": "description", "Values": [description]}]
    )
    return tuple(sorted(f"{one['PrivateIpAddress']}/32" for page in pages for one in page["NetworkInterfaces"]))


def _network_of(ec2: Any, group: str) -> str | None:
    try:
        (one,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    except ClientError as error:
        if error.response["Error"]["Code"] in _NO_GROUP:
            return None
        raise
    return str(one["VpcId"])


def routes_of(ec2: Any, vpc: str, subnets: Collection[str]) -> dict[str, tuple[Route, ...]]:
    """Returns the active IPv4 routes of each subnet; those of the network's main table for a subnet without its own.

    Raises:
        ClientError: EC2 refused.
    """
    return {subnet: tuple(_routes(table)) for subnet, table in _tables_of(ec2, vpc, subnets).items()}


def subnets_without_s3(ec2: Any, vpc: str, subnets: Collection[str]) -> list[str]:
    """Returns the subnets whose route table has no gateway endpoint of S3.

    Raises:
        ClientError: EC2 refused.
    """
    service = f"com.amazonaws.{ec2.meta.region_name}.s3"
    filters = [
        {"Name": "vpc-id", "Values": [vpc]},
        {"Name": "service-name", "Values": [service, f"cn.{service}"]},  # some services of China have this prefix
        {"Name": "vpc-endpoint-type", "Values": ["Gateway"]},
    ]
    pages = ec2.get_paginator("describe_vpc_endpoints").paginate(Filters=filters)
    endpoints = [one for page in pages for one in page["VpcEndpoints"] if one["State"].lower() == "available"]
    served = {table for one in endpoints for table in one.get("RouteTableIds", ())}
    tables = _tables_of(ec2, vpc, subnets)
    return [subnet for subnet, table in tables.items() if table.get("RouteTableId") not in served]


def _tables_of(ec2: Any, vpc: str, subnets: Collection[str]) -> dict[str, dict[str, Any]]:
    tables = _tables(ec2, vpc)
    own = {link["SubnetId"]: table for table in tables for link in table["Associations"] if link.get("SubnetId")}
    nothing: dict[str, Any] = {"Routes": []}
    main = next((table for table in tables if any(link.get("Main") for link in table["Associations"])), nothing)
    return {subnet: own.get(subnet, main) for subnet in subnets}


def _tables(ec2: Any, vpc: str) -> list[dict[str, Any]]:
    pages = ec2.get_paginator("describe_route_tables").paginate(Filters=[{"Name": "vpc-id", "Values": [vpc]}])
    return [table for page in pages for table in page["RouteTables"]]


def _routes(table: dict[str, Any]) -> Iterable[Route]:
    for one in table["Routes"]:
        if one.get("State", "active") != "active":
            continue
        gateway = next((one[key] for key in _GATEWAYS if one.get(key)), "")
        if one.get("DestinationCidrBlock"):
            yield Route(IPv4Network(one["DestinationCidrBlock"]), gateway)
        elif one.get("DestinationPrefixListId"):
            yield Route(None, gateway)
