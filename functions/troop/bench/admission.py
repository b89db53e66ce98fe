"""What speaks against a benchmark before anything of it is launched: the deployment's limits, the region's offers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from troop.bench.definition import Benchmark, Fleet
from troop.bench.problems import Problem

LARGEST_FILES = 1024 * 1024
"""Bytes of all files beside a benchmark's, together."""

MOST_FILES = 100

LARGEST_ARTIFACT = 5 * 1024**3
"""Bytes; what S3 takes in one piece."""

ARCHITECTURES = frozenset({"x86_64", "arm64"})
"""Those that nodes' image is made for."""


@dataclass(frozen=True)
class InstanceType:
    """What a region offers under an instance type's name.

    Attributes:
        architectures: as EC2 names them.
        zones: those of the deployment's network in which it can be had.
    """

    architectures: frozenset[str]
    zones: frozenset[str]


def over_limits(benchmark: Benchmark, max_nodes: int) -> list[Problem]:
    """What the deployment's settings speak against; looks at nothing but them."""
    if benchmark.nodes <= max_nodes:
        return []
    allowed = f"at most {max_nodes} in all, which is the deployment's setting troop:max_nodes"
    return [Problem(("fleets",), f"have {benchmark.nodes} nodes", allowed)]


def not_allowed(buckets: Iterable[str], allowed: Collection[str]) -> list[str]:
    """The buckets that nodes of this deployment may not read."""
    return [bucket for bucket in buckets if bucket not in allowed]


def not_offered(benchmark: Benchmark, offers: Mapping[str, InstanceType]) -> list[Problem]:
    """What cannot be launched here.

    Args:
        offers: by instance type; those that there are not are missing.
    """
    return [problem for fleet in benchmark.fleets for problem in _of_fleet(fleet, offers)]


def not_staged(benchmark: Benchmark, staged: Collection[str]) -> list[Problem]:
    """Artifacts that are not where nodes could get them.

    Args:
        staged: the hashes of those that are.
    """
    missing = [(n, a) for n, a in enumerate(benchmark.artifacts) if a.sha256 not in staged]
    allowed = "uploaded first: POST /benchmarks/artifacts says where to, and `troop bench run` does it"
    return [Problem(("artifacts", n, "sha256"), f"of {a.name} is not in the bucket", allowed) for n, a in missing]


def _of_fleet(fleet: Fleet, offers: Mapping[str, InstanceType]) -> Iterator[Problem]:
    place, wanted = ("fleets", fleet.role), f"is {fleet.instance_type!r}"
    offer = offers.get(fleet.instance_type)
    if offer is None:
        yield Problem((*place, "instance_type"), wanted, "an instance type that this region has")
    elif not offer.architectures & ARCHITECTURES:
        has, needs = ", ".join(sorted(offer.architectures)), " or ".join(sorted(ARCHITECTURES))
        yield Problem((*place, "instance_type"), f"{wanted} ({has})", f"one of {needs}")
    elif not offer.zones:
        yield Problem((*place, "instance_type"), wanted, "one that a zone of the deployment's network offers")
    elif len(offer.zones) < fleet.zones:
        allowed = f"at most {len(offer.zones)}: of the network's zones, {', '.join(sorted(offer.zones))} offer it"
        yield Problem((*place, "zones"), f"is {fleet.zones}, of {fleet.instance_type}", allowed)
