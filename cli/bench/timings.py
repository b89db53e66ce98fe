"""Finds times of two sides that mean the same: response times contain the wait for a turn, and service times do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from troop.measure.operations import MIXED, RESPONSE, SERVICE
from troop.report.document import Cell, Operation
from troop.report.open_loop import word

Common = Literal["response", "service"] | None


def common(a: Sequence[Operation], b: Sequence[Operation]) -> tuple[Common, str]:
    """Returns what the times to compare mean on both sides, and a warning if not all measured times mean that.

    Unknown times are service times, as in reports of earlier versions. If only one side has response times, its service
    times are compared, where it has them.

    Returns:
        None without times that mean the same; "" without a warning.
    """
    kinds = [{word(one.timing) for one in side if _has_times(one)} for side in (a, b)]
    every = kinds[0] | kinds[1]
    if every <= {SERVICE}:
        return SERVICE, ""
    if every == {RESPONSE}:
        return RESPONSE, ""
    if MIXED in every:
        difference = "response and service times are mixed in one histogram"
    else:
        difference = " and ".join(
            f"times of {name} are {' or '.join(sorted(its))} times"
            for name, its in zip("AB", kinds, strict=True)
            if its
        )
    if all(word(one.timing) == SERVICE or one.service for one in (*a, *b) if _has_times(one)):
        return SERVICE, f"{difference}; service times of both are compared"
    return None, f"{difference}, which cannot be compared: response times contain the wait for a turn"


def known(side: Sequence[tuple[Cell, Operation]], name: str, timing: Common) -> list[tuple[Cell, float]]:
    """Returns the known times of a side by cell.

    Args:
        name: such as ``p99_ms``.
        timing: which times; None for those that were measured.
    """
    read = _service if timing == SERVICE else getattr
    return [(cell, value) for cell, one in side if (value := read(one, name)) is not None]


def _has_times(one: Operation) -> bool:
    return any(getattr(one, name) is not None for name in ("mean_ms", "p50_ms", "max_ms"))


def _service(one: Operation, name: str) -> float | None:
    if word(one.timing) == SERVICE:
        return getattr(one, name)  # type: ignore[no-any-return]
    return getattr(one.service, name) if one.service else None
