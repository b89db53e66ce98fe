"""Chooses the customers, routes and proxies of a driver's visits, which no other driver uses at the same time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

AIRPORTS = (
    "AMS", "ATL", "BKK", "BOS", "CAI", "CDG", "DEL", "DFW", "DXB", "FCO",
    "FRA", "GRU", "HKG", "ICN", "IST", "JFK", "JNB", "LAX", "LHR", "MAD",
    "MEX", "NBO", "NRT", "ORD", "PEK", "SFO", "SIN", "SYD", "YYZ", "ZRH",
)  # fmt: skip
"""Those of the application."""
BROWSERS, MOBILES = 5, 1
"""The shares of the traffic."""


@dataclass(frozen=True)
class Visit:
    """What a customer does from login to logout. Names are JMeter's variables."""

    user: str
    password: str
    proxy: str
    origin: str
    target: str
    day: int
    back: int


COLUMNS = tuple(field.name for field in fields(Visit))


def plan(rank: int, drivers: int, proxies: Sequence[str], parameters: dict[str, int], count: int) -> Iterator[Visit]:
    """Yields ``count`` visits of a driver. The same arguments make the same visits.

    Args:
        rank: of the driver; customers are divided among all ``drivers``.
        proxies: addresses with ports, which get equal shares.
        parameters: ``customers`` and ``days`` of the data.
    """
    chosen = random.Random(rank)
    customers = range(rank % parameters["customers"], parameters["customers"], drivers)
    first = chosen.randrange(len(customers))
    for n in range(count):
        user = f"user{customers[(first + n) % len(customers)]}"
        origin, target = chosen.sample(AIRPORTS, 2)
        day = chosen.randint(1, parameters["days"])
        back = chosen.randint(day, parameters["days"])
        yield Visit(user, f"password-of-{user}", proxies[(rank + n) % len(proxies)], origin, target, day, back)


def divided(count: int) -> tuple[int, int]:
    """Returns how many of ``count`` threads are browsers and mobiles: at least one of each."""
    mobiles = max(1, round(count * MOBILES / (BROWSERS + MOBILES)))
    return max(1, count - mobiles), mobiles


def shares(rate: float) -> tuple[float, float]:
    """Returns the rates of browsers and mobiles."""
    mobiles = rate * MOBILES / (BROWSERS + MOBILES)
    return rate - mobiles, mobiles
