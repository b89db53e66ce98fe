"""Looks up the snapshots from which files create volumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from troop.bench.snapshots import SnapshotFacts


def read_snapshots(ec2: Any, ids: Iterable[str]) -> dict[str, SnapshotFacts]:
    """Returns the snapshots of this account and region by id; one that does not exist is missing.

    Raises:
        ClientError: AWS refused.
    """
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    # As a filter, because SnapshotIds fails for all if one is missing.
    pages = ec2.get_paginator("describe_snapshots").paginate(
        OwnerIds=["self"], Filters=[{"Name": "snapshot-id", "Values": wanted}]
    )
    return {
        one["SnapshotId"]: SnapshotFacts(
            one["SnapshotId"], one["State"], int(one["VolumeSize"]), bool(one.get("Encrypted"))
        )
        for page in pages
        for one in page["Snapshots"]
    }
