"""Formats the cells of runs with several cells: as planned, in progress, and side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from cli.bench.show import COLUMNS, DROPPED, now_at, row
from cli.shared import show
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark
from troop.bench.definition.plan import Plan
from troop.bench.records.record import FINAL, CellStatus
from troop.shared import codec
from troop.shared.formatting import duration

PLANNED_COLUMNS = ("cell", "", "nodes", "by role")
CELL_COLUMNS = ("cell", "", "status", "at", "since", "took", "reason")

_LAST = 5
"""Finished cells that stay visible while others run."""


@dataclass(frozen=True)
class Change:
    """A change of a cell."""

    at: str
    text: str


def planned(plan: Plan) -> list[dict[str, Any]]:
    """Lists a plan's cells as JSON-like values; ``nodes`` by role."""
    return [
        {
            "cell": one.cell,
            "label": one.variant.label,
            "variant": codec.to_document(one.variant),
            "nodes": {fleet.role: fleet.count for fleet in one.benchmark.fleets},
            "points": points_of(one.benchmark),
        }
        for one in plan.cells
    ]


def order_of(plan: Plan) -> str:
    """Returns a sentence about the order of cells; empty without repetitions."""
    last = max(one.variant.repetition for one in plan.cells)
    if last == 1:
        return ""
    return f"cells run in {last} rounds, one repetition of each in a round; the run's id decides the order in a round"


def points_of(benchmark: Benchmark) -> int:
    """Returns the number of points of a cell, with repeats; 0 if its phases run once."""
    return sum(step.point is not None and not step.is_between for step in benchmark.steps)


def planned_rows(plan: Plan) -> list[tuple[Any, ...]]:
    return [
        (one["cell"], one["label"], sum(one["nodes"].values()), ", ".join(f"{r} {n}" for r, n in one["nodes"].items()))
        for one in planned(plan)
    ]


def latest(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Lists the cells of a run that count: the last attempt at each.

    Args:
        view: the answer of GET /benchmarks/{run}.
    """
    attempts: dict[str, tuple[int, dict[str, Any]]] = {}
    for cell in view["cells"]:
        first, attempt = names.attempt_of(cell["cell"])
        if attempt > attempts.get(first, (0, {}))[0]:
            attempts[first] = attempt, cell
    return [cell for _, cell in attempts.values()]


def name(cell: Mapping[str, Any]) -> str:
    """Returns a cell's name and label: ``c003 n6, threads=200``."""
    return f"{cell['cell']} {cell.get('label') or ''}".strip()


def changes(view: Mapping[str, Any], history: set[tuple[str, str]]) -> list[Change]:
    """Lists the changes of cells since the last call, one line each.

    Args:
        history: earlier changes; this call adds those that it returns.
    """
    new_changes = []
    alone = len(view["cells"]) == 1
    for cell in view["cells"]:
        begun = {step["phase"]: step["at"] for step in cell["steps"]}
        if names.LAUNCH not in begun:
            begun = {}  # never launched, so there was no teardown either
        news = [(at, step) for step, at in begun.items() if step != names.OVER]
        if not alone and cell["status"] in FINAL:
            last = max(begun.values(), default=view["run"]["ended_at"] or view["run"]["at"])
            news.append((last, ended(cell)))
        for at, event in news:
            key = cell["cell"], event
            if key not in history:
                history.add(key)
                new_changes.append(Change(at, event if alone else f"{name(cell)}: {event}"))
    return sorted(new_changes, key=lambda change: change.at)


def ended(cell: Mapping[str, Any]) -> str:
    """Returns a cell's status with the first line of its reason, if any: ``FAILED: i-1 was lost``."""
    reason = show.first_line(cell["reason"])
    return f"{cell['status']}: {reason}" if reason else str(cell["status"])


def progress(view: Mapping[str, Any], now: datetime) -> Group:
    """Returns the running and the last finished cells, for a live display."""
    cells = latest(view)
    over = sorted((cell for cell in cells if cell["status"] in FINAL), key=_last_moment)
    going = [cell for cell in cells if cell["status"] == CellStatus.RUNNING]
    counts = Counter(cell["status"] for cell in over)
    so_far = ", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "none"
    total = max(view["run"].get("cells") or 0, len(cells))
    grid = Table(box=None, pad_edge=False, show_header=False)
    for cell in over[-_LAST:]:
        good = cell["status"] == CellStatus.SUCCEEDED
        style = "green" if good else "bold red"
        grid.add_row(Text("✓" if good else "✗", style), _text(name(cell), style), _text(ended(cell), style), "")
    for cell in going:
        style = "bold yellow"
        since = show.clean(duration(_seconds(cell, now)))
        grid.add_row(Text("▸", style), _text(name(cell), style), _text(now_at(cell), style), since)
    return Group(Text(f"{len(over)} of {total} cells finished: {so_far}; {len(going)} running"), grid)


def cell_rows(view: Mapping[str, Any], now: datetime) -> list[tuple[Any, ...]]:
    """Returns a table row for every cell, including attempts that do not count, in the order in which cells start."""
    rows = []
    for cell in sorted(view["cells"], key=lambda cell: cell.get("order") or 0):
        moments = [step["at"] for step in cell["steps"]]
        at = "" if cell["phase"] == names.OVER or not moments else now_at(cell)
        since = show.moment(max(moments)) if moments else ""
        reason = show.first_line(cell["reason"])
        rows.append((cell["cell"], cell.get("label"), cell["status"], at, since, duration(_took(cell, now)), reason))
    return rows


def results(view: Mapping[str, Any]) -> None:
    """Prints the results of all cells in one table, and why others failed."""
    cells = latest(view)
    rows = [(cell["cell"], cell.get("label"), *row(one)) for cell in cells for one in cell["results"] or []]
    if rows:
        show.table(("cell", "", *COLUMNS), rows, drop=DROPPED)
    for cell in cells:
        if cell["status"] in FINAL and cell["status"] != CellStatus.SUCCEEDED:
            show.say(f"{name(cell)} {ended(cell)}")


def _text(text: str, style: str) -> Text:
    return Text(show.clean(text), style)


def _last_moment(cell: Mapping[str, Any]) -> str:
    return max((step["at"] for step in cell["steps"]), default="")


def _seconds(cell: Mapping[str, Any], now: datetime) -> float | None:
    last = _last_moment(cell)
    return max(0.0, (now - datetime.fromisoformat(last)).total_seconds()) if last else None


def _took(cell: Mapping[str, Any], now: datetime) -> float | None:
    """Returns the seconds from a cell's launch until its end, or until now."""
    at = {step["phase"]: datetime.fromisoformat(step["at"]) for step in cell["steps"]}
    if names.LAUNCH not in at:
        return None
    return (at.get(names.OVER, now) - at[names.LAUNCH]).total_seconds()
