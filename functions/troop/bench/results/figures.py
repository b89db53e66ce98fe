"""Computes a phase's part of a report from its merged results alone.

The function that merges them stores the part, so that a report need not read and count everything again. What depends
on prices, instance types, the roster or other cells is no part of it. These modules work without pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.bench.results.fallen_operations import fallen
from troop.bench.results.fault_curve import curve
from troop.bench.results.operations import operations
from troop.bench.results.series import partial_tools, series, use
from troop.shared.version import VERSION

FORMAT = f"troop.report-part/1 of {VERSION}"
"""Format of a part; a part of another format is not used. Raise the number when figures change within a version."""

DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of reading damaged results."""


def figures(phase: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of a phase of the results, as of :class:`troop.report.parts.Figures`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    rows, totals = operations(phase)
    lines = [vars(one) for one in series(phase)]
    by_second = curve(phase)
    return {
        "operations": rows,
        "totals": totals,
        "use": use(phase),
        "series": lines,
        "incomplete": partial_tools(phase),
        **({"curve": by_second, "fallen": fallen(phase)} if by_second else {}),
    }


def part(phase: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a phase: its figures, and its results without what these are computed from.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    brief = {key: value for key, value in phase.items() if key not in ("table", "roles")}
    roles = {name: _brief(role) for name, role in phase["roles"].items()}
    return {"results": {**brief, "roles": roles}, "figures": figures(phase)}


def _brief(role: Mapping[str, Any]) -> dict[str, Any]:
    samples = role.get("samples")
    interval = {"samples": {"interval_seconds": samples["interval_seconds"]}} if samples else {}
    return {"nodes": role["nodes"], **interval}
