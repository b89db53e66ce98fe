"""What a benchmark's file says of money. Amounts are exact decimals, never floats.

Amounts are US dollars, or what the price list of the deployment's partition is in (China's is in yuan).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, ROUND_UP, Decimal
from typing import Any

PER_SECOND, HOURLY = "per-second", "hourly"
BILLINGS = (PER_SECOND, HOURLY)
"""How a node's time is counted: see :mod:`troop.bench.billing`."""

USD = "USD"

ZERO = Decimal(0)

CROSS_ZONE = "cross_zone_gb"
STORAGE = ("gp3", "io2")
OTHERS = (*STORAGE, CROSS_ZONE)
"""What can have a price by hand besides instance types: a GiB-month of storage, a GB that goes from zone to zone."""

_PLACES = Decimal("0.000001")
_IN_FULL = Decimal("1e15")
"""An amount from here on is written as a power of ten; decimals do not round one of 10^26 to cents."""


@dataclass(frozen=True)
class Price:
    """Of an hour of an instance type; None is not known."""

    on_demand: Decimal | None = None
    spot: Decimal | None = None


@dataclass(frozen=True)
class Money:
    """What the file says of money.

    Attributes:
        budget: what a run may be expected to cost; None for no limit.
        billing: one of :data:`BILLINGS`.
        prices: by instance type, by hand: the author's figures use them, limits only where AWS names no price.
        other_prices: by hand, of :data:`OTHERS`; as ``prices``.
        accept_unknown_prices: whether a run may begin though not all prices of its nodes are known.
        cross_zone_gb: what goes from zone to zone in one cell, as the author says: nothing measures it.
    """

    budget: Decimal | None = None
    billing: str = PER_SECOND
    prices: Mapping[str, Price] = field(default_factory=dict)
    other_prices: Mapping[str, Decimal] = field(default_factory=dict)
    accept_unknown_prices: bool = False
    cross_zone_gb: Decimal = ZERO


def money_document(money: Money) -> dict[str, Any]:
    """As JSON-like values, by the file's own keys; the reverse of :func:`money_of`."""
    by_type = {
        name: _present({"on_demand": number(price.on_demand), "spot": number(price.spot)})
        for name, price in money.prices.items()
    }
    others = {name: number(price) for name, price in money.other_prices.items()}
    return _present(
        {
            "budget": number(money.budget),
            "billing": money.billing,
            "prices": {**by_type, **others},
            "accept_unknown_prices": money.accept_unknown_prices,
            "traffic": {CROSS_ZONE: number(money.cross_zone_gb)},
        }
    )


def money_of(document: Mapping[str, Any]) -> Money:
    """Of a document that may hold other keys, too, or none of these.

    Raises:
        KeyError, TypeError, AttributeError, ArithmeticError: it is none.
    """
    prices = document.get("prices", {})
    return Money(
        budget=exact(document.get("budget")),
        billing=document.get("billing", PER_SECOND),
        prices={
            name: Price(exact(price.get("on_demand")), exact(price.get("spot")))
            for name, price in prices.items()
            if name not in OTHERS
        },
        other_prices={name: Decimal(str(price)) for name, price in prices.items() if name in OTHERS},
        accept_unknown_prices=document.get("accept_unknown_prices", False),
        cross_zone_gb=exact(document.get("traffic", {}).get(CROSS_ZONE)) or ZERO,
    )


def number(amount: Decimal | None) -> int | float | None:
    """As JSON has it. Up to 15 digits nothing of it is lost."""
    if amount is None:
        return None
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def exact(value: Any) -> Decimal | None:
    """The reverse of :func:`number`: the number whose shortest text a float is."""
    return None if value is None else Decimal(str(value))


def rounded(amount: Decimal) -> Decimal:
    """To a millionth, which is what is kept: the price of a second can be less than a cent's hundredth."""
    return amount.quantize(_PLACES)


def total(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, ZERO)


def shown(amount: Decimal | float, currency: str = USD, *, up: bool = False) -> str:
    """For people: ``$12.30``, and what is less than a cent as such.

    Args:
        up: to the next cent, for what has to be enough.
    """
    value = Decimal(str(amount))
    sign = "$" if currency == USD else f"{currency} "
    if not value.is_finite() or abs(value) >= _IN_FULL:
        return f"{sign}{value:.3e}"
    if ZERO < value < Decimal("0.01"):
        return f"less than {sign}0.01"
    return f"{sign}{value.quantize(Decimal('0.01'), ROUND_UP if up else ROUND_HALF_EVEN):,}"


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
