"""Converts a run's record to the document stored with its results, and back, for reports.

Copies of a run do not include the deployment's table of runs. So this document states the outcome of the run and its
cells, their nodes, their cost and the prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from troop.bench.admission import spending
from troop.bench.admission.spending import Terms
from troop.bench.definition.money import number
from troop.bench.definition.plan import Variant
from troop.bench.money import costs
from troop.bench.money.costs import Cost
from troop.bench.records.record import Cell, CellStatus, Expected, Kind, Resource, Run, RunStatus
from troop.shared import codec, moments
from troop.shared.errors import TroopError

FORMAT = "troop.record/1"


class RecordError(TroopError):
    """A document that is not a stored record, or comes from a later version."""


@dataclass(frozen=True)
class StoredNode:
    """An instance of a cell; unknown values are None."""

    cell: str
    id: str
    role: str | None = None
    instance_type: str | None = None
    zone: str | None = None
    purchase: str | None = None
    created_at: datetime | None = None
    gone_at: datetime | None = None


@dataclass(frozen=True)
class Left:
    """A resource that was not seen to be gone when the record was stored."""

    cell: str
    kind: str
    name: str


@dataclass(frozen=True)
class StoredRecord:
    """The content of the document.

    Attributes:
        troop: version of Troop that stored it.
        cells: all cells with earlier attempts, without results.
        terms: terms for the run's cost; None for a run without terms.
    """

    run: Run
    cells: tuple[Cell, ...]
    nodes: tuple[StoredNode, ...] = ()
    left: tuple[Left, ...] = ()
    terms: Terms | None = None
    troop: str = ""


def document(
    run: Run, cells: Sequence[Cell], resources: Iterable[Resource], terms: Terms | None, version: str
) -> dict[str, Any]:
    """Builds the stored document from JSON values; the reverse of :func:`from_document`.

    Args:
        cells: all on record, with earlier attempts.
        resources: all of the run.
        version: of Troop.
    """
    created = [one for one in resources if one.created_at]
    nodes = sorted((one for one in created if one.kind is Kind.INSTANCE), key=lambda one: (one.cell, one.name))
    left = sorted((one for one in created if not one.gone_at), key=lambda one: (one.cell, one.kind, one.name))
    fields: dict[str, Any] = {
        "format": FORMAT,
        "troop": version,
        "run": _run_document(run),
        "cells": [_cell_document(cell) for cell in sorted(cells, key=lambda cell: cell.cell)],
        "nodes": [_node_document(one) for one in nodes],
        "left": [{"cell": one.cell, "kind": one.kind.value, "name": one.name} for one in left],
        "terms": None if terms is None else spending.to_document(terms),
    }
    plain: dict[str, Any] = _plain(fields)
    return plain


def from_document(document: Any) -> StoredRecord:
    """Reads a stored document. Ignores unknown keys.

    Raises:
        RecordError: the document has another format or is damaged.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise RecordError(f"a run's record must be an object with format {FORMAT}")
    try:
        run = _run_of(document["run"])
        return StoredRecord(
            run=run,
            cells=tuple(_cell_of(run.run, one) for one in document["cells"]),
            nodes=tuple(_node_of(one) for one in document["nodes"]),
            left=tuple(Left(one["cell"], one["kind"], one["name"]) for one in document.get("left", [])),
            terms=spending.from_document(document["terms"]) if document["terms"] else None,
            troop=str(document["troop"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise RecordError(f"the run's stored record is damaged: {error!r}") from None


def _run_document(run: Run) -> dict[str, Any]:
    return {
        "run": run.run,
        "name": run.name,
        "status": run.status.value,
        "reason": run.reason,
        "requested_by": run.requested_by,
        "at": _iso(run.at),
        "expires_at": _iso(run.expires_at),
        "closed_at": _iso(run.closed_at),
        "ended_at": _iso(run.ended_at),
        "outcome": run.outcome and run.outcome.value,
        "cells": run.cells,
        "nodes": run.nodes,
        "estimate": run.estimate and asdict(run.estimate),
        "cost": run.cost and costs.to_document(run.cost),
        "cost_of_file": run.cost_of_file and costs.to_document(run.cost_of_file),
    }


def _run_of(document: Mapping[str, Any]) -> Run:
    return Run(
        run=document["run"],
        name=document["name"],
        at=moments.parse(document["at"]),
        expires_at=moments.parse(document["expires_at"]),
        requested_by=document["requested_by"],
        cells=int(document["cells"]),
        nodes=int(document["nodes"]),
        status=RunStatus(document["status"]),
        outcome=RunStatus(document["outcome"]) if document.get("outcome") else None,
        closed_at=_moment(document.get("closed_at")),
        ended_at=_moment(document.get("ended_at")),
        reason=document.get("reason"),
        estimate=Expected.of(document["estimate"]) if document.get("estimate") else None,
        cost=_cost_of(document.get("cost")),
        cost_of_file=_cost_of(document.get("cost_of_file")),
    )


def _cell_document(cell: Cell) -> dict[str, Any]:
    return {
        "cell": cell.cell,
        "variant": codec.to_document(cell.variant),
        "attempt": cell.attempt,
        "status": cell.status.value,
        "reason": cell.reason,
        "phases": {name: _iso(at) for name, at in cell.phases.items()},
        "cost": cell.cost and costs.to_document(cell.cost),
        "order": cell.order,
        "data_gone_at": _iso(cell.data_gone_at),
        "requests": cell.requests,
    }


def _cell_of(run: str, document: Mapping[str, Any]) -> Cell:
    began = {name: moments.parse(at) for name, at in document["phases"].items()}
    return Cell(
        run=run,
        cell=document["cell"],
        status=CellStatus(document["status"]),
        phases=dict(sorted(began.items(), key=lambda pair: pair[1])),
        reason=document.get("reason"),
        variant=codec.from_document(Variant, document["variant"]) if document.get("variant") else Variant(),
        attempt=int(document.get("attempt", 1)),
        cost=_cost_of(document.get("cost")),
        order=None if document.get("order") is None else int(document["order"]),
        data_gone_at=_moment(document.get("data_gone_at")),
        requests=document.get("requests"),
    )


def _node_document(node: Resource) -> dict[str, Any]:
    return {
        "cell": node.cell,
        "id": node.name,
        "role": node.role,
        "instance_type": node.instance_type,
        "zone": node.zone,
        "purchase": node.purchase,
        "created_at": _iso(node.started_at or node.created_at),
        "gone_at": _iso(node.gone_at),
    }


def _node_of(document: Mapping[str, Any]) -> StoredNode:
    texts = {name: document.get(name) for name in ("role", "instance_type", "zone", "purchase")}
    created_at, gone_at = _moment(document.get("created_at")), _moment(document.get("gone_at"))
    return StoredNode(document["cell"], document["id"], **texts, created_at=created_at, gone_at=gone_at)


def _cost_of(document: Mapping[str, Any] | None) -> Cost | None:
    return costs.from_document(document) if document else None


def _iso(moment: datetime | None) -> str | None:
    return moments.iso(moment) if moment else None


def _moment(text: str | None) -> datetime | None:
    return moments.parse(text) if text else None


def _plain(value: Any) -> Any:
    """Converts amounts to JSON numbers, exactly for up to 15 digits, and tuples to lists."""
    if isinstance(value, Decimal):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value
