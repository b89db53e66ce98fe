"""Looks up the snapshots that files name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.admission.snapshots import SnapshotFacts

_NO_SNAPSHOT = frozenset({"InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed"})


def read_snapshots(ec2: Any, snapshots: Iterable[str]) -> dict[str, SnapshotFacts | None]:
    """Returns the account's own snapshots by id; None for one that does not exist or belongs to another account.

    Raises:
        ClientError: EC2 refused.
    """
    return {snapshot: _read(ec2, snapshot) for snapshot in sorted(set(snapshots))}


def _read(ec2: Any, snapshot: str) -> SnapshotFacts | None:
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
