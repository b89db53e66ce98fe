"""Represents a bill: quantities with their prices, used or expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from troop.bench.definition.money import USD, ZERO, exact, rounded, total


@dataclass(frozen=True)
class Item:
    """One line of a bill.

    Attributes:
        what: a text such as ``drivers, c7g.large, on-demand``.
        quantity: number of units.
        unit: such as ``node-hour``.
        price: of one unit; None if unknown.
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
    """The bill of a cell or a run.

    Attributes:
        amount: sum of all lines with a known price.
        unknown: texts of the lines without a price; if there are any, the real cost exceeds ``amount``.
        on_demand: what the same would have cost with all nodes on demand; None if unknown, or without spot nodes.
    """

    amount: Decimal = ZERO
    currency: str = USD
    items: tuple[Item, ...] = ()
    unknown: tuple[str, ...] = ()
    on_demand: Decimal | None = None


def cost_of(items: Iterable[Item], currency: str) -> Cost:
    """Sums lines to a bill. Merges lines of the same item, unit and price, and omits lines with quantity 0."""
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


def role_of(text: str) -> str | None:
    """Returns the role at the beginning of an item's text: ``drivers`` of ``drivers, storage gp3``."""
    role, comma, _ = text.partition(", ")
    return role if comma and " " not in role else None


def to_document(cost: Cost) -> dict[str, Any]:
    """Converts to values for DynamoDB, with amounts as decimals rounded to a millionth; the reverse of
    :func:`from_document`.
    """
    return {
        "amount": rounded(cost.amount),
        "currency": cost.currency,
        "items": [item_document(item) for item in cost.items],
        "unknown": list(cost.unknown),
        **({} if cost.on_demand is None else {"on_demand": rounded(cost.on_demand)}),
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
        on_demand=exact(document.get("on_demand")),
    )
