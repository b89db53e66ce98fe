"""Formats numbers, times and amounts for people. Unknown values become a dash."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from troop.bench.definition.money import USD
from troop.report.document import Cell

NOTHING = "\N{EN DASH}"
_SPACE = "\N{NO-BREAK SPACE}"


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


def plain(value: float | None) -> str:
    """Formats three significant digits, or all before the decimal point: ``0.042``, ``3.14``, ``27.5``, ``12,345``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size >= 99.95 or size == 0:
        return f"{value:,.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 else f"{value:.3f}"


def whole(value: float | None) -> str:
    """Formats a whole number: ``1,234,567``."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:,.0f}"


def short(value: float | None) -> str:
    """Formats a key figure: ``1.24 million``, ``358,000``, ``873``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:.3g}{_SPACE}{name}"
    return whole(float(f"{value:.4g}")) if abs(value) >= 1000 else plain(value)


def quantity(value: float) -> str:
    """Formats the quantity of a bill's line: ``1,234``, ``0.1525``."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def percent(value: float | None) -> str:
    """Formats a percentage: ``82 %`` for 82.3; small ones with more digits: ``0.4 %``, ``0.004 %``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size >= 9.95 or size == 0:
        return f"{value:.0f}{_SPACE}%"
    if size >= 0.095:
        return f"{value:.1f}{_SPACE}%"
    return f"{value:.1g}{_SPACE}%" if size >= 0.0001 else f"below 0.0001{_SPACE}%"


def share(value: float | None) -> str:
    """Formats a fraction: ``97 %`` for 0.97."""
    return percent(None if value is None else value * 100)


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


def money(amount: float | None, currency: str = USD) -> str:
    """Formats an amount: ``$12.30``; less than a dollar with more digits: ``$0.0423``."""
    if amount is None or not math.isfinite(amount):
        return NOTHING
    sign = "$" if currency == USD else f"{currency}{_SPACE}"
    minus, size = ("\N{MINUS SIGN}" if amount < 0 else ""), abs(amount)
    if size >= 0.995 or size == 0:
        return f"{minus}{sign}{size:,.2f}"
    if size < 0.000001:
        return f"less than {sign}0.000001"
    places = min(6, max(2, 2 - math.floor(math.log10(size))))
    text = f"{size:.{places}f}"
    return f"{minus}{sign}{text.rstrip('0') if len(text.rstrip('0').split('.')[1]) >= 2 else f'{size:.2f}'}"


def price(amount: float | None, currency: str = USD) -> str:
    """Formats a unit price with all digits: ``$0.1412``."""
    if amount is None or not math.isfinite(amount):
        return NOTHING
    whole_part, _, digits = f"{amount:,.9f}".partition(".")
    sign = "$" if currency == USD else f"{currency}{_SPACE}"
    return f"{sign}{whole_part}.{digits.rstrip('0'):0<2}"


def moment(at: datetime | None, places: str = "minutes") -> str:
    """Formats a time: ``2026-11-21 15:03 UTC``; with ``places="seconds"`` to the second."""
    if at is None:
        return NOTHING
    form = "%Y-%m-%d %H:%M:%S" if places == "seconds" else "%Y-%m-%d %H:%M"
    return f"{(at if at.tzinfo is None else at.astimezone(UTC)).strftime(form)} UTC"


def duration(seconds: float | None) -> str:
    """Formats a duration: ``45 s``, ``10 min``, ``1 h 12 min``."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 119.5:
        return f"{round(seconds, 1 if seconds < 10 else None):g}{_SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{_SPACE}min" + (f" {rest}{_SPACE}s" if rest else "")
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}{_SPACE}h" + (f" {minutes}{_SPACE}min" if minutes else "")


def counted(number: int, thing: str) -> str:
    """Formats a count with its noun: ``1 cell``, ``1,200 cells``."""
    return f"{number:,}{_SPACE}{thing}" + ("" if number == 1 else "s")


def listed(parts: Mapping[str, int]) -> str:
    """Formats counts by name: ``3 eu-west-1a, 3 eu-west-1b``."""
    return ", ".join(f"{number:,}{_SPACE}{name}" for name, number in parts.items()) or NOTHING


def sentence(items: list[str], joint: str = "and") -> str:
    """Joins items: ``a, b and c``."""
    return f" {joint} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
