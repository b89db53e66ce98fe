"""Reads the expected and the actual cost of a run."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from troop.bench.money.costs import Cost, role_of
from troop.report.document import Bill, Line, Money
from troop.report.sources import Sources
from troop.shared.formatting import USD


def run_cost(sources: Sources) -> Money:
    """Returns the costs of the whole run as far as they are known."""
    record, estimate = sources.record, sources.estimate or {}
    run = record.run if record else None
    estimate_document = run.estimate if run else None
    currency = estimate_document.currency if estimate_document else str(estimate.get("currency") or USD)
    return Money(
        currency=run.cost.currency if run and run.cost else currency,
        expected=float(estimate_document.expected) if estimate_document else _amount(estimate, "expected"),
        most=float(estimate_document.most) if estimate_document else _amount(estimate, "most"),
        budget=_float(estimate_document.budget) if estimate_document else _amount(estimate, "budget"),
        actual=bill(run.cost) if run and run.cost else None,
        of_file=bill(run.cost_of_file) if run and run.cost_of_file else None,
    )


def bill(cost: Cost) -> Bill:
    """Converts a cost to the bill of a report."""
    lines = [
        Line(
            what=item.what,
            quantity=float(item.quantity),
            unit=item.unit,
            price=_float(item.price),
            amount=None if item.amount is None else float(round(item.amount, 6)),
            role=role_of(item.what),
        )
        for item in cost.items
    ]
    return Bill(amount=float(cost.amount), lines=lines, unknown=list(cost.unknown), on_demand=_float(cost.on_demand))


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _amount(estimate: Mapping[str, Any], key: str) -> float | None:
    value = estimate.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
