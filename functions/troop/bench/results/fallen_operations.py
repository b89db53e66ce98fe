"""Finds the operations whose own rate fell after a planned fault. Pure.

All operations together decide whether the rate is back. So a rare one can be lost, and their sum does not show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from troop.bench.results.fault_windows import HOLD, Counted, UncountedError, counted
from troop.bench.results.steadiness import is_rate_back
from troop.measure import operations as ops


def fallen(phase: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the operations of which some :data:`HOLD` seconds from a fault on have less than the fault's share of
    their own rate before, by more than chance.

    Returns:
        ``[{"number", "role", "operation", "before", "during", "after", "lowest"}]``: rates per second in the windows of
        the fault with that number, None without the window, and the lowest one of :data:`HOLD` seconds. Empty for a
        phase with one operation, or if they were not counted by second.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    if not phase.get("faults"):
        return []
    roles = phase.get("generating") or phase["roles"]
    try:
        each = {
            (role, name): counted([one])
            for role in roles
            for name, one in ops.parse(phase["roles"][role]["operations"]).items()
        }
    except UncountedError:
        return []
    return [
        {"number": fault["number"], "role": role, "operation": name, **rates}
        for fault in phase["faults"]
        if len(each) > 1 and fault["windows"]["before"]
        for (role, name), own in each.items()
        for rates in _fallen(own, fault)
    ]


def _fallen(own: Counted, fault: Mapping[str, Any]) -> Iterator[dict[str, float | None]]:
    zero, windows = fault["began_at"], fault["windows"]
    spans = {name: one and _span(zero, one) for name, one in windows.items()}
    (begin, first), end = spans["before"], (spans["after"] or spans["during"])[1]
    if not own.done(begin, first):
        return
    is_back = is_rate_back(own, begin, first, fault["share"])
    parts = [(at, at + HOLD) for at in range(first, end - HOLD + 1)]
    if not all(is_back(*part) for part in parts):
        rates = {name: span and round(own.done(*span) / max(1, span[1] - span[0]), 3) for name, span in spans.items()}
        yield {**rates, "lowest": min(own.done(*part) for part in parts) / HOLD}


def _span(zero: float, window: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the first whole second of a window, and the one after its last."""
    begin = round(zero + window["from"])
    return begin, begin + math.floor(window["seconds"] + 0.001)
