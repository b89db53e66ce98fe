"""A bill: what was used of what, or will be, at which price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from troop.bench.money import USD, ZERO, exact, rounded, total


@dataclass(frozen=True)
class Item:
    """One line.

    Attributes:
        what: in words, such as ``drivers, c7g.large, on-demand``.
        quantity: how many units.
        unit: such as ``node-hour``.
        price: of one unit; None when it is not known.
    """

    what: str
    quantity: Decimal
    unit: str
    price: Decimal | None

    @property
    def amount(self) -> Decimal | None:
        return None if self.price is None else self.quantity * self.price


@dataclass(frozen=True)
class Cost:
    """All lines of a cell, or of a run.

    Attributes:
        amount: of all lines whose price is known.
        unknown: what has no price, in words; then it costs more than ``amount``.
    """

    amount: Decimal = ZERO
    currency: str = USD
    items: tuple[Item, ...] = ()
    unknown: tuple[str, ...] = ()


def cost_of(items: Iterable[Item], currency: str) -> Cost:
    """The bill of some lines. Those of one thing at one price become one; lines of nothing are left out."""
    merged: dict[tuple[str, str, Decimal | None], Decimal] = {}
    for item in items:
        key = item.what, item.unit, item.price
        merged[key] = merged.get(key, ZERO) + item.quantity
    lines = tuple(
        Item(what, quantity, unit, price) for (what, unit, price), quantity in merged.items() if quantity > ZERO
    )
    known = (line.amount for line in lines if line.amount is not None)
    unknown = dict.fromkeys(line.what for line in lines if line.price is None)
    return Cost(total(known), currency, lines, tuple(unknown))


def to_document(cost: Cost) -> dict[str, Any]:
    """As values that DynamoDB keeps: amounts stay decimals, to a millionth. The reverse of :func:`from_document`."""
    return {
        "amount": rounded(cost.amount),
        "currency": cost.currency,
        "items": [item_document(item) for item in cost.items],
        "unknown": list(cost.unknown),
    }


def item_document(item: Item) -> dict[str, Any]:
    return {
        "what": item.what,
        "quantity": rounded(item.quantity),
        "unit": item.unit,
        "price": item.price,
        "amount": None if item.amount is None else rounded(item.amount),
    }


def from_document(document: Mapping[str, Any]) -> Cost:
    return Cost(
        amount=Decimal(str(document["amount"])),
        currency=document["currency"],
        items=tuple(
            Item(one["what"], Decimal(str(one["quantity"])), one["unit"], exact(one.get("price")))
            for one in document["items"]
        ),
        unknown=tuple(document["unknown"]),
    )
