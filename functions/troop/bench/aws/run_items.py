"""Converts runs, cells, resources and launches to items of the table ``Runs`` and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from troop.bench.admission import spending
from troop.bench.admission.spending import Terms
from troop.bench.definition.definition import PointPlace
from troop.bench.definition.money import ZERO
from troop.bench.definition.plan import Variant
from troop.bench.definition.standing import Counts, Market, Standing
from troop.bench.money import costs
from troop.bench.records.record import (
    SCHEMA,
    Cell,
    CellStatus,
    Disk,
    Expected,
    Kind,
    Launch,
    LeftBehind,
    Resource,
    Run,
    RunStatus,
)
from troop.shared import codec, moments
from troop.shared.aws.dynamo import jsonable, plain, typed
from troop.shared.tables import BENCHMARK, FLEET, RUN_LEFT, RUN_OPEN

RUN, CELL, RESOURCE, LAUNCH, TERMS = "run", "cell#", "resource#", "launch#", "terms"
"""Sort keys, or their beginnings."""

ENDED = "ended"
"""The attribute of a launch that has ended."""

Item = Mapping[str, Any]


def key(run: str, item: str) -> dict[str, Any]:
    """Returns the key of an item, typed."""
    return {"run": {"S": run}, "item": {"S": item}}


def key_of(resource: Resource) -> dict[str, Any]:
    return key(resource.run, f"{RESOURCE}{resource.kind.value}#{resource.name}")


def at_of(run: Run) -> str:
    """Returns the sort key of the indices over runs: ordered by time, and unique."""
    return f"{moments.iso(run.at)}#{run.run}"


def run_item(run: Run) -> dict[str, Any]:
    """Converts a run to a typed item. ``open`` exists only while the run is open or has leftovers, which keeps the
    index over it small.
    """
    mark = RUN_OPEN if run.ended_at is None else RUN_LEFT if run.left_behind else None
    return typed(
        {
            "run": run.run,
            "item": RUN,
            "schema": SCHEMA,
            "kind": FLEET if run.standing else BENCHMARK,
            "at": at_of(run),
            "open": mark,
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
            **(standing_values(run.standing) if run.standing else {}),
            "estimate": asdict(run.estimate) if run.estimate else None,
            "cost": costs.to_document(run.cost) if run.cost else None,
            "cost_of_file": costs.to_document(run.cost_of_file) if run.cost_of_file else None,
            "counted": run.counted or None,
            "left_behind": left_documents(run.left_behind) or None,
        }
    )


def left_documents(left: Iterable[LeftBehind]) -> list[dict[str, str]]:
    """Converts what a run has left behind to documents for its item."""
    return [{"kind": one.kind.value, "name": one.name, "reason": one.reason} for one in left]


def standing_values(standing: Standing) -> dict[str, Any]:
    """Returns the further attributes of a standing fleet's item, including those that are None."""
    return {
        "desired": dict(standing.desired),
        "scaled_at": _iso(standing.scaled_at),
        "scaled_by": standing.scaled_by,
        "seen": {role: asdict(counts) for role, counts in standing.seen.items()},
        "seen_at": _iso(standing.seen_at),
        "ready_within": standing.ready_within,
        "backups": dict(standing.backups) or None,
        "max_prices": dict(standing.max_prices) or None,
        "market": market_document(standing.market) or None,
        "decisions": standing.decisions or None,
        "ranks": standing.ranks or None,
        "fixed": sorted(standing.fixed) if standing.ranks or standing.fixed else None,
    }


def market_document(market: Mapping[str, Market]) -> dict[str, Any]:
    """Converts what the checks of roles with a backup remember; the reverse of :func:`_market`."""
    return {
        role: {name: moments.iso(at) for name in _MARKET if (at := getattr(one, name))} for role, one in market.items()
    }


def _market(values: Item) -> Market:
    return Market(**{name: _moment(values, name) for name in _MARKET})


_MARKET = ("short_since", "surplus_since")


def name_of(item: Item) -> str:
    """Returns the table and the key of an item, for :mod:`troop.shared.malformed`."""
    return f"Runs: {item['run']['S']}, {item['item']['S']}"


def run_of(item: Item) -> Run:
    """Converts an item of :func:`run_item` back."""
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
        standing=_standing(values) if "desired" in values else None,
        estimate=Expected.of(values["estimate"]) if values.get("estimate") else None,
        cost=costs.from_document(values["cost"]) if "cost" in values else None,
        cost_of_file=costs.from_document(values["cost_of_file"]) if "cost_of_file" in values else None,
        counted=values.get("counted", ZERO),
        left_behind=tuple(
            LeftBehind(Kind(one["kind"]), one["name"], one["reason"]) for one in values.get("left_behind", ())
        ),
    )


def _standing(values: Item) -> Standing:
    ranks = bool(values.get("ranks"))
    # Before files could say it, ranks alone showed that a role's size matters.
    fixed = values.get("fixed", values["desired"] if ranks else ())
    return Standing(
        desired={role: int(count) for role, count in sorted(values["desired"].items())},
        scaled_at=_moment(values, "scaled_at"),
        scaled_by=values.get("scaled_by"),
        seen={
            role: Counts(**{k: int(n) for k, n in counts.items()}) for role, counts in sorted(values["seen"].items())
        },
        seen_at=_moment(values, "seen_at"),
        ready_within=int(values["ready_within"]) if "ready_within" in values else None,
        backups={role: int(timeout) for role, timeout in sorted(values.get("backups", {}).items())},
        max_prices=dict(sorted(values.get("max_prices", {}).items())),
        market={role: _market(one) for role, one in sorted(values.get("market", {}).items())},
        decisions=int(values.get("decisions", 0)),
        ranks=ranks,
        fixed=frozenset(fixed),
    )


def cell_item(cell: Cell) -> dict[str, Any]:
    """Converts a cell to a typed item."""
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
            "variant": codec.to_document(cell.variant),
            "attempt": cell.attempt,
            "cost": costs.to_document(cell.cost) if cell.cost else None,
            "point": codec.to_document(cell.point) if cell.point else None,
            "order": cell.order,
            "limits": cell.limits,
            "searches": cell.searches,
            "data_gone_at": _iso(cell.data_gone_at),
            "replaced_nodes": cell.replaced_nodes,
            "requests": cell.requests,
        }
    )


WITHOUT_FIGURES = (
    *("run", "item", "status", "phase", "phases", "reason", "closed_at"),
    *("variant", "attempt", "cost", "point", "order", "data_gone_at", "replaced_nodes", "requests"),
)
"""Attributes of a cell except for its results, limits and searches, which can have 200 KB."""


def _point_of(values: Item) -> PointPlace:
    counts = {name: int(values[name]) for name in ("number", "of", "repeat")}
    return PointPlace(**counts, parameters=jsonable(values["parameters"]))


def cell_of(item: Item) -> Cell:
    """Converts an item of :func:`cell_item` back, with the phases in the order in which they began."""
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
        variant=codec.from_document(Variant, values["variant"]) if "variant" in values else Variant(),
        attempt=int(values.get("attempt", 1)),
        cost=costs.from_document(values["cost"]) if "cost" in values else None,
        point=_point_of(values["point"]) if values.get("point") else None,
        order=int(values["order"]) if "order" in values else None,
        limits=jsonable(values["limits"]) if "limits" in values else None,
        searches=jsonable(values["searches"]) if "searches" in values else None,
        data_gone_at=_moment(values, "data_gone_at"),
        replaced_nodes=values.get("replaced_nodes"),
        requests={name: int(n) for name, n in values["requests"].items()} if "requests" in values else None,
    )


def resource_of(item: Item) -> Resource:
    """Converts an item to a resource; such items are only written attribute by attribute."""
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
        role=values.get("role"),
        instance_type=values.get("instance_type"),
        zone=values.get("zone"),
        purchase=values.get("purchase"),
        started_at=_moment(values, "started_at"),
        disk=_disk_of(values["disk"]) if "disk" in values else None,
    )


def facts_of(resource: Resource) -> dict[str, Any]:
    """Returns the known facts about a resource as attributes; unknown ones are omitted."""
    disk = resource.disk
    facts = {
        "role": resource.role,
        "instance_type": resource.instance_type,
        "zone": resource.zone,
        "purchase": resource.purchase,
        "started_at": _iso(resource.started_at),
        "disk": disk and {k: v for k, v in asdict(disk).items() if v is not None},
    }
    return {name: value for name, value in facts.items() if value is not None}


def _disk_of(item: Item) -> Disk:
    whole = {key: int(item[key]) for key in ("size_gib", "iops", "throughput_mib", "initialization_mib") if key in item}
    return Disk(type=item["type"], **whole)


def terms_item(run: str, terms: Terms) -> dict[str, Any]:
    """Converts the terms of a run to a typed item; None is omitted at any depth."""
    return key(run, TERMS) | typed({"schema": SCHEMA, "terms": _present(spending.to_document(terms))})


def terms_of(item: Item) -> Terms:
    """Converts an item of :func:`terms_item` back."""
    return spending.from_document(plain(item)["terms"])


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


def _iso(moment: datetime | None) -> str | None:
    return moments.iso(moment) if moment else None


def _moment(values: Item, name: str) -> datetime | None:
    return moments.parse(values[name]) if values.get(name) else None
