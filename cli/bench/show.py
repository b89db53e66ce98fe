"""Formats benchmark runs: their progress, results and outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from cli.bench import money as bench_money
from cli.shared import show
from cli.shared.listings import Column
from troop.bench.definition import names
from troop.bench.definition.plan import Variant
from troop.shared.formatting import counted, duration, milliseconds, plain

FIRST, LAST = (names.LAUNCH, names.BOOT), (names.COLLECT, names.TEARDOWN)
"""Steps of every run before and after its phases."""

NAMED = 3
"""Resources that a line names of those that Troop does not remove."""

COLUMNS = (
    "phase",
    "role",
    "operation",
    "count",
    "per second",
    "errors",
    "MB/s",
    "mean",
    "p50",
    "p90",
    "p95",
    "p99",
    "max",
)
DROPPED = ("mean", "p90", "max", "MB/s", "p95", "role", "count")
"""The columns of results that a narrow terminal omits."""

RUN_COLUMNS = (
    Column("run", lambda run: run["run"]),
    Column("benchmark", lambda run: run["name"]),
    Column("status", lambda run: run["status"]),
    Column("began", lambda run: show.moment(run["at"]), lambda run: run["at"]),
    Column("nodes", lambda run: run["nodes"]),
    Column("by", lambda run: caller(run["requested_by"])),
    Column("cost", lambda run: bench_money.total(run["cost"]) if run.get("cost") else None, wide=True),
    Column("reason", lambda run: show.first_line(run["reason"])),
)
RUN_DROPPED = ("nodes", "by", "reason")
"""The columns that a narrow terminal omits."""


@dataclass(frozen=True)
class Step:
    """A step of a run.

    Attributes:
        began: None for a future step.
        seconds: how long it took, or has taken so far; None for a future step.
        over: whether it is finished.
    """

    name: str
    began: datetime | None
    seconds: float | None
    over: bool


def steps(view: Mapping[str, Any], phases: Sequence[str], now: datetime) -> list[Step]:
    """Lists the steps of a run's first cell.

    Args:
        view: the answer of GET /benchmarks/{run}.
        phases: names of the benchmark's phases; missing ones are added when they begin.
    """
    cells = view["cells"]
    begun = {step["phase"]: datetime.fromisoformat(step["at"]) for step in cells[0]["steps"]} if cells else {}
    ended = view["run"]["ended_at"]
    end = datetime.fromisoformat(ended) if ended else None
    # Of a phase with points, only the point that goes on and those that are over are known.
    known = (*FIRST, *(name for name in phases if not any(one.startswith(f"{name}.") for one in begun)), *LAST)
    ordered = [*known, *(name for name in begun if name not in known and name != names.OVER)]
    later = sorted(begun.values())
    timeline = []
    for name in sorted(ordered, key=lambda name: begun.get(name, datetime.max.replace(tzinfo=UTC))):
        began = begun.get(name)
        if began is None:
            timeline.append(Step(name, None, None, over=False))
            continue
        until = next((moment for moment in later if moment > began), end)
        seconds = max(0.0, ((until or now) - began).total_seconds())
        timeline.append(Step(name, began, seconds, over=until is not None))
    return timeline


def step_rows(view: Mapping[str, Any], now: datetime) -> list[tuple[Any, ...]]:
    """Returns a row for each step that has begun: its start and duration."""
    return [
        (
            step.name if step.over else _named(view, step.name),
            show.moment(step.began.isoformat()),
            duration(step.seconds),
            "" if step.over else "now",
        )
        for step in steps(view, [], now)
        if step.began
    ]


def progress(view: Mapping[str, Any], phases: Sequence[str], now: datetime) -> Table:
    """Returns a table of the steps for a live display."""
    grid = Table(box=None, pad_edge=False, show_header=False)
    for step in steps(view, phases, now):
        mark, style = (" ", "dim") if step.began is None else ("✓", "green") if step.over else ("▸", "bold yellow")
        name = step.name if step.over else _named(view, step.name)
        grid.add_row(Text(mark, style), Text(show.clean(name), style), show.clean(_lasting(step.seconds)))
    return grid


def _lasting(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _named(view: Mapping[str, Any], step: str) -> str:
    """Returns a step's name; with its point if it is the present one."""
    return now_at(view["cells"][0]) if view["cells"] and view["cells"][0]["phase"] == step else step


def replaced_rows(view: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns a row for each node that was replaced while a cell booted; none with an older API."""
    return [
        (cell["cell"], one["id"], one["role"], show.moment(one["at"]), show.first_line(one["reason"]))
        for cell in view["cells"]
        for one in cell.get("replaced_nodes") or ()
    ]


def results(view: Mapping[str, Any]) -> None:
    """Prints the results of a run with one cell."""
    for cell in view["cells"]:
        if cell["results"]:
            show.table(COLUMNS, [row(one) for one in cell["results"]], drop=DROPPED)


def row(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns a row of results, in the order of :data:`COLUMNS`."""
    errors = row.get("errors") or {}
    per_second, transferred = row.get("per_second"), row.get("bytes_per_second")
    return (
        phase_of(row),
        str(row.get("role", "")),
        " ".join(filter(None, (str(row.get("operation", "")), _timing(row)))),
        f"{row.get('count', 0):,}",
        show.NOTHING if per_second is None else plain(per_second),
        ", ".join(f"{kind} {count:,}" for kind, count in errors.items()) or "0",
        show.NOTHING if not transferred else plain(transferred / 1e6),
        *(milliseconds(row.get(f"{name}_ms")) for name in ("mean", "p50", "p90", "p95", "p99", "max")),
    )


def _timing(row: Mapping[str, Any]) -> str:
    """Returns in parentheses what the times of a row are; "" for service times, as all those of a closed loop."""
    timing = row.get("timing")
    return {"response": "(response times)", "mixed": "(response and service times)"}.get(str(timing), "")


def phase_of(row: Mapping[str, Any]) -> str:
    """Returns the phase of a row with its point: ``measure, threads=50, #2``."""
    parameters, repeat = row.get("parameters") or {}, row.get("repeat") or 1
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
    return ", ".join(part for part in (str(row.get("phase", "")), Variant(None, values, repeat).label) if part)


def now_at(cell: Mapping[str, Any]) -> str:
    """Returns a cell's present step: ``boot``, or of a phase with points ``measure.3 (of 12: threads=50)``. Of a search
    with a verdict, it is ``measure.3 (of at most 12: threads=50)``.
    """
    at = cell.get("point")
    if not at:
        return str(cell["phase"])
    setting = phase_of({**at, "phase": ""})
    searched = {one["phase"] for one in cell.get("searches") or ()}
    most = "at most " if str(cell["phase"]).partition(".")[0] in searched else ""
    return f"{cell['phase']} (of {most}{at['of']}{': ' + setting if setting else ''})"


def caller(arn: Any) -> str:
    """Returns the last part of a caller's ARN, which names the person or the session."""
    return str(arn).rpartition("/")[2] or str(arn)


def stays(record: Mapping[str, Any]) -> str:
    """Describes the resources of a run or fleet that Troop does not remove; "" without any, or with an older API."""
    left = record.get("left_behind") or []
    first = ", ".join(f"{one['kind']} {one['name']} ({one['reason']})" for one in left[:NAMED])
    more = f", and {len(left) - NAMED} more" if len(left) > NAMED else ""
    return f"Troop does not remove: {first}{more}" if left else ""


def summary(view: Mapping[str, Any]) -> str:
    """Returns a run's outcome and leftovers in one line, and below it the last output of a failed script."""
    run = view["run"]
    cost = f", cost {bench_money.total(run['cost'])}" if run.get("cost") else ""
    resources = [r for r in view["resources"] if r["created_at"]]
    # The API lists only some of very many resources.
    created, left = view.get("resources_created"), view.get("resources_left")
    created = len(resources) if created is None else created
    left = sum(not r["gone_at"] for r in resources) if left is None else left
    reason, below = f": {show.first_line(run['reason'])}" if run["reason"] else "", show.lines_below(run["reason"])
    staying = stays(run)
    if not run["ended_at"]:
        return f"{run['run']} {run['status']}{reason}{f' ({staying})' if staying else ''}{below}"
    if staying:
        return f"{run['run']} {run['status']}{reason} ({staying}{cost}){below}"
    if left:
        return f"{run['run']} {run['status']}{reason} ({left} of {counted(created, 'resource')} may still exist){below}"
    return f"{run['run']} {run['status']}{reason} (nothing is left of {counted(created, 'resource')}{cost}){below}"
