"""Checks the file's keys about money and builds :class:`troop.bench.definition.money.Money` from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from troop.bench.definition.definition import INSTANCE_TYPE
from troop.bench.definition.keys import Checked, amount, matching, one_of
from troop.bench.definition.money import (
    BILLINGS,
    CROSS_ZONE,
    ENDPOINT,
    INITIALIZATION,
    OTHERS,
    PER_SECOND,
    TERMS,
    Committed,
    Money,
    Price,
)
from troop.bench.definition.problems import Problem


def _priced(without: str) -> Checked:
    """Accepts instance types and the other items with a price. Leaves out one of these in what it says; the checks of
    relations refuse that one with the reason.
    """
    kinds = INSTANCE_TYPE.schema["pattern"][4:-2]
    listed = [name for name in OTHERS if name != without]
    allowed = f"an EC2 instance type, such as c7g.large, or one of {', '.join(listed)}"
    every = matching(rf"{kinds}|{'|'.join(OTHERS)}", allowed)
    return Checked(every.parse, allowed, matching(rf"{kinds}|{'|'.join(listed)}", "").schema)


PRICED, PRICED_IN_FLEETS = _priced(ENDPOINT), _priced(CROSS_ZONE)
BUDGET, GIGABYTES, BILLING = amount(0, 10_000_000), amount(0, 1_000_000_000), one_of(*BILLINGS)
REQUESTS = amount(0, 1_000_000_000_000)
_HOUR = amount(0, 100_000)
_UPFRONT = amount(0, 10_000_000)
LICENSE = _HOUR
_KINDS = ("on_demand", "spot")
_PARTS = ("upfront", "hourly")


def _price(value: Any) -> Price:
    if not isinstance(value, dict):
        return Price(on_demand=_HOUR.parse(value))
    if not value or not value.keys() <= {*_KINDS, *TERMS}:
        raise ValueError
    by_kind = {kind: _HOUR.parse(value[kind]) for kind in _KINDS if kind in value}
    return Price(**by_kind, committed={term: _committed(value[term]) for term in TERMS if term in value})


def _committed(value: Any) -> Committed:
    if not isinstance(value, dict):
        return Committed(_HOUR.parse(value))
    if value.keys() != set(_PARTS):
        raise ValueError
    return Committed(_HOUR.parse(value["hourly"]), upfront=_UPFRONT.parse(value["upfront"]))


_COMMITTED = {
    "anyOf": [
        _HOUR.schema,
        {
            "type": "object",
            "properties": {"upfront": _UPFRONT.schema, "hourly": _HOUR.schema},
            "additionalProperties": False,
            "required": list(_PARTS),
        },
    ]
}

PRICE = Checked(
    _price,
    f"USD an hour of one node: {_HOUR.allowed}, or a mapping of on_demand, spot, {' and '.join(TERMS)} to such "
    "numbers; a price for a term may also be a mapping of upfront and hourly",
    {
        "anyOf": [
            _HOUR.schema,
            {
                "type": "object",
                "properties": dict.fromkeys(_KINDS, _HOUR.schema) | dict.fromkeys(TERMS, _COMMITTED),
                "additionalProperties": False,
                "minProperties": 1,
            },
        ]
    },
)

DEFAULT_BILLING = PER_SECOND
USE = (
    "Reports show the cost by them beside the cost by AWS's prices. Limits and `budget` use them only where AWS has no "
    "price, and 0 counts as no price. `1y` and `3y` are prices of a reservation or savings plan."
)
"""What a file's own prices are for."""


def build_money(
    budget: Decimal | None,
    billing: str,
    prices: Mapping[str, Price],
    accept_unknown_prices: bool,
    cross_zone_gb: Decimal | None,
    requests: Mapping[str, Decimal],
) -> Money:
    """Builds the money settings from valid values of the keys."""
    return Money(
        budget=budget,
        billing=billing,
        prices={name: price for name, price in prices.items() if name not in OTHERS},
        other_prices={
            name: price.on_demand for name, price in prices.items() if name in OTHERS and price.on_demand is not None
        },
        accept_unknown_prices=accept_unknown_prices,
        cross_zone_gb=cross_zone_gb,
        requests={name: Decimal(count) for name, count in requests.items() if count},
    )


def problems(prices: Mapping[str, Price]) -> Iterator[Problem]:
    """Lists the problems of prices in a benchmark's file, which has no queue."""
    if ENDPOINT in prices:
        yield Problem(("prices", ENDPOINT), "is set", "left out: only standing fleets have a queue with an endpoint")
    yield from _mappings({name: price for name, price in prices.items() if name != ENDPOINT})


def _mappings(prices: Mapping[str, Price]) -> Iterator[Problem]:
    """Yields mappings for what has one price only."""
    others = {
        CROSS_ZONE: "USD a GB",
        INITIALIZATION: "USD a GiB of snapshot data at 100 MiB/s",
        ENDPOINT: "USD an hour in one zone",
    }
    units = dict.fromkeys(OTHERS, "USD a GiB-month") | others
    for name in OTHERS:
        price = prices.get(name)
        if price is not None and (price.spot is not None or price.committed):
            yield Problem(("prices", name), "is a mapping", f"a number: {units[name]}")


def fleet_file_problems(prices: Mapping[str, Price]) -> Iterator[Problem]:
    """Lists the problems of prices in a standing fleet's file, which has no price for traffic between zones."""
    if CROSS_ZONE in prices:
        yield Problem(("prices", CROSS_ZONE), "is set", "left out: Troop does not count the traffic of standing fleets")
    yield from _mappings({name: price for name, price in prices.items() if name != CROSS_ZONE})
