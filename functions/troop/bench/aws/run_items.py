"""Converts runs, cells, resources, launches and lines to items of the table ``Runs`` and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.bench.admission import spending
from troop.bench.admission.spending import Terms
from troop.bench.records.line import Line
from troop.bench.records.record import (
    SCHEMA,
    Cell,
    Launch,
    Resource,
    Run,
)
from troop.shared import codec, moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.tables import BENCHMARK, FLEET, RUN_LEFT, RUN_OPEN, RUNS_BY_NAME

RUN, CELL, RESOURCE, LAUNCH, TERMS, LINE = "run", "cell#", "resource#", "launch#", "terms", "line"
"""Sort keys, or their beginnings."""

ENDED = "ended"
"""The attribute of a launch that has ended."""

Item = Mapping[str, Any]


def key(run: str, item: str) -> dict[str, Any]:
    """Returns the key of an item, typed."""
    return {"run": {"S": run}, "item": {"S": item}}


def key_of(resource: Resource) -> dict[str, Any]:
    return key(resource.run, f"{RESOURCE}{resource.kind.value}#{resource.name}")


def at_of(run: Run | Line) -> str:
    """Returns the sort key of the indices over runs: ordered by time, and unique."""
    return f"{moments.iso(run.at)}#{run.run}"


def run_item(run: Run) -> dict[str, Any]:
    """Converts a run to a typed item. ``open`` exists only while the run is open or has leftovers, which keeps the
    index over it small.
    """
    mark = RUN_OPEN if run.ended_at is None else RUN_LEFT if run.left_behind else None
    own = {"item": RUN, "schema": SCHEMA, "kind": FLEET if run.standing else BENCHMARK, "at": at_of(run), "open": mark}
    return typed(codec.to_document(run) | own)


def name_of(item: Item) -> str:
    """Returns the table and the key of an item, for :mod:`troop.shared.malformed`."""
    return f"Runs: {item['run']['S']}, {item['item']['S']}"


def run_of(item: Item) -> Run:
    """Converts an item of :func:`run_item` back."""
    return codec.from_document(Run, _with_moment(item))


def cell_item(cell: Cell) -> dict[str, Any]:
    """Converts a cell to a typed item."""
    document = codec.to_document(cell)
    return typed(document | {"item": CELL + document.pop("cell"), "schema": SCHEMA})


WITHOUT_FIGURES = (
    *("run", "item", "status", "phase", "phases", "reason", "closed_at"),
    *("variant", "attempt", "cost", "point", "order", "data_gone_at", "replaced_nodes", "requests"),
)
"""Attributes of a cell except for its results, limits, searches and faults, which can have 200 KB."""


def cell_of(item: Item) -> Cell:
    """Converts an item of :func:`cell_item` back, with the phases in the order in which they began."""
    values = plain(item)
    return codec.from_document(Cell, values | {"cell": values["item"].removeprefix(CELL)})


def resource_of(item: Item) -> Resource:
    """Converts an item to a resource; such items are only written attribute by attribute."""
    values = plain(item)
    _, kind, name = values["item"].split("#", 2)
    return codec.from_document(Resource, values | {"kind": kind, "name": name})


def facts_of(resource: Resource) -> dict[str, Any]:
    """Returns the known facts about a resource as attributes; unknown ones are omitted."""
    document = codec.to_document(resource)
    return {name: value for name in _FACTS if (value := document.get(name)) is not None}


_FACTS = ("role", "instance_type", "zone", "purchase", "started_at", "disk", "zones")


def terms_item(run: str, terms: Terms) -> dict[str, Any]:
    """Converts the terms of a run to a typed item; None is omitted at any depth."""
    return key(run, TERMS) | typed({"schema": SCHEMA, "terms": _present(spending.to_document(terms))})


def terms_of(item: Item) -> Terms:
    """Converts an item of :func:`terms_item` back."""
    return codec.from_document(Terms, plain(item)["terms"])


def _present(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _present(inner) for key, inner in value.items() if inner is not None}
    return value


def item_of(launch: Launch) -> str:
    """Returns the sort key of a launch."""
    return f"{LAUNCH}{launch.cell}#{launch.token}"


def launch_item(launch: Launch) -> dict[str, Any]:
    """Converts a launch to a typed item."""
    return key(launch.run, item_of(launch)) | typed({"schema": SCHEMA, "until": moments.iso(launch.until)})


def launch_of(item: Item) -> Launch:
    """Converts an item of :func:`launch_item` back."""
    values = plain(item)
    _, cell, token = values["item"].split("#", 2)
    return Launch(values["run"], cell, token, moments.parse(values["until"]))


def line_item(line: Line) -> dict[str, Any]:
    """Converts the line of a run to a typed item."""
    own = {"item": LINE, "schema": SCHEMA, RUNS_BY_NAME.partition: line.name, "at": at_of(line)}
    return typed(codec.to_document(line) | own)


def line_of(item: Item) -> Line:
    """Converts an item of :func:`line_item` back."""
    return codec.from_document(Line, _with_moment(item))


def _with_moment(item: Item) -> dict[str, Any]:
    """Returns the values of an item with a moment in place of the sort key of an index."""
    values = plain(item)
    return values | {"at": values["at"].partition("#")[0]}
