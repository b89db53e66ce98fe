"""Reads the instances outside Auto Scaling groups, with the caller's credentials: chaos never selects them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from cli.shared import aws

PAGES = 10
"""The most requests; each returns up to 1,000 instances."""

SHOWN = 100
_GROUP_TAG = "aws:autoscaling:groupName"
"""Auto Scaling sets this tag on all instances of its groups, also on those that users attach."""


def read(ec2: Any) -> dict[str, Any]:
    """Returns the number of these instances, and the first of them by name, as JSON.

    EC2 has no filter for the lack of a tag, so this reads all instances, at most :data:`PAGES` pages. Only the pages
    that it has read count; ``limited`` says that there are more.

    Raises:
        CliError: they cannot be read.
    """
    paginator = ec2.get_paginator("describe_instances")
    rows: list[dict[str, Any]] = []
    read_all = True
    with aws.translated_errors():
        pages = paginator.paginate(
            Filters=[{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}],
            PaginationConfig={"PageSize": 1000},
        )
        for page in islice(pages, PAGES):
            read_all = not page.get("NextToken")
            instances = (one for reservation in page["Reservations"] for one in reservation["Instances"])
            rows += [_row(one) for one in instances if _GROUP_TAG not in _tags(one)]
    rows.sort(key=lambda row: (row["name"].lower(), row["instance_id"]))
    return {"count": len(rows), "limited": not read_all, "instances": rows[:SHOWN]}


def _tags(instance: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}


def _row(instance: dict[str, Any]) -> dict[str, Any]:
    return {
        "instance_id": instance["InstanceId"],
        "name": _tags(instance).get("Name", ""),
        "type": instance.get("InstanceType", ""),
        "state": instance["State"]["Name"],
        "zone": instance.get("Placement", {}).get("AvailabilityZone", ""),
    }
