"""Chooses the availability zones of the network's subnets, once, when a subnet is created.

A subnet cannot move to another zone and keep its addresses. Existing subnets therefore keep theirs, even if the region
gains or loses zones, and CloudFormation gets names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import boto3

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle.resources import Resource

_SUBNET = re.compile(r"NodesSubnet([0-9]+)Subnet[0-9A-F]{8}$")
"""The logical ids of the subnets of Troop's network, numbered from 1."""


def choose_zones(
    setting: int | Sequence[str], there: Mapping[int, str], available: Iterable[str], region: str
) -> tuple[str, ...]:
    """Chooses the zones of the subnets, in their order; fewer than the setting if the region has no more.

    Args:
        setting: their number, or their names.
        there: zones of the subnets that exist, by position from 0.
        available: zones that accept subnets, the best first.
        region: for messages.

    Raises:
        CliError: USAGE, for names that the region does not have, or that would move a subnet; FAILED, if there is no
            zone at all.
    """
    has = list(available)
    if not isinstance(setting, int):
        names = ", ".join(setting)
        if any(zone != setting[place] for place, zone in there.items() if place < len(setting)):
            current = ", ".join(there[place] for place in sorted(there))
            raise CliError(
                Exit.USAGE,
                f"troop:zones is {names}: must begin with {current}, the zones of existing subnets, which cannot move",
            )
        if unknown := [zone for zone in setting if zone not in {*has, *there.values()}]:
            raise CliError(
                Exit.USAGE,
                f"troop:zones is {names}: {', '.join(unknown)} is not a zone that {region} has for this account. "
                f"Choose from {', '.join(has)}",
            )
        return tuple(setting)
    further = iter([zone for zone in has if zone not in there.values()])
    chosen = (there.get(place) or next(further, "") for place in range(setting))
    zones = tuple(zone for zone in chosen if zone)
    if not zones:
        raise CliError(
            Exit.FAILED,
            f"{region} has no availability zone for this account at present: try again later, or use another region",
        )
    return zones


def zones_there(session: boto3.Session, resources: Mapping[str, Resource]) -> dict[int, str]:
    """Returns the zones of a stack's existing subnets, by position from 0.

    Args:
        resources: the stack's resources by logical id.
    """
    places = {
        resource.physical_id: int(match[1]) - 1
        for logical_id, resource in resources.items()
        if resource.kind == "AWS::EC2::Subnet" and (match := _SUBNET.search(logical_id))
    }
    if not places:
        return {}
    filters = [{"Name": "subnet-id", "Values": sorted(places)}]  # a filter ignores a missing subnet; ids would raise
    with aws.translated_errors():
        subnets = aws.client(session, "ec2").describe_subnets(Filters=filters)["Subnets"]
    return {places[subnet["SubnetId"]]: subnet["AvailabilityZone"] for subnet in subnets}


def zones_available(session: boto3.Session) -> list[str]:
    """Lists the zones in which this account can create subnets: available, and not local or Wavelength zones.

    Those with a default subnet come first, as in CloudFormation: in older accounts some zones accept no new subnets,
    which only a refusal shows.
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
