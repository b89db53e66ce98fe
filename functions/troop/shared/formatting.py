"""Formats numbers, amounts, times and counts for people: three significant digits, and nouns in the right number. Pure.

Unknown values become a dash.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

USD = "USD"
NOTHING = "\N{EN DASH}"
SPACE = "\N{NO-BREAK SPACE}"
"""Between a number and its unit. Commands print an ordinary space."""


def plain(value: float | None) -> str:
    """Formats three significant digits with at most six decimals, or all before the point: ``0.167``, ``12,345``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100 or rounded == 0:
        return f"{value:,.0f}"
    return f"{value:.{min(6, 2 - math.floor(math.log10(abs(rounded))))}f}"


def milliseconds(value: float | None) -> str:
    """Formats a time: ``3.14 ms``."""
    return NOTHING if value is None else f"{plain(value)}{SPACE}ms"


def times_as_much(ratio: float, other: str) -> str:
    """Formats a ratio to something: ``twice as much as A``, ``12 % more than A``, ``3.40 times as much as A``."""
    for exact, words in ((1.0, "as much"), (2.0, "twice as much"), (0.5, "half as much")):
        if abs(ratio / exact - 1) < _SAME:
            return f"{words} as {other}"
    if ratio > 2:
        return f"{plain(ratio)} times as much as {other}"
    return f"{share(abs(ratio - 1))} {'more' if ratio > 1 else 'less'} than {other}"


_SAME = 0.0005
"""The relative difference that does not show in three digits."""


def count_of_role(count: int, role: str) -> str:
    """Formats the number of nodes of a role, whose name is usually a plural: ``3 servers``, ``1 server``."""
    single = role[:-1] if count == 1 and role.endswith(_PLURALS) else role
    return f"{count:,} {single}"


_PLURALS = ("ers", "ors", "ents", "odes", "bases", "eues")
"""Endings of plurals. Other names, such as redis, stay as they are."""


def whole(value: float | None) -> str:
    """Formats a whole number: ``1,234,567``."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:,.0f}"


def short(value: float | None) -> str:
    """Formats a key figure: ``1.24 million``, ``358,000``, ``873``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:.3g}{SPACE}{name}"
    return whole(float(f"{value:.4g}")) if abs(value) >= 1000 else plain(value)


def percent(value: float | None) -> str:
    """Formats a percentage: ``82 %`` for 82.3; small ones with more digits: ``0.4 %``, ``0.004 %``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size >= 9.95 or size == 0:
        return f"{value:.0f}{SPACE}%"
    if size >= 0.095:
        return f"{value:.1f}{SPACE}%"
    return f"{value:.1g}{SPACE}%" if size >= 0.0001 else f"below 0.0001{SPACE}%"


def share(value: float | None) -> str:
    """Formats a fraction: ``97 %`` for 0.97."""
    return percent(None if value is None else value * 100)


def money(amount: float | None, currency: str = USD) -> str:
    """Formats an amount: ``$12.30``; less than a dollar with more digits: ``$0.0423``."""
    if amount is None or not math.isfinite(amount):
        return NOTHING
    sign = "$" if currency == USD else f"{currency}{SPACE}"
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
    sign = "$" if currency == USD else f"{currency}{SPACE}"
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
        return f"{round(seconds, 1 if seconds < 99.95 else None):g}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min" + (f" {rest}{SPACE}s" if rest else "")
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}{SPACE}h" + (f" {minutes}{SPACE}min" if minutes else "")


def counted(number: int, thing: str) -> str:
    """Formats a count with its noun: ``1 cell``, ``1,200 cells``."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def listed(parts: Mapping[str, int]) -> str:
    """Formats counts by name: ``3 eu-west-1a, 3 eu-west-1b``."""
    return ", ".join(f"{number:,}{SPACE}{name}" for name, number in parts.items()) or NOTHING


def sentence(items: Sequence[str], joint: str = "and") -> str:
    """Joins items: ``a, b and c``."""
    return f" {joint} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
