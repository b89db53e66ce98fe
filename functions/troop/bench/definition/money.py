"""Models the money settings of a benchmark's file. Amounts are exact decimals, never floats.

Amounts are in the currency of the partition's price list: US dollars, in China yuan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, ROUND_UP, Decimal
from typing import Any

from troop.shared.formatting import USD

PER_SECOND, HOURLY = "per-second", "hourly"
BILLINGS = (PER_SECOND, HOURLY)
"""The ways to bill a node's time, see :mod:`troop.bench.money.billing`."""

ZERO = Decimal(0)

CROSS_ZONE = "cross_zone_gb"
S3_GETS, S3_PUTS = "s3_gets", "s3_puts"
BILLED = (S3_GETS, S3_PUTS)
"""Kinds of requests that scripts send, and AWS bills."""
STORAGE = ("gp3", "gp2", "io1", "io2", "st1", "sc1")
INITIALIZATION = "initialization"
ENDPOINT = "endpoint"
OTHERS = (*STORAGE, CROSS_ZONE, INITIALIZATION, ENDPOINT)
"""Items besides instance types whose price a file can set: a GiB-month of storage, a GB between zones, a GiB of a
snapshot's data that EBS loads at 100 MiB/s, and an hour of the endpoint of a fleet's queue in one zone.
"""

TERMS = {"1y": 365 * 24, "3y": 3 * 365 * 24}
"""Terms of a commitment, such as a reservation or a savings plan, with their hours."""

MONTH_HOURS = 730
"""Hours in a month (a twelfth of a year), for the monthly cost of standing fleets."""

_PLACES = Decimal("0.000001")
_IN_FULL = Decimal("1e15")
"""Larger amounts are shown in scientific notation: decimals cannot round 10^26 to cents."""


@dataclass(frozen=True)
class Committed:
    """The price of a node that is reserved, or covered by a savings plan, for a whole term.

    Attributes:
        upfront: once.
        hourly: of each hour of the term, used or not.
    """

    upfront: Decimal = field(default=ZERO, kw_only=True)
    hourly: Decimal

    def an_hour(self, term: str) -> Decimal:
        """Returns the price of an hour, with its part of the upfront price."""
        return self.hourly + self.upfront / TERMS[term]


@dataclass(frozen=True)
class Price:
    """Prices of an hour of an instance type; None if unknown.

    Attributes:
        committed: by term, a key of :data:`TERMS`.
    """

    on_demand: Decimal | None = None
    spot: Decimal | None = None
    committed: Mapping[str, Committed] = field(default_factory=dict)


@dataclass(frozen=True)
class Money:
    """The money settings of a file.

    Attributes:
        budget: maximum expected cost of a run; None for no limit.
        billing: one of :data:`BILLINGS`.
        prices: the file's prices by instance type. The author's figures use them; limits do only if AWS lists no price.
        other_prices: the file's prices of :data:`OTHERS`; used as ``prices``.
        accept_unknown_prices: whether a run may begin although prices of its nodes are unknown.
        cross_zone_gb: traffic between zones in one cell as the author states it, which nothing measures; None if the
            file does not.
        requests: those of a cell's scripts to S3, as the author states them: by :data:`S3_GETS` and :data:`S3_PUTS`.
            Without kinds of which there are none.
    """

    budget: Decimal | None = None
    billing: str = PER_SECOND
    prices: Mapping[str, Price] = field(default_factory=dict)
    other_prices: Mapping[str, Decimal] = field(default_factory=dict)
    accept_unknown_prices: bool = False
    cross_zone_gb: Decimal | None = None
    requests: Mapping[str, Decimal] = field(default_factory=dict)


def money_document(money: Money) -> dict[str, Any]:
    """Converts to JSON-like values with the file's keys; the reverse of :func:`money_of`."""
    by_type = {
        name: _present({"on_demand": number(price.on_demand), "spot": number(price.spot)})
        | {term: _committed_document(one) for term, one in price.committed.items()}
        for name, price in money.prices.items()
    }
    others = {name: number(price) for name, price in money.other_prices.items()}
    return _present(
        {
            "budget": number(money.budget),
            "billing": money.billing,
            "prices": {**by_type, **others},
            "accept_unknown_prices": money.accept_unknown_prices,
            "traffic": _present({CROSS_ZONE: number(money.cross_zone_gb)})
            | {name: number(count) for name, count in money.requests.items()},
        }
    )


def money_of(document: Mapping[str, Any]) -> Money:
    """Reads the money settings of a document. All keys are optional, and other keys are ignored.

    Raises:
        KeyError, TypeError, AttributeError, ArithmeticError: the document is damaged.
    """
    prices, traffic = document.get("prices", {}), document.get("traffic", {})
    return Money(
        budget=exact(document.get("budget")),
        billing=document.get("billing", PER_SECOND),
        prices={
            name: Price(exact(price.get("on_demand")), exact(price.get("spot")), committed_of(price))
            for name, price in prices.items()
            if name not in OTHERS
        },
        other_prices={name: Decimal(str(price)) for name, price in prices.items() if name in OTHERS},
        accept_unknown_prices=document.get("accept_unknown_prices", False),
        cross_zone_gb=exact(traffic.get(CROSS_ZONE)),
        requests={name: count for name in BILLED if (count := exact(traffic.get(name)))},
    )


def committed_of(prices: Mapping[str, Any]) -> dict[str, Committed]:
    """Reads the prices by term among the keys of a document. A price is a number, or has ``hourly`` and ``upfront``."""
    return {
        term: Committed(Decimal(str(one["hourly"])), upfront=Decimal(str(one.get("upfront", 0))))
        if isinstance(one, Mapping)
        else Committed(Decimal(str(one)))
        for term in TERMS
        if (one := prices.get(term)) is not None
    }


def _committed_document(price: Committed) -> Any:
    if not price.upfront:
        return number(price.hourly)
    return {"upfront": number(price.upfront), "hourly": number(price.hourly)}


def number(amount: Decimal | None) -> int | float | None:
    """Converts an amount to a JSON number, exactly for up to 15 digits."""
    if amount is None:
        return None
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def exact(value: Any) -> Decimal | None:
    """Converts a JSON number to a decimal by its shortest text; the reverse of :func:`number`."""
    return None if value is None else Decimal(str(value))


def rounded(amount: Decimal) -> Decimal:
    """Rounds an amount to a millionth for storage: a second can cost less than a hundredth of a cent."""
    return amount.quantize(_PLACES)


def total(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, ZERO)


def shown(amount: Decimal | float, currency: str = USD, *, up: bool = False) -> str:
    """Formats an amount for people, such as ``$12.30`` or ``less than $0.01``.

    Args:
        up: whether to round up to the next cent, for amounts that must suffice.
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
