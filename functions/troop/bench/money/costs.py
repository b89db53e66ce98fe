"""Represents a bill: quantities with their prices, used or expected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from troop.bench.definition.money import ZERO, rounded, total
from troop.shared import codec
from troop.shared.codec import stored
from troop.shared.formatting import USD

_ROUNDED, _REQUIRED = stored(encode=rounded, required=True), stored(required=True)


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
    quantity: Decimal = field(metadata=_ROUNDED)
    unit: str
    price: Decimal | None

    @property
    def amount(self) -> Decimal | None:
        return None if self.price is None else self.quantity * self.price


def item_document(item: Item) -> dict[str, Any]:
    """Converts a line to its document, which has the amount, too."""
    return codec.to_document(item) | {"amount": None if item.amount is None else rounded(item.amount)}


def _item_documents(items: Iterable[Item]) -> list[dict[str, Any]]:
    return [item_document(item) for item in items]


@dataclass(frozen=True)
class Cost:
    """The bill of a cell or a run. Its document has amounts rounded to a millionth.

    Attributes:
        amount: sum of all lines with a known price.
        unknown: texts of the lines without a price; if there are any, the real cost exceeds ``amount``.
        on_demand: what the same would have cost with all nodes on demand; None if unknown, or without spot nodes.
    """

    amount: Decimal = field(default=ZERO, metadata=_ROUNDED)
    currency: str = field(default=USD, metadata=_REQUIRED)
    items: tuple[Item, ...] = field(default=(), metadata=stored(encode=_item_documents, required=True))
    unknown: tuple[str, ...] = field(default=(), metadata=_REQUIRED)
    on_demand: Decimal | None = field(default=None, metadata=stored(encode=rounded, omit=True))


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
