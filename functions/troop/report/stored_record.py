"""Converts a run's record to the document stored with its results, and back, for reports.

Copies of a run do not include the deployment's table of runs. So this document states the outcome of the run and its
cells, their nodes, their cost and the prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.bench.admission import spending
from troop.bench.admission.spending import Terms
from troop.bench.records.record import Cell, Kind, Resource, Run
from troop.shared import codec
from troop.shared.codec import plain
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
    document: dict[str, Any] = plain(
        list,
        {
            "format": FORMAT,
            "troop": version,
            "run": _picked(codec.to_document(run), _RUN),
            "cells": [_picked(codec.to_document(cell), _CELL) for cell in sorted(cells, key=lambda cell: cell.cell)],
            "nodes": [codec.to_document(_node(one)) for one in nodes],
            "left": [{"cell": one.cell, "kind": one.kind.value, "name": one.name} for one in left],
            "terms": None if terms is None else spending.to_document(terms),
        },
    )
    return document


def from_document(document: Any) -> StoredRecord:
    """Reads a stored document. Ignores unknown keys.

    Raises:
        RecordError: the document has another format or is damaged.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise RecordError(f"a run's record must be an object with format {FORMAT}")
    try:
        run = _picked(document["run"], _RUN)
        cells = [{"run": run["run"], **_picked(cell, _CELL)} for cell in document["cells"]]
        return codec.from_document(StoredRecord, {**document, "run": run, "cells": cells})
    except (LookupError, TypeError, ValueError) as error:
        raise RecordError(f"the run's stored record is damaged: {error}") from None


def _picked(document: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: document[key] for key in keys if key in document}


_RUN = (
    *("run", "name", "status", "reason", "requested_by", "at", "expires_at", "closed_at", "ended_at", "outcome"),
    *("cells", "nodes", "estimate", "cost", "cost_of_file"),
)
_CELL = ("cell", "variant", "attempt", "status", "reason", "phases", "cost", "order", "data_gone_at", "requests")
"""Keys of the document, in their order."""


def _node(node: Resource) -> StoredNode:
    return StoredNode(
        node.cell,
        node.name,
        node.role,
        node.instance_type,
        node.zone,
        node.purchase,
        node.started_at or node.created_at,
        node.gone_at,
    )
