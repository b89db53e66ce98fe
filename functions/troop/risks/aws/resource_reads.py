"""Lists what the account has, by paged calls, each kind with a limit. One kind that cannot be read stops no other.

With the most pages, a reading makes about 500 calls; an account of 1,000 groups and 10,000 instances needs about 60.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.tagged_resources import TEMPLATE_TAG
from troop.risks.facts import Image, Leftover, Machine, Setup, Version
from troop.risks.listing import Listing
from troop.shared import moments
from troop.shared.tags import RUN_TAG

GROUP_TAG = "aws:autoscaling:groupName"

KEEPERS = (
    RUN_TAG,
    "aws:ec2:fleet-id",
    "aws:ec2spot:fleet-request-id",
    "aws:elasticmapreduce:job-flow-id",
    "karpenter.sh/nodepool",
    "karpenter.sh/provisioner-name",
)
"""Tags of instances that something other than a group launches and replaces."""

BACKUP_TAG = "aws:backup:source-resource"
"""A tag of snapshots that only AWS Backup can delete."""

INSTANCE_PAGES, IMAGE_PAGES, BALANCER_PAGES = 100, 20, 50
VOLUME_PAGES, SNAPSHOT_PAGES, TEMPLATE_PAGES = 40, 40, 50
"""The most pages of each kind: 1,000 instances, images or snapshots, 400 load balancers, 500 volumes, 200 templates."""

_IDS_AT_ONCE = 200
"""The most values of a filter."""

_RUNS = ("pending", "running")

_OWNER_TAGS = ("troop:owner", "owner")

Raw = Mapping[str, Any]


def listing(words: str, pages: Iterable[Raw], rows_of: Callable[[Raw], Iterable[Raw]], most: int) -> Listing[Raw]:
    """Reads at most so many pages.

    Args:
        words: what is listed, in the plural, for the problem.
    """
    rows: list[Raw] = []
    try:
        for number, page in enumerate(pages):
            if number == most:
                return Listing(tuple(rows), f"only the first {len(rows):,} {words} were read")
            rows += rows_of(page)
    except ClientError as error:
        return Listing(tuple(rows), f"{words} could not be read: {error.response['Error']['Code']}")
    except BotoCoreError as error:
        return Listing(tuple(rows), f"{words} could not be read: {type(error).__name__}")
    return Listing(tuple(rows))


def to_setup(raw: Raw) -> Setup:
    """Converts Auto Scaling's description of a group."""
    policy = raw.get("MixedInstancesPolicy") or {}
    mixed, distribution = policy.get("LaunchTemplate", {}), policy.get("InstancesDistribution", {})
    overrides = mixed.get("Overrides", [])
    templates = [
        holder[key]
        for holder, key in [
            (raw, "LaunchTemplate"),
            *((one, "LaunchTemplateSpecification") for one in (mixed, *overrides)),
        ]
        if holder.get(key)
    ]
    if "LaunchConfigurationName" in raw:
        templates.append({"LaunchTemplateId": raw["LaunchConfigurationName"], "Version": ""})
    by_attributes = any("InstanceRequirements" in one for one in overrides)
    percent, base = (
        distribution.get("OnDemandPercentageAboveBaseCapacity", 100),
        distribution.get("OnDemandBaseCapacity"),
    )
    return Setup(
        created=raw["CreatedTime"],
        zones=frozenset(raw.get("AvailabilityZones", [])),
        least=int(raw["MinSize"]),
        most=int(raw["MaxSize"]),
        health_checks=frozenset(part.strip() for part in raw.get("HealthCheckType", "").split(",") if part.strip()),
        grace=int(raw.get("HealthCheckGracePeriod", 0)),
        templates=tuple((one["LaunchTemplateId"], one.get("Version", "$Default")) for one in templates),
        types=None if by_attributes else frozenset(one["InstanceType"] for one in overrides if "InstanceType" in one),
        images=frozenset(one["ImageId"] for one in overrides if "ImageId" in one),
        spot=not (percent or base) if policy else None,
    )


def read_machines(ec2: Any, now: datetime) -> Listing[Machine]:
    """Lists the instances, also those that are stopped."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-state-name", "Values": [*_RUNS, "stopping", "stopped"]}],
        PaginationConfig={"PageSize": 1000},
    )
    rows = listing("instances", pages, _instances, INSTANCE_PAGES)
    return rows.convert(partial(_machine, now))


def _instances(page: Raw) -> Iterable[Raw]:
    return (instance for reservation in page["Reservations"] for instance in reservation["Instances"])


def _machine(now: datetime, raw: Raw) -> Machine:
    tags, operator = _tags(raw), raw.get("Operator") or {}
    return Machine(
        name=raw["InstanceId"],
        owner=_owner(tags),
        now=now,
        launched=raw["LaunchTime"],
        runs=raw["State"]["Name"] in _RUNS,
        title=tags.get("Name", ""),
        group=tags.get(GROUP_TAG, ""),
        keeper=str(operator.get("Principal", "")) or next((tag for tag in KEEPERS if tag in tags), ""),
        image=raw.get("ImageId", ""),
        kind=raw.get("InstanceType", ""),
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        spot=raw.get("InstanceLifecycle") == "spot",
        template=tags.get(TEMPLATE_TAG, ""),
    )


def read_versions(ec2: Any) -> Listing[Version]:
    """Lists the latest and the default version of each launch template."""
    pages = ec2.get_paginator("describe_launch_template_versions").paginate(
        Versions=["$Latest", "$Default"], PaginationConfig={"PageSize": 200}
    )
    words = "versions of launch templates"
    return listing(words, pages, lambda page: page["LaunchTemplateVersions"], TEMPLATE_PAGES).convert(_version)


def _version(raw: Raw) -> Version:
    data = raw["LaunchTemplateData"]
    return Version(
        template=raw["LaunchTemplateId"],
        number=raw["VersionNumber"],
        is_default=raw["DefaultVersion"],
        image=data.get("ImageId", ""),
        by_attributes="InstanceRequirements" in data,
    )


def read_images(ec2: Any, ids: Collection[str]) -> Listing[Image]:
    """Finds out which images exist and may be used; one call for 200."""
    names = sorted(ids)
    batches = [names[first : first + _IDS_AT_ONCE] for first in range(0, len(names), _IDS_AT_ONCE)]
    pages = (
        ec2.describe_images(Filters=[{"Name": "image-id", "Values": batch}], IncludeDeprecated=True)
        for batch in batches
    )
    rows = listing("images", pages, lambda page: page["Images"], len(batches))
    existing = {raw["ImageId"]: raw.get("DeprecationTime") for raw in rows.rows}
    if not rows.is_complete:
        names = sorted(existing)  # of the others nothing is known
    images = (
        Image(name, name in existing, moments.parse(when) if (when := existing.get(name)) else None) for name in names
    )
    return Listing(tuple(images), rows.problem)


def read_own_snapshots_of_images(ec2: Any) -> Listing[str]:
    """Lists the snapshots that the account's own images use."""
    pages = ec2.get_paginator("describe_images").paginate(
        Owners=["self"], IncludeDisabled=True, PaginationConfig={"PageSize": 1000}
    )
    rows = listing("the account's images", pages, lambda page: page["Images"], IMAGE_PAGES)
    disks = (disk.get("Ebs", {}).get("SnapshotId") for raw in rows.rows for disk in raw.get("BlockDeviceMappings", []))
    return Listing(tuple(name for name in disks if name), rows.problem)


def read_balancer_zones(elbv2: Any, elb: Any) -> Listing[tuple[str, Mapping[str, frozenset[str]]]]:
    """Lists the zones of the load balancers of each traffic source: by their names, for a target group by its ARN, and
    for a Classic Load Balancer by its name.
    """
    pages = elbv2.get_paginator("describe_target_groups").paginate(PaginationConfig={"PageSize": 400})
    targets = listing("target groups", pages, lambda page: page["TargetGroups"], BALANCER_PAGES)
    pages = elbv2.get_paginator("describe_load_balancers").paginate(PaginationConfig={"PageSize": 400})
    balancers = listing("load balancers", pages, lambda page: page["LoadBalancers"], BALANCER_PAGES)
    pages = elb.get_paginator("describe_load_balancers").paginate(PaginationConfig={"PageSize": 400})
    classic = listing("Classic Load Balancers", pages, lambda page: page["LoadBalancerDescriptions"], BALANCER_PAGES)
    zones = {
        raw["LoadBalancerArn"]: (raw["LoadBalancerName"], _zone_names(raw["AvailabilityZones"]))
        for raw in balancers.rows
    }
    rows = [
        (raw["TargetGroupArn"], dict(zones[arn] for arn in raw.get("LoadBalancerArns", ())))
        for raw in targets.rows
        if all(arn in zones for arn in raw.get("LoadBalancerArns", ()))
    ]
    rows += [
        (raw["LoadBalancerName"], {raw["LoadBalancerName"]: frozenset(raw["AvailabilityZones"])})
        for raw in classic.rows
    ]
    return Listing(tuple(rows), "; ".join(one.problem for one in (targets, balancers, classic) if one.problem))


def _zone_names(zones: Sequence[Raw]) -> frozenset[str]:
    return frozenset(zone["ZoneName"] for zone in zones)


def read_volumes(ec2: Any, now: datetime, price: Callable[[Raw], Any]) -> Listing[Leftover]:
    """Lists the volumes that are attached to nothing."""
    pages = ec2.get_paginator("describe_volumes").paginate(
        Filters=[{"Name": "status", "Values": ["available"]}], PaginationConfig={"PageSize": 500}
    )
    rows = listing("volumes", pages, lambda page: page["Volumes"], VOLUME_PAGES)
    return rows.convert(
        lambda raw: _leftover(
            raw, "VolumeId", now, used=False, kind=f"{raw['Size']} GiB {raw['VolumeType']}", monthly=price(raw)
        )
    )


def read_snapshots(
    ec2: Any, now: datetime, image_snapshots: Listing[str], price: Callable[[Raw], Any]
) -> Listing[Leftover]:
    """Lists the account's own snapshots, and whether its images or AWS Backup use them."""
    used = frozenset(image_snapshots.rows)

    def is_used(raw: Raw) -> bool | None:
        if raw["SnapshotId"] in used or BACKUP_TAG in _tags(raw):
            return True
        return False if image_snapshots.is_complete else None

    pages = ec2.get_paginator("describe_snapshots").paginate(OwnerIds=["self"], PaginationConfig={"PageSize": 1000})
    rows = listing("snapshots", pages, lambda page: page["Snapshots"], SNAPSHOT_PAGES)
    return rows.convert(
        lambda raw: _leftover(
            raw,
            "SnapshotId",
            now,
            used=is_used(raw),
            kind=f"{raw['VolumeSize']} GiB of {raw.get('VolumeId', 'a volume')}",
            created="StartTime",
            monthly=price(raw),
            at_most=True,
        )
    )


def read_templates(
    ec2: Any, now: datetime, group_templates: Collection[str], machines: Listing[Machine], in_eks: bool
) -> Listing[Leftover]:
    """Lists the launch templates, and whether groups or instances use them.

    Args:
        in_eks: whether EKS can use any of them by a copy.
    """
    used = {*group_templates, *(machine.template for machine in machines.rows)}
    pages = ec2.get_paginator("describe_launch_templates").paginate(PaginationConfig={"PageSize": 200})
    rows = listing("launch templates", pages, lambda page: page["LaunchTemplates"], TEMPLATE_PAGES)
    return rows.convert(
        lambda raw: _leftover(
            raw,
            "LaunchTemplateId",
            now,
            used=True if raw["LaunchTemplateId"] in used else False if machines.is_complete and not in_eks else None,
            kind=raw["LaunchTemplateName"],
        )
    )


def read_addresses(ec2: Any, now: datetime, price: Callable[[Raw], Any]) -> Listing[Leftover]:
    """Lists the Elastic IP addresses, in one call."""
    pages = (ec2.describe_addresses() for _ in range(1))
    rows = listing("addresses", pages, lambda page: page["Addresses"], 1)
    return rows.convert(
        lambda raw: _leftover(
            raw,
            "AllocationId",
            now,
            used=bool(raw.get("AssociationId") or raw.get("NetworkInterfaceId") or raw.get("ServiceManaged")),
            kind=str(raw.get("PublicIp", "")),
            monthly=price(raw),
        )
    )


def _leftover(raw: Raw, name: str, now: datetime, created: str = "CreateTime", **values: Any) -> Leftover:
    tags = _tags(raw)
    values["kind"] = ", ".join(filter(None, (values["kind"], tags.get("Name"))))
    return Leftover(raw[name], _owner(tags), now, created=raw.get(created), **values)


def _tags(raw: Raw) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}


def _owner(tags: Mapping[str, str]) -> str:
    folded = {key.lower(): value for key, value in tags.items()}
    return next((folded[tag] for tag in _OWNER_TAGS if folded.get(tag)), "")
