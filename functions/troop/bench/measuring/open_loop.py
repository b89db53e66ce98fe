"""Compares what the roles of a phase did with the rate that is set for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from troop.bench.definition.definition import Benchmark, Parameter, rates
from troop.measure.operations import UNFINISHED

TOLERANCE = 0.01
"""The part of the set rate by which a role may miss it, in either direction."""

LEEWAY = 2
"""Seconds whose operations may be too many or too few: those at both ends of the measured time can fall on either side
of it. At most :data:`SHARE` of the measured time, or short phases would hold any rate.
"""

SHARE = 0.05


@dataclass(frozen=True)
class Counted:
    """What one row has: successes, errors by kind, and successes per second for a tool without counts."""

    count: float
    errors: Mapping[str, int]
    per_second: float | None = None

    def done(self, seconds: float) -> float:
        """Returns the number of operations that ended. Those that never did only have a kind of error."""
        failed = sum(number for kind, number in self.errors.items() if kind != UNFINISHED)
        return self.count + failed or (self.per_second or 0) * seconds


def targets(
    benchmark: Benchmark | None, phase: str, point: Mapping[str, Parameter], roles: Mapping[str, Collection[str]]
) -> dict[str, float]:
    """Returns the set rate of each role that has one, in operations per second of all nodes that took part.

    Args:
        benchmark: of the cell; None if unknown.
        phase: its name in the file.
        point: parameters of the point.
        roles: the nodes of each role in the results of the phase.
    """
    for one in benchmark.phases if benchmark else ():
        if one.name == phase and benchmark:
            each = rates(one, {**benchmark.parameters, **point})
            return {role: rate * len(roles[role]) for role, rate in each.items() if role in roles}
    return {}


def done(merged: Sequence[Counted], separate: Sequence[Counted], seconds: float) -> float:
    """Returns the number of operations and errors of a role in the measured time.

    Args:
        merged: rows of its operations, without a total.
        separate: rows of single nodes, which count if the others have nothing.
        seconds: the measured time.
    """
    return sum(one.done(seconds) for one in merged) or sum(one.done(seconds) for one in separate)


def allowed(target: float, seconds: float, nodes: int) -> float:
    """Returns the number of operations by which a role may miss its rate: the largest of :data:`TOLERANCE`, what is due
    in :data:`LEEWAY`, and an operation of each node, which may be under way.

    More is as wrong as less: a tool that catches up after a slow warm-up applies another load than the set one.

    Args:
        target: operations per second.
        seconds: the measured time.
    """
    return max(TOLERANCE * target * seconds, min(LEEWAY, SHARE * seconds) * target, nodes)


def misses(target: float, achieved: float, seconds: float, nodes: int) -> bool:
    """Checks whether a role did more or less than its rate, by more than is :func:`allowed`.

    Args:
        achieved: number of operations in ``seconds``.
    """
    return abs(target * seconds - achieved) > allowed(target, seconds, nodes)
