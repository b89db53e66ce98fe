"""The record that is kept with a run's results: nothing of it is lost on its way through JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from troop.bench.admission.spending import CellTerms, Terms
from troop.bench.definition.plan import Variant
from troop.bench.money.costs import Item, cost_of
from troop.bench.money.prices import Prices, VolumePrice
from troop.bench.records.record import Cell, CellStatus, Disk, Expected, Kind, Resource, Run, RunStatus
from troop.report import stored_record

AT = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
COST = cost_of([Item("drivers, c7g.large, spot", Decimal("0.333333"), "node-hour", Decimal("0.0725"))], "USD")
COST = replace(COST, amount=Decimal("0.024167"))
RUN = Run(
    run="20261120-150000-1f0c9b2e",
    name="reads",
    at=AT,
    expires_at=AT + timedelta(hours=2),
    requested_by="arn:aws:iam::111122223333:user/ada",
    cells=1,
    nodes=3,
    status=RunStatus.PARTIAL,
    outcome=RunStatus.PARTIAL,
    closed_at=AT + timedelta(minutes=40),
    ended_at=AT + timedelta(minutes=45),
    reason="1 of 2 cells succeeded",
    estimate=Expected(Decimal("0.1234"), Decimal("1.5"), "USD", Decimal(2)),
    cost=COST,
)
PHASES = {"launch": AT, "boot": AT + timedelta(seconds=20), "measure": AT + timedelta(seconds=90)}
CELLS = [
    Cell(RUN.run, "c001", CellStatus.INVALID, "over", PHASES, "i-1 was lost", cost=COST),
    Cell(
        RUN.run,
        "c001-2",
        CellStatus.SUCCEEDED,
        "over",
        PHASES,
        variant=Variant("n3", {"parameters.sizes": (1, 2.5, "a")}, 2),
        attempt=2,
    ),
]
TERMS = Terms(
    Prices(
        on_demand={"c7g.large": Decimal("0.0725")},
        spot={"c7g.large": {"eu-central-1a": Decimal("0.0301")}},
        volumes={"gp3": VolumePrice(Decimal("0.0952"), (Decimal("0.006"),), Decimal("0.048"))},
    ),
    budget=Decimal(2),
    cells={"c001": CellTerms(Decimal("0.1"), Decimal("0.2"), 3, Decimal("0.01"), Decimal(0))},
)


def resource(kind: Kind, name: str, **more: Any) -> Resource:
    return Resource(RUN.run, "c001", kind, name, AT, **{"created_at": AT, "gone_at": AT + timedelta(hours=1), **more})


RESOURCES = [
    resource(Kind.LAUNCH_TEMPLATE, "troop-lt"),
    resource(Kind.INSTANCE, "i-2", role="drivers", instance_type="c7g.large", zone="a", purchase="spot"),
    resource(Kind.INSTANCE, "i-1", role="drivers", started_at=AT + timedelta(seconds=7)),
    resource(Kind.VOLUME, "vol-1", gone_at=None, disk=Disk("gp3", 8)),
    resource(Kind.SECURITY_GROUP, "never", created_at=None, gone_at=None),
]


def test_stored_record_is_read_back() -> None:
    document = json.loads(json.dumps(stored_record.document(RUN, CELLS, RESOURCES, TERMS, "0.2")))
    record = stored_record.from_document(document)
    assert record.run == RUN
    assert record.cells == tuple(replace(cell, phase="launch") for cell in CELLS)
    assert record.terms == TERMS
    assert record.troop == "0.2"
    first, second = record.nodes
    assert (first.id, first.created_at, first.purchase) == ("i-1", AT + timedelta(seconds=7), None)
    assert (second.id, second.zone, second.gone_at) == ("i-2", "a", AT + timedelta(hours=1))
    assert record.left == (stored_record.Left("c001", "volume", "vol-1"),)
    assert "results" not in document["cells"][0]


def test_record_of_a_run_without_money_is_read_back() -> None:
    run = replace(RUN, estimate=None, cost=None, ended_at=None)
    record = stored_record.from_document(stored_record.document(run, [], [], None, "0.2"))
    assert (record.run, record.cells, record.terms) == (run, (), None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "troop.record/9"}, "format troop.record/1"),
        ({"cells": [{"cell": "c001"}]}, "damaged"),
        ({"run": None}, "damaged"),
        ({"nodes": 3}, "damaged"),
        ({"terms": {"prices": {}}}, "damaged"),
    ],
)
def test_document_that_is_no_record_is_refused(change: dict[str, Any], why: str) -> None:
    document = stored_record.document(RUN, CELLS, RESOURCES, TERMS, "0.2") | change
    with pytest.raises(stored_record.RecordError, match=why):
        stored_record.from_document(document)
