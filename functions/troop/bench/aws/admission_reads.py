"""Reads what decides whether a run is admitted: instance types, quotas, and the snapshots and buckets of its file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.admission.admission import InstanceType
from troop.bench.admission.quotas import SERVICE, Quota
from troop.bench.admission.snapshots import SnapshotFacts
from troop.bench.fleets.type_facts import facts_of

AT_ONCE = 100
"""Names in one call; EC2 accepts at most twice as many in a filter."""

_NO_SNAPSHOT = frozenset({"InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed"})
_REGION_HEADER = "x-amz-bucket-region"


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
        offers |= _read_types(client, names[i : i + AT_ONCE], usable)
    return offers


def _read_types(client: Any, types: list[str], usable: set[str]) -> dict[str, InstanceType]:
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


def read_quotas(client: Any, quotas: Iterable[Quota]) -> tuple[dict[str, float], str | None]:
    """Returns the values by code, and why some are missing: a quota that cannot be read does not prevent a run.

    Args:
        client: of service-quotas.
    """
    vcpus_by_quota: dict[str, float] = {}
    for code in sorted({quota.code for quota in quotas}):
        try:
            vcpus_by_quota[code] = _quota(client, code)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchResourceException":  # the region or partition lacks it
                return vcpus_by_quota, f"the account's quotas could not be read: {error.response['Error']['Code']}"
        except BotoCoreError as error:
            return vcpus_by_quota, f"the account's quotas could not be read: {type(error).__name__}"
    return vcpus_by_quota, None


def _quota(client: Any, code: str) -> float:
    """Returns the account's quota. If the account never had another one than AWS's default, some answers lack it."""
    try:
        answer = client.get_service_quota(ServiceCode=SERVICE, QuotaCode=code)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        answer = client.get_aws_default_service_quota(ServiceCode=SERVICE, QuotaCode=code)
    return float(answer["Quota"]["Value"])


def read_snapshots(ec2: Any, snapshots: Iterable[str]) -> dict[str, SnapshotFacts | None]:
    """Returns the account's own snapshots by id; None for one that does not exist or belongs to another account.

    Raises:
        ClientError: EC2 refused.
    """
    return {snapshot: _snapshot(ec2, snapshot) for snapshot in sorted(set(snapshots))}


def _snapshot(ec2: Any, snapshot: str) -> SnapshotFacts | None:
    try:
        described = ec2.describe_snapshots(SnapshotIds=[snapshot], OwnerIds=["self"])["Snapshots"]
    except ClientError as error:
        if error.response["Error"]["Code"] in _NO_SNAPSHOT:
            return None
        raise
    if not described:
        return None
    (one,) = described
    return SnapshotFacts(
        id=one["SnapshotId"],
        size_gib=int(one["VolumeSize"]),
        encrypted=bool(one.get("Encrypted")),
        state=str(one["State"]),
        # One that is restored for some days stays in its tier, and has the end of this time.
        archived=one.get("StorageTier") == "archive" and "RestoreExpiryTime" not in one,
    )


def read_bucket_regions(s3: Any, buckets: Iterable[str]) -> dict[str, str | None]:
    """Returns the region of each bucket, "" if S3 does not say; None for a bucket that does not exist.

    S3 names the region also when it refuses. So an anonymous client suffices, and no role needs a permission.
    """
    return {bucket: _region(s3, bucket) for bucket in sorted(set(buckets))}


def _region(s3: Any, bucket: str) -> str | None:
    try:
        headers = s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as error:
        metadata = error.response["ResponseMetadata"]
        if metadata["HTTPStatusCode"] == 404:
            return None
        headers = metadata.get("HTTPHeaders", {})
    return str(headers.get(_REGION_HEADER, ""))
