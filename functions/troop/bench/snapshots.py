"""Checks the snapshots from which a file creates volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from troop.bench.definition import Benchmark, Volume
from troop.bench.problems import Problem


@dataclass(frozen=True)
class SnapshotFacts:
    """A snapshot of the account.

    Attributes:
        state: as EC2 names it, such as ``completed``.
        size_gib: of the volume that it was taken of.
    """

    id: str
    state: str
    size_gib: int
    is_encrypted: bool


def unusable_snapshots(benchmark: Benchmark, snapshots: Mapping[str, SnapshotFacts]) -> list[Problem]:
    """Lists the volumes that cannot be created from their snapshot.

    Args:
        snapshots: those that exist in the account and region, by id.
    """
    return [
        problem
        for fleet in benchmark.fleets
        for number, volume in enumerate(fleet.volumes)
        if volume.snapshot is not None
        for problem in _unusable(("fleets", fleet.role, "volumes", number), volume, snapshots.get(volume.snapshot))
    ]


def _unusable(place: tuple[str | int, ...], volume: Volume, snapshot: SnapshotFacts | None) -> Iterator[Problem]:
    subject = f"is {volume.snapshot!r}"
    if snapshot is None:
        yield Problem((*place, "snapshot"), subject, "a snapshot that this account owns in this region")
        return
    if snapshot.state != "completed":
        yield Problem((*place, "snapshot"), f"{subject}, which is {snapshot.state}", "a completed one")
    if not snapshot.is_encrypted:
        allowed = "an encrypted one, because all volumes of nodes are: copy it with encryption"
        yield Problem((*place, "snapshot"), f"{subject}, which is not encrypted", allowed)
    if volume.size_gib < snapshot.size_gib:
        allowed = f"at least {snapshot.size_gib}, the size of {snapshot.id}"
        yield Problem((*place, "size_gib"), f"is {volume.size_gib}", allowed)
