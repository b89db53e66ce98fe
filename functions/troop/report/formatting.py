"""Formats what only reports have: names of cells, numbers of charts, and units of storage.

:mod:`troop.shared.formatting` has the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar

from troop.report.document import Cell
from troop.shared.formatting import plain


class HasRole(Protocol):
    """A row of a role, such as a fleet's use."""

    @property
    def role(self) -> str: ...


_Row = TypeVar("_Row", bound=HasRole)


def cell_name(cell: Cell) -> str:
    """Returns a cell's name, such as ``c001 n3, threads=50``."""
    return f"{cell.cell} {cell.label}".rstrip()


def by_fleet(rows: Sequence[_Row], cell: Cell) -> list[_Row]:
    """Returns rows of roles in the order of the cell's fleets, as in all other tables."""
    order = {fleet.role: place for place, fleet in enumerate(cell.fleets)}
    return sorted(rows, key=lambda row: order.get(row.role, len(order)))


def number(value: float | None, digits: int = 4) -> float | None:
    """Rounds a number for a chart; returns None for unknown and infinite values."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def quantity(value: float) -> str:
    """Formats the quantity of a bill's line: ``1,234``, ``0.1525``."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def mega(value: float | None) -> str:
    """Formats bytes as MB, without the unit."""
    return plain(None if value is None else value / 1e6)


def gibi(value: float | None) -> str:
    """Formats bytes as GiB, without the unit."""
    return plain(None if value is None else value / 2**30)


def mebi_as_gibi(value: float | None) -> str:
    """Formats MiB as GiB, without the unit."""
    return plain(None if value is None else value / 1024)


def baseline(pair: tuple[float | None, float | None]) -> str:
    """Formats a baseline and what a burst allows: ``0.94 to 12.5``; one number if they are the same."""
    steady, most = pair
    if steady is None or most is None or steady == most:
        return plain(most if steady is None else steady)
    return f"{plain(steady)} to {plain(most)}"


def each_of(value: float | None, number: int) -> float | None:
    """Returns the part of each of several nodes; None if the sum is unknown."""
    return None if value is None or not number else value / number
