"""Formats what a run does right now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cli.bench.show import now_at
from cli.shared import show
from troop.bench.records.live_view import OLD_SECONDS, LiveState
from troop.shared.formatting import counted, duration, milliseconds, percent, plain

COLUMNS = ("role", "operation", "per second", "errors/s", "p50", "p99")
DROPPED = ("role", "p50")
"""The columns that a narrow terminal omits."""

ROLE_COLUMNS = ("role", "nodes", "CPU", "busiest", "iowait")

_ALL = "all"


def age(live: Mapping[str, Any]) -> float | None:
    """Returns the seconds since the merge; None without one.

    Args:
        live: the answer of GET /benchmarks/{run}/live.
    """
    if not live["at"]:
        return None
    return max(0.0, (_moment(live["now"]) - _moment(live["at"])).total_seconds())


def heading(live: Mapping[str, Any]) -> str:
    """Returns a line about the run and, if there are figures, their age."""
    if live["state"] == LiveState.ENDED:
        return f"{live['run']} has ended: {live['status']}"
    seconds = age(live)
    is_measured = seconds is not None and any(cell["operations"] for cell in live["cells"])
    return f"{live['run']} {live['status']}: {live['message']}" + (f"; {seconds:.0f} s ago" if is_measured else "")


def is_old(live: Mapping[str, Any]) -> bool:
    return (age(live) or 0) >= OLD_SECONDS


def cell_line(cell: Mapping[str, Any], seconds: float) -> str:
    """Returns a line about a cell: its phase, and the time left ``seconds`` after the merge."""
    where = f"{cell['cell']} {cell['label']}".strip()
    left = cell["seconds_left"]
    if left is None:
        return f"{where}: {now_at(cell)}"
    warm_up = round(max(0.0, cell["warm_up_seconds_left"] - seconds))
    text = f"{where}: {now_at(cell)}, {duration(round(max(0.0, left - seconds)))} left"
    return f"{text}, of these {duration(warm_up)} of the warm-up, which do not count" if warm_up else text


def operation_rows(cell: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Returns a row for each operation; with several, also one for all of them."""
    rows = [(one["role"], one["operation"], *_figures(one)) for one in cell["operations"]]
    return [*rows, (_ALL, "", *_figures(cell["total"]))] if len(rows) > 1 else rows


def role_rows(cell: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            one["role"],
            _nodes(one),
            *(percent(one.get(key)) for key in ("cpu_percent", "cpu_percent_max", "iowait_percent")),
        )
        for one in cell["roles"]
    ]


def tell(live: Mapping[str, Any]) -> None:
    """Prints a block."""
    show.say(heading(live))
    if is_old(live):
        show.say("the figures are old: no newer merge has succeeded")
    if live["unread"]:
        show.say(f"{counted(live['unread'], 'report')} of nodes could not be read")
    for cell in live["cells"]:
        show.say(cell_line(cell, age(live) or 0))
        if cell["operations"]:
            show.table(COLUMNS, operation_rows(cell), drop=DROPPED)
        if cell["roles"]:
            show.table(ROLE_COLUMNS, role_rows(cell))


def records(live: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns a flat record for each operation, for lists of values."""
    return [
        {"at": live["at"], "cell": cell["cell"], "phase": cell["phase"], **operation}
        for cell in live["cells"]
        for operation in cell["operations"]
    ]


def _figures(one: Mapping[str, Any]) -> tuple[str, ...]:
    rates = (plain(one[key]) for key in ("per_second", "errors_per_second"))
    return (*rates, milliseconds(one["p50_ms"]), milliseconds(one["p99_ms"]))


def _nodes(role: Mapping[str, Any]) -> str:
    return f"{role['reporting']}" if role["expected"] is None else f"{role['reporting']} of {role['expected']}"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
