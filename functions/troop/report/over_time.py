"""Prepares values over time for pages: for each phase of each cell its series, and what happened meanwhile.

A page stays small enough for a browser. It has at most :data:`MOST_VALUES` values, and each series at most
:data:`MOST_POINTS`. What exceeds this is left out and counted: first series of devices, then those of single nodes,
and of these the slowest last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from troop.measure.operations import TOTAL
from troop.measure.summary import OK
from troop.report.document import Cell, Phase, Series
from troop.report.formatting import by_fleet, cell_name, number
from troop.report.series_names import PANELS, Panel

MOST_VALUES = 3_000_000
"""The most values of all series of a page, about six megabytes."""
MOST_OF_ENTRY = 600_000
"""The most values of one phase of one cell, which a browser unpacks at once."""
MOST_POINTS = 600
"""The most values of a series. Steps are chosen for about 300."""
MOST_MARKS = 40
"""The most marks of a phase of a cell."""

_ALSO = 60
"""Seconds around the values in which events are marked."""


def panels(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Returns the panels of all series: the usual ones, and one for each series without an entry."""
    known = {name for panel in PANELS for name in panel.names}
    names = dict.fromkeys(one.name for cell in cells for phase in cell.phases for one in phase.series)
    others = [Panel(name, "", {name: ""}) for name in names if name not in known]
    return [asdict(panel) for panel in (*PANELS, *others)]


def entries(cells: Sequence[Cell], side: str = "", most: int = MOST_VALUES) -> list[dict[str, Any]]:
    """Returns an entry for each phase of each cell with values over time.

    Args:
        side: is put before the name of each cell.
        most: values of all series.

    Returns:
        ``[{"name", "first", "warm_up", "measured", "marks": [{"at", "what", "kind"}], "left_out", "series": [{"role",
        "node", "device", "kind", "operation", "name", "start", "step", "values"}]}]``. ``first`` is whether to
        show it at first: it is the first repetition and has operations; ``left_out`` the number of series that are left
        out.
    """
    several = len({phase.phase for cell in cells for phase in cell.phases}) > 1
    drawn = [
        (cell, phase, its)
        for cell in cells
        for phase in cell.phases
        if (its := [one for one in phase.series if any(number(value) is not None for value in one.values)])
    ]
    each = min(MOST_OF_ENTRY, most // max(len(drawn), 1))
    entries = [_entry(cell, phase, its, f"{side}{_name(cell, phase, several)}", each) for cell, phase, its in drawn]
    worked = [any(one["operation"] for one in entry["series"]) for entry in entries]
    if any(worked):  # without operations, such as by a tool that reports only rates, there is less to see
        entries = [{**entry, "first": entry["first"] and its} for entry, its in zip(entries, worked, strict=True)]
    return entries


def _name(cell: Cell, phase: Phase, several: bool) -> str:
    return ", ".join(part for part in (cell_name(cell), phase.phase if several else "", phase.setting) if part)


def _entry(cell: Cell, phase: Phase, series: Sequence[Series], name: str, most: int) -> dict[str, Any]:
    embedded, left_out, room = [], 0, most
    kinds = {(one.role, one.device): one.kind for one in phase.devices}
    for one in sorted(by_fleet(series, cell), key=_importance(series)):
        if len(one.values) > min(room, MOST_POINTS):
            left_out += 1
            continue
        room -= len(one.values)
        embedded.append(_series(one, kinds.get((one.role, one.device), "")))
    return {
        "name": name,
        "first": cell.repetition == 1 and phase.repeat == 1,
        "warm_up": number(phase.warm_up_seconds),
        "measured": number(phase.measured_seconds),
        "marks": _marks(cell, phase, embedded),
        "left_out": left_out,
        "series": embedded,
    }


def _importance(series: Sequence[Series]) -> Callable[[Series], tuple[int, int]]:
    """Returns a key: first whole roles; then the first node of each role, which is its slowest, and so on; devices."""
    places: dict[str, dict[str, int]] = {}
    for one in series:
        if one.node and not one.device:
            nodes = places.setdefault(one.role, {})
            nodes.setdefault(one.node, len(nodes))

    def key(one: Series) -> tuple[int, int]:
        if one.device:
            return (2, 0) if one.node else (0, 1)
        return (1, places[one.role][one.node]) if one.node else (0, 0)

    return key


def _series(one: Series, kind: str) -> dict[str, Any]:
    place = {key: value for key, value in (("node", one.node), ("device", one.device), ("kind", kind)) if value}
    return {
        "role": one.role,
        **place,
        "operation": one.operation,
        "name": one.name,
        "start": number(one.start, 9),
        "step": one.step_seconds,
        "values": [number(value, 4 if one.operation else 3) for value in one.values],
    }


def _marks(cell: Cell, phase: Phase, series: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns what happened while the phase was measured, in seconds after the start of the measured time."""
    begin = phase.measured_from
    if begin is None or not series:
        return []
    first = min(one["start"] for one in series) - _ALSO
    last = max(one["start"] + one["step"] * len(one["values"]) for one in series) + _ALSO
    marks = [
        (round(at, 1), text, kind)
        for moment, text, kind in _events(cell, phase)
        if first <= (at := (_in_utc(moment) - _in_utc(begin)).total_seconds()) <= last
    ]
    return [{"at": at, "what": text, "kind": kind} for at, text, kind in sorted(marks)[:MOST_MARKS]]


def _events(cell: Cell, phase: Phase) -> Iterator[tuple[datetime, str, str]]:
    for step in cell.steps:
        yield step.at, step.phase, "phase"
    for one in cell.interruptions:
        if (moment := _moment(one.time)) is not None:
            yield moment, f"{one.action or 'interruption'} {one.node}{f' ({one.role})' if one.role else ''}", "lost"
    for node in phase.members:
        if node.outcome != OK and node.ended_at is not None:
            yield node.ended_at, f"{node.outcome} {node.node} ({node.role})", "lost"


def _moment(text: str) -> datetime | None:
    """Reads EC2's times; None if it is not one."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def tracks(entries: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Returns what the entries have series of, each once: ``[[role, operation, name, group]]``.

    The group is ``role``, ``node`` or ``device``. Totals and the operations that most is done of come first.
    """
    weight: dict[tuple[str, str | None], float] = {}
    names: dict[tuple[str, str | None, str, str], None] = {}
    for entry in entries:
        for one in entry["series"]:
            group = "device" if "device" in one else "node" if "node" in one else "role"
            names[one["role"], one["operation"], one["name"], group] = None
            if one["name"] == "per_second" and group == "role":
                known = [value for value in one["values"] if value is not None]
                owner = one["role"], one["operation"]
                amount = math.inf if one["operation"] == TOTAL else math.fsum(known)
                weight[owner] = weight.get(owner, 0.0) + amount
    return [list(key) for key in sorted(names, key=lambda key: -weight.get((key[0], key[1]), 0.0))]
