"""What the API makes of snapshots from which a file creates volumes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.edge.bench import Half, changed, post, problems
from troop.aws.clients import client

KEY = "body.definition.fleets.drivers.volumes.0"


def snapshot(**more: Any) -> str:
    """An own snapshot of a volume of 20 GiB; its id."""
    ec2 = client("ec2")
    volume = ec2.create_volume(AvailabilityZone="eu-central-1a", Size=20, **{"Encrypted": True, **more})["VolumeId"]
    ident: str = ec2.create_snapshot(VolumeId=volume)["SnapshotId"]
    return ident


def of(snapshot: str, size: int = 20) -> dict[str, Any]:
    return changed(volumes=[{"device": "/dev/sdf", "size_gib": size, "snapshot": snapshot}])


def test_an_own_encrypted_snapshot_is_accepted(half: Half) -> None:
    status, answer = post(definition=of(snapshot()))
    assert status == 202, answer


@pytest.mark.parametrize(
    ("more", "size", "key", "words"),
    [
        ({"Encrypted": False}, 20, "snapshot", "which is not encrypted: must be an encrypted one"),
        ({}, 19, "size_gib", "is 19: must be at least 20, the size of snap-"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_refused(
    half: Half, more: dict[str, Any], size: int, key: str, words: str
) -> None:
    assert words in problems(definition=of(snapshot(**more), size))[f"{KEY}.{key}"]


def test_a_snapshot_of_nobody_is_refused(half: Half) -> None:
    refused = problems(definition=of("snap-0123456789abcdef0"))
    assert "must be a snapshot that this account owns in this region" in refused[f"{KEY}.snapshot"]


def test_an_initialization_counts_as_an_unknown_price(half: Half) -> None:
    definition = of(snapshot())
    definition["fleets"]["drivers"]["volumes"][0]["initialization_mib"] = 300
    refused = problems(definition=definition)
    assert "initialization of volumes" in refused["body.definition.prices"]
