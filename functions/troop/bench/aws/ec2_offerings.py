"""Reads which instance types EC2 offers in a region, and in which zones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from troop.bench.admission.admission import InstanceType
from troop.bench.fleets.type_facts import facts_of

AT_ONCE = 100
"""Names in one call; EC2 accepts at most twice as many in a filter."""


def read_offers(client: Any, types: Iterable[str], subnets: Iterable[str]) -> dict[str, InstanceType]:
    """Returns the offers for some instance types, by name; types that do not exist are missing.

    Args:
        client: EC2's.
        types: their names.
        subnets: ids; only the zones of these subnets are considered.

    Raises:
        ClientError: EC2 refused.
    """
    described_subnets = client.describe_subnets(SubnetIds=sorted(subnets))["Subnets"]
    usable = {subnet["AvailabilityZone"] for subnet in described_subnets}
    names, offers = sorted(set(types)), dict[str, InstanceType]()
    for i in range(0, len(names), AT_ONCE):
        offers |= _read(client, names[i : i + AT_ONCE], usable)
    return offers


def _read(client: Any, types: list[str], usable: set[str]) -> dict[str, InstanceType]:
    type_filter = [{"Name": "instance-type", "Values": types}]
    # A filter ignores a type that does not exist; naming it directly is an error.
    pages = client.get_paginator("describe_instance_types").paginate(Filters=type_filter)
    described = {description["InstanceType"]: description for page in pages for description in page["InstanceTypes"]}
    zones: dict[str, set[str]] = defaultdict(set)
    offerings = client.get_paginator("describe_instance_type_offerings")
    for page in offerings.paginate(LocationType="availability-zone", Filters=type_filter):
        for offer in page["InstanceTypeOfferings"]:
            zones[offer["InstanceType"]].add(offer["Location"])
    return {
        name: InstanceType(
            frozenset(description["ProcessorInfo"]["SupportedArchitectures"]),
            frozenset(zones[name] & usable),
            int(description.get("VCpuInfo", {}).get("DefaultVCpus", 0)),
            facts_of(description),
            frozenset(groups["SupportedStrategies"]) if (groups := description.get("PlacementGroupInfo")) else None,
        )
        for name, description in described.items()
    }
