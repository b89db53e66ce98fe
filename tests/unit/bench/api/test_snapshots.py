"""What the API makes of a snapshot that a volume names: looked up, and checked before anything is launched."""

from __future__ import annotations

from typing import Any

import pytest
from moto.backends import get_backend

from tests.unit.account.bench import Half, changed, post, problems
from troop.shared.aws.clients import client

VOLUME = "body.definition.fleets.drivers.volumes.0"
UNKNOWN = "snap-0123456789abcdef0"


def snapshot(size: int = 20, encrypted: bool = True) -> str:
    """Creates a snapshot of the account; returns its id."""
    ec2 = client("ec2")
    volume = ec2.create_volume(AvailabilityZone="eu-central-1a", Size=size, Encrypted=encrypted)["VolumeId"]
    return str(ec2.create_snapshot(VolumeId=volume)["SnapshotId"])


def restored(snapshot: str, size: int = 20, **more: Any) -> dict[str, Any]:
    """The file with a volume that has the data of a snapshot."""
    return changed(volumes=[{"device": "/dev/sdf", "size_gib": size, "snapshot": snapshot, **more}])


@pytest.mark.parametrize("settings", [{"allowed_snapshots": ["*"]}], indirect=True)
class TestAllowed:
    def test_an_own_encrypted_snapshot_is_accepted(self, half: Half) -> None:
        status, run = post(definition=restored(snapshot(), size=40, initialize="read"))
        assert status == 202, run

    def test_one_that_the_account_does_not_have_is_refused(self, half: Half) -> None:
        assert "this account has no such snapshot" in problems(definition=restored(UNKNOWN))[f"{VOLUME}.snapshot"]

    def test_one_without_encryption_is_refused_because_teardown_deletes_only_encrypted_volumes(
        self, half: Half
    ) -> None:
        refused = problems(definition=restored(snapshot(encrypted=False)))
        assert "an encrypted snapshot" in refused[f"{VOLUME}.snapshot"]

    def test_one_that_is_not_completed_or_archived_is_refused(self, half: Half) -> None:
        half_done = snapshot()
        stored = get_backend("ec2")["123456789012"]["eu-central-1"].snapshots[half_done]
        stored.status = "pending"
        assert "state is pending" in problems(definition=restored(half_done))[f"{VOLUME}.snapshot"]
        stored.status, stored.storage_tier = "completed", "archive"
        assert "archived" in problems(definition=restored(half_done))[f"{VOLUME}.snapshot"]

    def test_a_volume_is_not_smaller_than_its_snapshot(self, half: Half) -> None:
        refused = problems(definition=restored(snapshot(size=20), size=19))
        assert "is 19: must be at least 20" in refused[f"{VOLUME}.size_gib"]

    def test_a_rate_needs_its_price_where_the_cost_of_runs_is_limited(self, half: Half) -> None:
        document = restored(snapshot(), initialize=200)
        refused = problems(definition=document)
        assert "of drivers, initialization are unknown" in refused["body.definition.prices"]
        assert "prices: {initialization: 0.0012}" in refused["body.definition.prices"]
        status, run = post(definition={**document, "prices": {"initialization": 0.0012}})
        assert status == 202, run


@pytest.mark.parametrize("settings", [{"allowed_snapshots": [UNKNOWN]}], indirect=True)
def test_snapshot_that_the_deployment_does_not_allow_is_refused(half: Half) -> None:
    own = snapshot()
    refused = problems(definition=restored(own))[f"{VOLUME}.snapshot"]
    assert f"is '{own}': must be a snapshot that the deployment allows" in refused
    assert f"-c 'troop:allowed_snapshots={UNKNOWN},{own}'" in refused
