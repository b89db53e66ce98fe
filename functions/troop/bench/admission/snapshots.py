"""Checks the snapshots that a file names against the deployment's setting and the volumes that get their data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from troop.bench.definition.definition import READ, Benchmark, Fleet, Volume
from troop.bench.definition.limits import setting
from troop.bench.definition.problems import Place, Problem
from troop.bench.money.prices import THROUGHPUT_INCLUDED

ALL = "*"
"""The setting that allows all snapshots of the account."""

_FASTEST = {"gp2": 250, "io1": 1000, "io2": 4000, "st1": 500, "sc1": 250}
"""The most MiB a second that EBS reads from a volume of a type."""
_MIB_A_GIB = 1024


@dataclass(frozen=True)
class SnapshotFacts:
    """A snapshot of the account.

    Attributes:
        size_gib: size of the volume that it was created from.
        encrypted: whether its data is encrypted, as volumes of Troop must be.
        state: as EC2 names it; ``completed`` if volumes can have its data.
        archived: whether it must be restored before volumes can have its data.
    """

    id: str
    size_gib: int
    encrypted: bool = True
    state: str = "completed"
    archived: bool = False


def least_read_seconds(volume: Volume) -> int:
    """Returns the seconds that reading a whole volume takes at the highest throughput of its type; more if EBS loads
    its data more slowly. 0 if nodes do not read it.
    """
    if volume.initialize != READ:
        return 0
    fastest = _FASTEST.get(volume.type, volume.throughput_mib or THROUGHPUT_INCLUDED)
    return -(-volume.size_gib * _MIB_A_GIB // fastest)


def forbidden_snapshots(benchmark: Benchmark, allowed: Sequence[str]) -> list[Problem]:
    """Lists the volumes whose snapshot the deployment does not allow.

    Args:
        allowed: ids, or :data:`ALL`.
    """
    if ALL in allowed:
        return []
    return [
        Problem(
            place,
            f"is {snapshot!r}",
            "a snapshot that the deployment allows: "
            + setting("allowed_snapshots", ", ".join(allowed) or "empty", ",".join([*allowed, snapshot])),
        )
        for place, _, snapshot in _named(benchmark)
        if snapshot not in allowed
    ]


def unusable_snapshots(benchmark: Benchmark, snapshots: Mapping[str, SnapshotFacts | None]) -> list[Problem]:
    """Lists the volumes that cannot have the data of their snapshot.

    Args:
        snapshots: by id; None if the account has no such snapshot.
    """
    return [
        problem
        for place, volume, snapshot in _named(benchmark)
        for problem in _unusable(place, volume, snapshot, snapshots[snapshot])
    ]


def named_snapshots(fleets: Sequence[Fleet]) -> set[str]:
    """Returns the ids of all snapshots that fleets name."""
    return {volume.snapshot for fleet in fleets for volume in fleet.volumes if volume.snapshot is not None}


def _named(benchmark: Benchmark) -> Iterator[tuple[Place, Volume, str]]:
    for fleet in benchmark.fleets:
        for n, volume in enumerate(fleet.volumes):
            if volume.snapshot is not None:
                yield ("fleets", fleet.role, "volumes", n, "snapshot"), volume, volume.snapshot


def _unusable(place: Place, volume: Volume, snapshot: str, facts: SnapshotFacts | None) -> Iterator[Problem]:
    subject = f"is {snapshot!r}"
    if facts is None:
        yield Problem(place, f"{subject}: this account has no such snapshot here", "a snapshot of it in this region")
        return
    if facts.state != "completed":
        yield Problem(place, f"{subject}, whose state is {facts.state}", "a completed snapshot")
    if facts.archived:
        yield Problem(place, f"{subject}, which is archived", "a snapshot in the standard tier: restore it first")
    if not facts.encrypted:
        allowed = "an encrypted snapshot: copy it with encryption, because a volume is encrypted as its snapshot is"
        yield Problem(place, f"{subject}, which is not encrypted", allowed)
    if volume.size_gib < facts.size_gib:
        yield Problem(
            (*place[:-1], "size_gib"), f"is {volume.size_gib}", f"at least {facts.size_gib}, as {snapshot} is"
        )
