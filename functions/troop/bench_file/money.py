"""The file's keys about money: what they may hold, and what they make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from troop.bench.money import BILLINGS, CROSS_ZONE, OTHERS, PER_SECOND, Money, Price
from troop.bench.problems import Problem
from troop.bench_file.fields import Checked, amount, matching, one_of

INSTANCE_TYPE = matching(r"[a-z][a-z0-9-]{0,30}\.[a-z0-9-]{1,20}", "an EC2 instance type, such as c7g.large")
PRICED = matching(
    rf"{INSTANCE_TYPE.schema['pattern'][4:-2]}|{'|'.join(OTHERS)}",
    f"an EC2 instance type, such as c7g.large, or one of {', '.join(OTHERS)}",
)
_IN_FLEETS = tuple(name for name in OTHERS if name != CROSS_ZONE)
PRICED_IN_FLEETS = Checked(  # takes CROSS_ZONE, too: of_fleet_file refuses it with the reason
    PRICED.parse,
    f"an EC2 instance type, such as c7g.large, or one of {', '.join(_IN_FLEETS)}",
    matching(rf"{INSTANCE_TYPE.schema['pattern'][4:-2]}|{'|'.join(_IN_FLEETS)}", "").schema,
)
BUDGET, GIGABYTES, BILLING = amount(0, 10_000_000), amount(0, 1_000_000_000), one_of(*BILLINGS)
_HOUR = amount(0, 100_000)
_KINDS = ("on_demand", "spot")


def _price(value: Any) -> Price:
    if not isinstance(value, dict):
        return Price(on_demand=_HOUR.parse(value))
    if not value or not value.keys() <= set(_KINDS):
        raise ValueError
    return Price(**{kind: _HOUR.parse(price) for kind, price in value.items()})


PRICE = Checked(
    _price,
    f"USD an hour of one node: {_HOUR.allowed}, or on_demand and spot, or one of the two, with such numbers each",
    {
        "anyOf": [
            _HOUR.schema,
            {
                "type": "object",
                "properties": dict.fromkeys(_KINDS, _HOUR.schema),
                "additionalProperties": False,
                "minProperties": 1,
            },
        ]
    },
)

DEFAULT_BILLING = PER_SECOND


def build_money(
    budget: Decimal | None,
    billing: str,
    prices: Mapping[str, Price],
    accept_unknown_prices: bool,
    cross_zone_gb: Decimal,
) -> Money:
    """What the keys say, all of them right by themselves."""
    return Money(
        budget=budget,
        billing=billing,
        prices={name: price for name, price in prices.items() if name not in OTHERS},
        other_prices={
            name: price.on_demand for name, price in prices.items() if name in OTHERS and price.on_demand is not None
        },
        accept_unknown_prices=accept_unknown_prices,
        cross_zone_gb=Decimal(cross_zone_gb),
    )


def problems(prices: Mapping[str, Price]) -> Iterator[Problem]:
    """Prices of what is not bought in two ways."""
    units = dict.fromkeys(OTHERS, "USD of a GiB-month") | {CROSS_ZONE: "USD of a GB"}
    for name in OTHERS:
        price = prices.get(name)
        if price is not None and price.spot is not None:
            yield Problem(("prices", name), "is a mapping", f"a number: {units[name]}")


def of_fleet_file(prices: Mapping[str, Price]) -> Iterator[Problem]:
    """The same of a standing fleet's file, in which nobody says what goes between zones."""
    if CROSS_ZONE in prices:
        yield Problem(("prices", CROSS_ZONE), "is given", "left out: of a standing fleet traffic is not counted")
    yield from problems({name: price for name, price in prices.items() if name != CROSS_ZONE})
