"""Checks a benchmark before launch against the deployment's limits and the region's offers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.limits import Limits, forbidden_data, forbidden_queue, forbidden_types, setting
from troop.bench.definition.plan import Plan, PlannedCell
from troop.bench.definition.problems import Place, Problem
from troop.bench.fleets.type_facts import TypeFacts

LARGEST_FILES = 1024 * 1024
"""Maximum bytes of all files in a benchmark's folder together."""

MOST_FILES = 100

LARGEST_ARTIFACT = 5 * 1024**3
"""Maximum bytes: S3's limit of a single upload."""

ARCHITECTURES = frozenset({"x86_64", "arm64"})
"""Architectures of the nodes' machine image."""


@dataclass(frozen=True)
class InstanceType:
    """An instance type as the region offers it.

    Attributes:
        architectures: as EC2 names them.
        zones: zones of the deployment's network that offer it.
        vcpus: number of virtual processors; 0 if EC2 does not report it.
        facts: what a report must know of it.
        strategies: strategies of placement groups that it supports; None if EC2 does not report them.
    """

    architectures: frozenset[str]
    zones: frozenset[str]
    vcpus: int = 0
    facts: TypeFacts = field(default_factory=TypeFacts)
    strategies: frozenset[str] | None = None


def over_limits(benchmark: Benchmark, plan: Plan, limits: Limits) -> list[Problem]:
    """Lists violations of the operator's limits on nodes, instance types, own data and queues, regardless of other
    runs.

    The nodes that a run has at one time count.

    Args:
        benchmark: of the file without scale and matrix.
    """
    problems = [
        *_too_many(plan, "max_nodes", limits.max_nodes),
        *_too_many(plan, "max_nodes_total", limits.max_nodes_total),
    ]

    def forbidden(cell: Benchmark) -> list[Problem]:
        return [
            *forbidden_types(cell, limits.instance_types),
            *forbidden_data(cell, own_data=limits.own_data),
            *forbidden_queue(cell, queues=limits.queues),
        ]

    return problems + in_all_cells(benchmark, plan, forbidden)


def growth_warnings(benchmark: Benchmark, limits: Limits) -> Iterator[str]:
    """Yields a sentence about a standing fleet that cannot have all nodes that its backlog can demand."""
    nodes = benchmark.grown.nodes
    for name, most in (("max_nodes", limits.max_nodes), ("max_nodes_total", limits.max_nodes_total)):
        if benchmark.nodes <= most < nodes:
            more = setting(name, str(most), str(nodes))
            yield f"scale can demand {nodes} nodes in all, of which it gets at most {most}: {more}"
            return


def _too_many(plan: Plan, name: str, most: int) -> Iterator[Problem]:
    if plan.nodes <= most:
        return
    largest = max(plan.cells, key=lambda one: one.benchmark.nodes)
    nodes, variant = largest.benchmark.nodes, f", with {label}" if (label := largest.variant.label) else ""
    allowed = f"at most {most} in all: {setting(name, str(most), str(plan.nodes))}"
    if nodes > most:
        yield Problem(("fleets",), f"have {nodes} nodes{variant}", allowed)
    else:
        message = f"is {plan.parallel}, which runs up to {plan.nodes} nodes at a time"
        yield Problem(("parallel",), message, f"less, for {allowed}")


def in_all_cells(benchmark: Benchmark, plan: Plan, check: Callable[[Benchmark], Iterable[Problem]]) -> list[Problem]:
    """Lists the problems of a run's cells, each once, located in the file.

    Args:
        benchmark: of the file without scale and matrix; its problems keep their place.
        check: called for cells that differ.
    """
    own, problems, seen = list(check(benchmark)), dict[Problem, None](), set[int]()
    for cell in plan.cells:
        if id(cell.benchmark) not in seen:  # repetitions share one object
            seen.add(id(cell.benchmark))
            problems |= dict.fromkeys(p if p in own else _cell_problem(cell, p) for p in check(cell.benchmark))
    return list(problems)


def _cell_problem(cell: PlannedCell, problem: Problem) -> Problem:
    if problem.where in cell.variant.values:
        kind = "baseline" if problem.where in cell.benchmark.baseline else "matrix"
        return replace(problem, place=(kind, problem.where))
    if cell.variant.scale is None:
        return problem
    return Problem(("scale", cell.variant.scale, problem.where), problem.message, problem.allowed)


def not_allowed(buckets: Iterable[str], allowed: Collection[str]) -> list[str]:
    """Lists the buckets that nodes of this deployment may not read."""
    return [bucket for bucket in buckets if bucket not in allowed]


def unreachable_buckets(benchmark: Benchmark, regions: Mapping[str, str | None], region: str) -> list[Problem]:
    """Lists the buckets that do not exist, or that nodes cannot reach because they are in another region.

    Args:
        regions: by bucket, "" where unknown; None for a bucket that does not exist.
        region: the deployment's.
    """
    problems = []
    for n, bucket in enumerate(benchmark.buckets):
        its = regions.get(bucket, "")
        if its is None:
            problems.append(Problem(("buckets", n), f"is {bucket}, which does not exist", "an existing bucket"))
        elif its not in ("", region):
            allowed = f"a bucket in {region}, because nodes reach S3 only in their own region"
            problems.append(Problem(("buckets", n), f"is {bucket}, which is in {its}", allowed))
    return problems


def not_offered(benchmark: Benchmark, offers: Mapping[str, InstanceType]) -> list[Problem]:
    """Lists what cannot be launched in this deployment's region and zones.

    Args:
        offers: by instance type, without those that the region does not offer.
    """
    problems = [problem for fleet in benchmark.fleets for problem in _fleet_problems(fleet, offers)]
    return problems + [problem for fleet in benchmark.fleets for problem in _choice_problems(fleet, offers)]


def not_staged(benchmark: Benchmark, staged: Collection[str]) -> list[Problem]:
    """Lists artifacts that are not in the bucket.

    Args:
        staged: hashes of the artifacts in the bucket.
    """
    missing = [(n, a) for n, a in enumerate(benchmark.artifacts) if a.sha256 not in staged]
    allowed = "uploaded first: `troop bench run` does it; POST /benchmarks/artifacts returns the address"
    return [Problem(("artifacts", n, "sha256"), f"of {a.name} is not in the bucket", allowed) for n, a in missing]


def _choice_problems(fleet: Fleet, offers: Mapping[str, InstanceType]) -> Iterator[Problem]:
    """Yields fallback types that cannot take the place of the first one, and zones that do not offer a type."""
    first = offers.get(fleet.instance_type)
    for n, kind in enumerate(fleet.fallback_types):
        its: Place = ("fleets", fleet.role, "fallback_types", n)
        for problem in _fleet_problems(replace(fleet, instance_type=kind), offers):
            yield replace(problem, place=its)
        offer = offers.get(kind)
        if first and offer and not first.architectures & offer.architectures & ARCHITECTURES:
            has, needs = (", ".join(sorted(one.architectures)) for one in (offer, first))
            yield Problem(its, f"is {kind!r} ({has})", f"of the architecture of {fleet.instance_type}: {needs}")
    for n, zone in enumerate(fleet.zone_names):
        lacking = [kind for kind in fleet.types if (offer := offers.get(kind)) and zone not in offer.zones]
        if lacking:
            allowed = f"a zone of the deployment's network that offers {', '.join(lacking)}"
            yield Problem(("fleets", fleet.role, "zone_names", n), f"is {zone!r}", allowed)


def _fleet_problems(fleet: Fleet, offers: Mapping[str, InstanceType]) -> Iterator[Problem]:
    place, subject = ("fleets", fleet.role), f"is {fleet.instance_type!r}"
    offer = offers.get(fleet.instance_type)
    if offer is None:
        yield Problem((*place, "instance_type"), subject, "an instance type that this region offers")
    elif not offer.architectures & ARCHITECTURES:
        has, needs = ", ".join(sorted(offer.architectures)), " or ".join(sorted(ARCHITECTURES))
        yield Problem((*place, "instance_type"), f"{subject} ({has})", f"one of {needs}")
    elif fleet.placement and offer.strategies is not None and fleet.placement not in offer.strategies:
        has = ", ".join(sorted(offer.strategies)) or "none"
        allowed = f"one that {fleet.instance_type} supports: {has}"
        yield Problem((*place, "placement"), f"is {fleet.placement!r}", allowed)
    elif not offer.zones:
        yield Problem((*place, "instance_type"), subject, "one that a zone of the deployment's network offers")
    elif len(offer.zones) < fleet.zones:
        allowed = f"at most {len(offer.zones)}: in the network, only {', '.join(sorted(offer.zones))} offer it"
        yield Problem((*place, "zones"), f"is {fleet.zones}, of {fleet.instance_type}", allowed)
