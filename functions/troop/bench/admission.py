"""What speaks against a benchmark before anything of it is launched: the deployment's limits, the region's offers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from troop.bench.definition import Benchmark, Fleet
from troop.bench.limits import Limits, forbidden_types, setting
from troop.bench.plan import Plan, PlannedCell
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
        vcpus: how many virtual processors it has; 0 where EC2 does not say.
    """

    architectures: frozenset[str]
    zones: frozenset[str]
    vcpus: int = 0


def over_limits(benchmark: Benchmark, plan: Plan, limits: Limits) -> list[Problem]:
    """Lists what the operator's limits do not allow, whatever else runs: nodes and instance types.

    Of nodes those count that a run has at one time.

    Args:
        benchmark: the file as it stands.
    """
    problems = [*_too_many(plan, "max_nodes", limits.max_nodes)]
    if not problems:
        problems += _too_many(plan, "max_nodes_total", limits.max_nodes_total)
    return problems + in_all_cells(benchmark, plan, lambda cell: forbidden_types(cell, limits.instance_types))


def _too_many(plan: Plan, name: str, most: int) -> Iterator[Problem]:
    if plan.nodes <= most:
        return
    largest = max(plan.cells, key=lambda one: one.benchmark.nodes)
    nodes, of_what = largest.benchmark.nodes, f", with {label}" if (label := largest.variant.label) else ""
    allowed = f"at most {most} in all: {setting(name, str(most), str(plan.nodes))}"
    if nodes > most:
        yield Problem(("fleets",), f"have {nodes} nodes{of_what}", allowed)
    else:
        message = f"is {plan.parallel}, which brings up to {plan.nodes} nodes at a time"
        yield Problem(("parallel",), message, f"less, for {allowed}")


def in_all_cells(benchmark: Benchmark, plan: Plan, check: Callable[[Benchmark], Iterable[Problem]]) -> list[Problem]:
    """What speaks against the cells of a run, each thing once, and where the file has it.

    Args:
        benchmark: the file as it stands: what is wrong with it too is in its own place.
        check: asked of cells that differ.
    """
    own, problems, seen = list(check(benchmark)), dict[Problem, None](), set[int]()
    for cell in plan.cells:
        if id(cell.benchmark) not in seen:  # those of repetitions are one
            seen.add(id(cell.benchmark))
            problems |= dict.fromkeys(p if p in own else _of_cell(cell, p) for p in check(cell.benchmark))
    return list(problems)


def _of_cell(cell: PlannedCell, problem: Problem) -> Problem:
    if problem.where in cell.variant.values:
        return replace(problem, place=("matrix", problem.where))
    if cell.variant.scale is None:
        return problem
    return Problem(("scale", cell.variant.scale, problem.where), problem.message, problem.allowed)


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
    place, subject = ("fleets", fleet.role), f"is {fleet.instance_type!r}"
    offer = offers.get(fleet.instance_type)
    if offer is None:
        yield Problem((*place, "instance_type"), subject, "an instance type that this region has")
    elif not offer.architectures & ARCHITECTURES:
        has, needs = ", ".join(sorted(offer.architectures)), " or ".join(sorted(ARCHITECTURES))
        yield Problem((*place, "instance_type"), f"{subject} ({has})", f"one of {needs}")
    elif not offer.zones:
        yield Problem((*place, "instance_type"), subject, "one that a zone of the deployment's network offers")
    elif len(offer.zones) < fleet.zones:
        allowed = f"at most {len(offer.zones)}: of the network's zones, {', '.join(sorted(offer.zones))} offer it"
        yield Problem((*place, "zones"), f"is {fleet.zones}, of {fleet.instance_type}", allowed)
