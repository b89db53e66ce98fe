"""The limits that the operator of a deployment sets for all benchmarks and standing fleets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase

from troop.bench.definition import Benchmark
from troop.bench.problems import Place, Problem
from troop.settings import Settings


@dataclass(frozen=True)
class Limits:
    """What one deployment allows; a file can ask for less, never for more.

    Attributes:
        max_nodes: the most nodes of one run at a time.
        max_nodes_total: the most nodes of all open runs and standing fleets.
        max_run_cost: the most that one run may cost; None for no limit.
        instance_types: globs over the types that nodes may have.
    """

    max_nodes: int
    max_nodes_total: int
    max_run_cost: Decimal | None
    instance_types: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Takes the limits from a deployment's settings."""
        cost = None if settings.max_run_cost is None else Decimal(str(settings.max_run_cost))
        return cls(settings.max_nodes, settings.max_nodes_total, cost, settings.instance_types)


def setting(name: str, value: str, example: str) -> str:
    """Says what a setting is, and how its operator changes it.

    Args:
        name: without the prefix ``troop:``.
        example: what the operator puts in the place of the value.
    """
    return (
        f"the deployment's setting troop:{name} is {value}; to change it, its operator deploys again with "
        f"`make deploy ARGS=\"-c 'troop:{name}={example}'\"`"
    )


def forbidden_types(benchmark: Benchmark, globs: tuple[str, ...]) -> list[Problem]:
    """Lists the fleets whose instance type no glob matches."""
    wrong = [fleet for fleet in benchmark.fleets if not any(fnmatchcase(fleet.instance_type, one) for one in globs)]
    allowed = ",".join(globs)
    return [
        Problem(
            ("fleets", fleet.role, "instance_type"),
            f"is {fleet.instance_type!r}",
            "a type that the deployment allows: "
            + setting("instance_types", allowed.replace(",", ", "), f"{allowed},{fleet.instance_type}"),
        )
        for fleet in wrong
    ]


def no_room(place: Place, nodes: int, others: Mapping[str, int], most: int) -> Problem | None:
    """Says why so many nodes do not fit beside those of other runs; None where they fit.

    Args:
        place: which part of the request asks for the nodes.
        others: the nodes that each other open run holds, by its id.
        most: of all runs together.
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
"""So many of the other runs a refusal names, the largest first."""
