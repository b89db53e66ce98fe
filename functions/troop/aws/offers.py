"""What EC2 offers in a region: which instance types there are, and in which zones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from troop.bench.admission import InstanceType


def read_offers(client: Any, types: Iterable[str], subnets: Iterable[str]) -> dict[str, InstanceType]:
    """What there is of some instance types, by name; those that there are not are missing.

    Args:
        client: EC2's.
        types: at most 100 names.
        subnets: ids; of their zones alone it is told whether they have a type.

    Raises:
        ClientError: EC2 refused.
    """
    wanted = [{"Name": "instance-type", "Values": sorted(set(types))}]
    found = client.describe_subnets(SubnetIds=sorted(subnets))["Subnets"]
    usable = {subnet["AvailabilityZone"] for subnet in found}
    # Named as a filter, a type that does not exist is left out of the answer; named by itself, it would be an error.
    pages = client.get_paginator("describe_instance_types").paginate(Filters=wanted)
    architectures = {
        told["InstanceType"]: frozenset(told["ProcessorInfo"]["SupportedArchitectures"])
        for page in pages
        for told in page["InstanceTypes"]
    }
    zones: dict[str, set[str]] = defaultdict(set)
    offerings = client.get_paginator("describe_instance_type_offerings")
    for page in offerings.paginate(LocationType="availability-zone", Filters=wanted):
        for offer in page["InstanceTypeOfferings"]:
            zones[offer["InstanceType"]].add(offer["Location"])
    return {name: InstanceType(kinds, frozenset(zones[name] & usable)) for name, kinds in architectures.items()}
