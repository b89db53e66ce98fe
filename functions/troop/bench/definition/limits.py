"""Checks benchmarks and standing fleets against the limits that a deployment's operator sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase

from troop.bench.definition.definition import Benchmark
from troop.bench.definition.problems import Place, Problem
from troop.shared.settings import Settings


@dataclass(frozen=True)
class Limits:
    """The limits of one deployment. A file can set lower ones, but not higher ones.

    Attributes:
        max_nodes: maximum nodes of one run at a time.
        max_nodes_total: maximum nodes of all open runs and standing fleets.
        max_run_cost: maximum cost of one run; None for no limit.
        instance_types: globs over the types that nodes may have.
        images: ids, and names or patterns of parameters, of the images that files may name.
        snapshots: ids of the snapshots that files may name; ``*`` for all of the account.
        targets: what nodes may reach if a file names it, as in the settings.
        own_data: whether scripts may create objects to measure with.
        queues: whether standing fleets may have a queue.
    """

    max_nodes: int
    max_nodes_total: int
    max_run_cost: Decimal | None
    instance_types: tuple[str, ...]
    images: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    own_data: bool = False
    queues: bool = False

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        """Takes the limits from a deployment's settings."""
        cost = None if settings.max_run_cost is None else Decimal(str(settings.max_run_cost))
        return cls(
            settings.max_nodes,
            settings.max_nodes_total,
            cost,
            settings.instance_types,
            settings.allowed_images,
            settings.allowed_snapshots,
            settings.allowed_targets,
            settings.own_data,
            settings.queues,
        )


def setting(name: str, value: str, example: str) -> str:
    """Describes the value of a setting and how the operator changes it.

    Args:
        name: without the prefix ``troop:``.
        example: the new value in the command.
    """
    return (
        f"the deployment's setting troop:{name} is {value}; to change it, its operator runs {deploying(name, example)}"
    )


def deploying(name: str, value: str) -> str:
    """Returns the command that changes one setting of the deployment, and no other.

    Args:
        name: without the prefix ``troop:``.
        value: as the command line has it, without apostrophes.
    """
    return f"`make deploy KEEP=1 ARGS=\"-c 'troop:{name}={value}'\"`, with DEPLOYMENT=NAME unless its name is Troop"


def forbidden_data(benchmark: Benchmark, *, own_data: bool) -> list[Problem]:
    """Lists the request to create objects, if the deployment does not allow it."""
    if own_data or not benchmark.own_data:
        return []
    return [Problem(("own_data",), "is true", f"false: {setting('own_data', 'false', 'true')}")]


def forbidden_queue(benchmark: Benchmark, *, queues: bool) -> list[Problem]:
    """Lists the request for a queue, if the deployment does not allow it."""
    if queues or not benchmark.queue:
        return []
    return [Problem(("queue",), "is set", f"left out: {setting('queues', 'false', 'true')}")]


def forbidden_types(benchmark: Benchmark, globs: tuple[str, ...]) -> list[Problem]:
    """Lists the fleets whose instance type no glob matches."""
    wrong = [
        (("fleets", fleet.role, *(("fallback_types", n - 1) if n else ("instance_type",))), kind)
        for fleet in benchmark.fleets
        for n, kind in enumerate(fleet.types)
        if not any(fnmatchcase(kind, one) for one in globs)
    ]
    allowed = ",".join(globs)
    return [
        Problem(
            place,
            f"is {kind!r}",
            "a type that the deployment allows: "
            + setting("instance_types", allowed.replace(",", ", "), f"{allowed},{kind}"),
        )
        for place, kind in wrong
    ]


def no_room(place: Place, nodes: int, others: Mapping[str, int], most: int) -> Problem | None:
    """Returns a problem if the nodes do not fit beside those of other runs; None if they fit.

    Args:
        place: the part of the request that needs the nodes.
        others: nodes that each other open run holds, by its id.
        most: maximum of all runs together.
    """
    held = sum(others.values())
    if held + nodes <= most:
        return None
    largest = sorted(others, key=lambda run: (-others[run], run))[:_NAMED]
    more = f" and {len(others) - len(largest)} more" if len(others) > len(largest) else ""
    whose = f": {', '.join(f'{run} holds {others[run]}' for run in largest)}{more}" if others else ""
    allowed = f"at most {max(most - held, 0)} beside the {held} of other open runs and fleets{whose}; " + setting(
        "max_nodes_total", str(most), str(held + nodes)
    )
    return Problem(place, f"need {nodes} nodes" if place == ("fleets",) else f"brings {nodes} nodes", allowed)


_NAMED = 5
"""Maximum number of other runs that a refusal names, the largest first."""
