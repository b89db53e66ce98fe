"""Finds what else differs between two sides than what they compare: images, kernels, agents, zones, instance types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from cli.bench.pairing import Cells
from troop.report.document import Fleet, Report

_VERSIONS = ("image", "kernel", "agent")
_PLACES: tuple[tuple[str, Callable[[Fleet], Iterable[str]]], ...] = (
    ("instance type", lambda fleet: [fleet.instance_type]),
    ("zone", lambda fleet: fleet.zones),
)

_MOST = 4
"""The most values to name of a side."""


def other_differences(a: Report, b: Report, mine: Mapping[str, Cells], other: Mapping[str, Cells]) -> Iterator[str]:
    """Yields a warning for each difference. What a side does not know is not compared.

    Args:
        mine, other: the cells that count, by variant.
    """
    for subject in _VERSIONS:
        yield from _differs(subject, *({v.version for v in report.versions if v.what == subject} for report in (a, b)))
    ours, theirs = _fleets(mine), _fleets(other)
    for role in ours:
        for subject, values in _PLACES:
            sides = (ours[role], theirs.get(role, []))
            yield from _differs(
                f"{subject} of {role}", *({one for fleet in side for one in values(fleet)} for side in sides)
            )


def _fleets(variants: Mapping[str, Cells]) -> dict[str, list[Fleet]]:
    by_role: dict[str, list[Fleet]] = {}
    for fleet in (fleet for cells in variants.values() for cell in cells.cells for fleet in cell.fleets):
        by_role.setdefault(fleet.role, []).append(fleet)
    return by_role


def _differs(subject: str, a: set[str], b: set[str]) -> Iterator[str]:
    if a and b and a != b:
        yield f"the {subject} differs: {_named(a)} in A, {_named(b)} in B; a difference of the results may come from it"


def _named(values: set[str]) -> str:
    named = sorted(values)
    more = f" and {len(named) - _MOST} more" if len(named) > _MOST else ""
    return ", ".join(named[:_MOST]) + more
