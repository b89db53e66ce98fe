"""Runs, cells, resources and launches to items of the table ``Runs`` and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from troop import moments
from troop.aws.dynamo import jsonable, plain, typed
from troop.bench.plan import Variant, variant_document, variant_of
from troop.bench.record import SCHEMA, Cell, CellStatus, Kind, Launch, Resource, Run, RunStatus

RUN, CELL, RESOURCE, LAUNCH = "run", "cell#", "resource#", "launch#"
"""How the sort keys begin."""

OPEN = "1"
"""Value of ``open``, which a run has until it has ended."""

ENDED = "ended"
"""Attribute of a launch that was given back."""

Item = Mapping[str, Any]


def key(run: str, item: str) -> dict[str, Any]:
    """The key of an item, typed."""
    return {"run": {"S": run}, "item": {"S": item}}


def key_of(resource: Resource) -> dict[str, Any]:
    return key(resource.run, f"{RESOURCE}{resource.kind.value}#{resource.name}")


def at_of(run: Run) -> str:
    """Sort key of the indices over runs: by time, and unique."""
    return f"{moments.iso(run.at)}#{run.run}"


def run_item(run: Run) -> dict[str, Any]:
    """A run as a typed item. ``open`` exists only until it has ended, so that the index over it stays small."""
    return typed(
        {
            "run": run.run,
            "item": RUN,
            "schema": SCHEMA,
            "kind": "run",
            "at": at_of(run),
            "open": None if run.ended_at else OPEN,
            "name": run.name,
            "expires_at": moments.iso(run.expires_at),
            "requested_by": run.requested_by,
            "cells": run.cells,
            "nodes": run.nodes,
            "status": run.status.value,
            "execution": run.execution,
            "outcome": run.outcome.value if run.outcome else None,
            "closed_at": _iso(run.closed_at),
            "ended_at": _iso(run.ended_at),
            "reason": run.reason,
        }
    )


def run_of(item: Item) -> Run:
    """The reverse of :func:`run_item`."""
    values = plain(item)
    return Run(
        run=values["run"],
        name=values["name"],
        at=moments.parse(values["at"].partition("#")[0]),
        expires_at=moments.parse(values["expires_at"]),
        requested_by=values["requested_by"],
        cells=int(values["cells"]),
        nodes=int(values["nodes"]),
        status=RunStatus(values["status"]),
        execution=values.get("execution"),
        outcome=RunStatus(values["outcome"]) if "outcome" in values else None,
        closed_at=_moment(values, "closed_at"),
        ended_at=_moment(values, "ended_at"),
        reason=values.get("reason"),
    )


def cell_item(cell: Cell) -> dict[str, Any]:
    """A cell as a typed item."""
    return typed(
        {
            "run": cell.run,
            "item": CELL + cell.cell,
            "schema": SCHEMA,
            "status": cell.status.value,
            "phase": cell.phase,
            "phases": {name: moments.iso(at) for name, at in cell.phases.items()},
            "reason": cell.reason,
            "results": cell.results,
            "closed_at": _iso(cell.closed_at),
            "variant": variant_document(cell.variant),
            "attempt": cell.attempt,
        }
    )


def cell_of(item: Item) -> Cell:
    """The reverse of :func:`cell_item`; the phases in the order in which they began."""
    values = plain(item)
    began = {name: moments.parse(at) for name, at in values["phases"].items()}
    return Cell(
        run=values["run"],
        cell=values["item"].removeprefix(CELL),
        status=CellStatus(values["status"]),
        phase=values["phase"],
        phases=dict(sorted(began.items(), key=lambda pair: pair[1])),
        reason=values.get("reason"),
        results=jsonable(values["results"]) if "results" in values else None,
        closed_at=_moment(values, "closed_at"),
        variant=variant_of(jsonable(values["variant"])) if "variant" in values else Variant(),
        attempt=int(values.get("attempt", 1)),
    )


def resource_of(item: Item) -> Resource:
    """A resource from its item, which is only ever written attribute by attribute."""
    values = plain(item)
    _, kind, name = values["item"].split("#", 2)
    return Resource(
        run=values["run"],
        cell=values["cell"],
        kind=Kind(kind),
        name=name,
        planned_at=moments.parse(values["planned_at"]),
        created_at=_moment(values, "created_at"),
        gone_at=_moment(values, "gone_at"),
    )


def launch_key(launch: Launch) -> dict[str, Any]:
    return key(launch.run, f"{LAUNCH}{launch.cell}#{launch.token}")


def launch_item(launch: Launch) -> dict[str, Any]:
    """A launch as a typed item."""
    return launch_key(launch) | typed({"schema": SCHEMA, "until": moments.iso(launch.until)})


def launch_of(item: Item) -> Launch:
    """The reverse of :func:`launch_item`."""
    values = plain(item)
    _, cell, token = values["item"].split("#", 2)
    return Launch(values["run"], cell, token, moments.parse(values["until"]))


def _iso(moment: datetime | None) -> str | None:
    return moments.iso(moment) if moment else None


def _moment(values: Item, name: str) -> datetime | None:
    return moments.parse(values[name]) if values.get(name) else None
