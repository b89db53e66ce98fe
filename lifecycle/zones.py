"""In which availability zones the network's subnets are: decided once, when a subnet is made.

A subnet cannot move to another zone and keep its addresses. So those that are there keep theirs, whatever the region
has gained or lost since, and CloudFormation is told names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import boto3

from cli import aws
from cli.errors import CliError, Exit
from lifecycle.resources import Resource

_SUBNET = re.compile(r"NodesSubnet([0-9]+)Subnet[0-9A-F]{8}$")
"""Logical ids of the own network's subnets, numbered from 1."""


def choose_zones(
    setting: int | Sequence[str], there: Mapping[int, str], available: Iterable[str], region: str
) -> tuple[str, ...]:
    """Names for the subnets, in their order; fewer than wanted where the region has no more.

    Args:
        setting: how many, or which.
        there: zones of the subnets that exist, by position from 0.
        available: zones in which subnets can be made, the best first.
        region: for what is said.

    Raises:
        CliError: USAGE, for names that the region does not have, or that would move a subnet; FAILED, when no zone can
            be had at all.
    """
    has = list(available)
    if not isinstance(setting, int):
        names = ", ".join(setting)
        if any(zone != setting[place] for place, zone in there.items() if place < len(setting)):
            current = ", ".join(there[place] for place in sorted(there))
            raise CliError(
                Exit.USAGE,
                f"troop:zones is {names}: must begin with {current}, where the network's subnets are: they cannot move",
            )
        if unknown := [zone for zone in setting if zone not in {*has, *there.values()}]:
            raise CliError(
                Exit.USAGE,
                f"troop:zones is {names}: must be among the zones that {region} has for this account, and "
                f"{', '.join(unknown)} is not: it has {', '.join(has)}",
            )
        return tuple(setting)
    further = iter([zone for zone in has if zone not in there.values()])
    chosen = (there.get(place) or next(further, "") for place in range(setting))
    zones = tuple(zone for zone in chosen if zone)
    if not zones:
        raise CliError(
            Exit.FAILED,
            f"{region} has no availability zone for this account at present: try again later, or take another region",
        )
    return zones


def zones_there(session: boto3.Session, resources: Mapping[str, Resource]) -> dict[int, str]:
    """The zones of a stack's subnets, by position from 0, as far as the subnets exist.

    Args:
        resources: of the stack, by logical id.
    """
    places = {
        resource.physical_id: int(match[1]) - 1
        for logical_id, resource in resources.items()
        if resource.kind == "AWS::EC2::Subnet" and (match := _SUBNET.search(logical_id))
    }
    if not places:
        return {}
    filters = [{"Name": "subnet-id", "Values": sorted(places)}]  # one that is gone is no error so
    with aws.translated_errors():
        subnets = aws.client(session, "ec2").describe_subnets(Filters=filters)["Subnets"]
    return {places[subnet["SubnetId"]]: subnet["AvailabilityZone"] for subnet in subnets}


def zones_available(session: boto3.Session) -> list[str]:
    """Names of the zones in which this account can make subnets: no local or Wavelength zones, none that is down.

    Those with a default subnet come first, as they do for CloudFormation: in an account of some age there are zones
    that take no new subnets, and nothing but the refusal says so.
    """
    ec2 = aws.client(session, "ec2")
    with aws.translated_errors():
        zones = ec2.describe_availability_zones()["AvailabilityZones"]
        defaults = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    proven = {subnet["AvailabilityZone"] for subnet in defaults}
    names = [
        zone["ZoneName"]
        for zone in zones
        if zone.get("State") == "available"
        and zone.get("ZoneType", "availability-zone") == "availability-zone"
        and zone.get("OptInStatus") != "not-opted-in"
    ]
    return sorted(names, key=lambda name: (name not in proven, name))
