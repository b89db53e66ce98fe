"""Reads which instances consent to faults inside them, and which of these Systems Manager reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from troop.shared.tags import CONSENTS, INSIDE_TAG

_MOST_VALUES = 200
"""The most values of a filter of EC2."""

_IDS_READ = 50
"""The number of instances in a call to Systems Manager, whose pages are not longer."""

_CALLS = 4
"""The most calls to Systems Manager for a unit."""

MOST_LOOKED_UP = _IDS_READ * _CALLS
"""The most instances of a unit about which Systems Manager is asked."""

_REACHED = ("Online", "Linux")


def read_consents(ec2: Any, groups: Sequence[str] | None = None) -> dict[str, str]:
    """Returns the values of the tag ``troop:inside`` of running instances that consent, by id: all of the account and
    region, or those of some groups.
    """
    if groups is None:
        return _consents(ec2, [])
    consents: dict[str, str] = {}
    for first in range(0, len(groups), _MOST_VALUES):
        some = list(groups[first : first + _MOST_VALUES])
        consents |= _consents(ec2, [{"Name": "tag:aws:autoscaling:groupName", "Values": some}])
    return consents


def _consents(ec2: Any, filters: list[dict[str, Any]]) -> dict[str, str]:
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[
            *filters,
            {"Name": f"tag:{INSIDE_TAG}", "Values": list(CONSENTS)},
            {"Name": "instance-state-name", "Values": ["running"]},
        ],
        PaginationConfig={"PageSize": 1000},
    )
    instances = (i for page in pages for r in page["Reservations"] for i in r["Instances"])
    return {i["InstanceId"]: {t["Key"]: t["Value"] for t in i["Tags"]}[INSIDE_TAG] for i in instances}


def reached(ssm: Any, instances: Sequence[str]) -> frozenset[str]:
    """Returns which of 200 instances at most, with Linux, are online in Systems Manager. One call for 50."""
    return frozenset(one for some in _reached(ssm, instances) for one in some)


def first_reached(ssm: Any, instances: Sequence[str]) -> frozenset[str]:
    """Returns ids of instances with Linux that are online in Systems Manager: all such among the first 50 of which one
    is. Asks about 200 instances at most; the others count as not online.

    Online means that the agent has reported in the last minutes: nothing proves that it still runs.
    """
    return next(filter(None, _reached(ssm, instances)), frozenset())


def _reached(ssm: Any, instances: Sequence[str]) -> Iterator[frozenset[str]]:
    for first in range(0, min(len(instances), MOST_LOOKED_UP), _IDS_READ):
        some = list(instances[first : first + _IDS_READ])
        pages = ssm.get_paginator("describe_instance_information").paginate(
            Filters=[{"Key": "InstanceIds", "Values": some}], PaginationConfig={"PageSize": _IDS_READ}
        )
        known = (one for page in pages for one in page["InstanceInformationList"])
        yield frozenset(
            one["InstanceId"] for one in known if (one.get("PingStatus"), one.get("PlatformType")) == _REACHED
        )
