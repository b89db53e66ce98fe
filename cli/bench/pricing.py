"""Chooses the roles and the prices from which a comparison computes cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import fsum
from typing import Literal

from troop.bench.definition.money import TERMS, ZERO, Committed
from troop.report.document import Cell, Charge, Fleet
from troop.report.fleets import system
from troop.shared.errors import TroopError

AWS, FILE = "aws", "file"
Source = Literal["aws", "file"]
Term = Literal["1y", "3y"]

_PRICE = re.compile(r"([a-z][a-z0-9-]*\.[a-z0-9-]+)=(?:(\d+(?:\.\d+)?)\+)?(\d+(?:\.\d+)?)")


class BadPriceError(TroopError):
    """A price or a role on the command line that has no meaning; the message says what it must be."""


@dataclass(frozen=True)
class Pricing:
    """The roles and prices of a comparison.

    Attributes:
        roles: the roles whose cost counts; None for all that do not only generate load.
        source: AWS's prices on record, or those of the benchmark's file.
        term: the prices of a commitment, for nodes whose type has one; None for nodes as they were bought.
        types: the user's own prices by instance type, in place of any other.
    """

    roles: tuple[str, ...] | None = None
    source: Source = "aws"
    term: Term | None = None
    types: Mapping[str, Committed] = field(default_factory=dict)

    def counted(self, cell: Cell) -> tuple[str, ...]:
        """Returns the roles of a cell whose cost counts."""
        if self.roles is None:
            return tuple(fleet.role for fleet in system(cell.fleets))
        return tuple(fleet.role for fleet in cell.fleets if fleet.role in self.roles)

    def node(self, fleet: Fleet) -> float | None:
        """Returns the price of one node of a fleet for an hour; None if it is unknown."""
        if not fleet.nodes:
            return None
        charge = self._charge(fleet)
        own = self.types.get(fleet.instance_type)
        if own is not None:
            instance = float(own.an_hour(self.term) if self.term else own.hourly)
            if charge is None:  # in a report of an earlier version, or without prices
                return instance
            return None if charge.storage is None else instance + (charge.storage + charge.license) / fleet.nodes
        if charge is None:
            return fleet.hourly / fleet.nodes if fleet.hourly is not None else None
        committed = charge.committed.get(self.term) if self.term else None
        if committed is None or charge.storage is None:
            return charge.hourly / fleet.nodes if charge.hourly is not None else None
        return (committed + charge.storage + charge.license) / fleet.nodes

    def hourly(self, cell: Cell) -> float | None:
        """Returns the price of the nodes of a cell whose cost counts, for an hour; None if one is unknown."""
        counted = self.counted(cell)
        prices = [(self.node(fleet), fleet.nodes) for fleet in cell.fleets if fleet.role in counted and fleet.nodes]
        known = [price * nodes for price, nodes in prices if price is not None]
        return fsum(known) if len(known) == len(prices) else None

    def remarks(self, side: str, cells: Sequence[Cell]) -> Iterator[str]:
        """Yields what makes the prices of a side differ from what the user chose."""
        fleets = [fleet for cell in cells for fleet in cell.fleets if fleet.role in self.counted(cell)]
        lacking = dict.fromkeys(fleet.role for fleet in fleets if self.term and not self._is_committed(fleet))
        if lacking:
            yield (
                f"{', '.join(lacking)} of {side}: no price for {self.term} is known, so their nodes cost as they were "
                "bought. Add --price TYPE=UPFRONT+HOURLY"
            )
        if self.source == FILE and (alike := dict.fromkeys(f.role for f in fleets if f.charge_of_file is None)):
            yield f"{', '.join(alike)} of {side}: its file has no prices, so AWS's prices count"
        old = dict.fromkeys(f.role for f in fleets if f.charge is None and f.instance_type in self.types)
        if old:
            yield (
                f"{', '.join(old)} of {side}: the report has no prices of storage, so only the instances cost. "
                "`troop bench report RUN --again` creates it again"
            )

    def _charge(self, fleet: Fleet) -> Charge | None:
        return fleet.charge_of_file or fleet.charge if self.source == FILE else fleet.charge

    def _is_committed(self, fleet: Fleet) -> bool:
        charge = self._charge(fleet)
        return fleet.instance_type in self.types or (charge is not None and self.term in charge.committed)


AS_BOUGHT = Pricing()
"""AWS's prices of nodes as they were bought, without roles that only generate load."""


def prices_of(texts: Sequence[str], term: str | None) -> dict[str, Committed]:
    """Reads prices such as ``i4i.large=0.12``, or ``i4i.large=1500+0.05`` with an upfront price for the term.

    Raises:
        BadPriceError: a text has another form, a type occurs twice, or an upfront price has no term.
    """
    prices: dict[str, Committed] = {}
    for text in texts:
        match = _PRICE.fullmatch(text)
        if not match:
            raise BadPriceError(f"--price {text}: must be TYPE=HOURLY or TYPE=UPFRONT+HOURLY, such as i4i.large=0.12")
        kind, upfront, hourly = match.groups()
        if kind in prices:
            raise BadPriceError(f"--price {text}: {kind} already has a price")
        if upfront and term is None:
            raise BadPriceError(f"--price {text}: an upfront price needs --term {' or '.join(TERMS)}")
        prices[kind] = Committed(Decimal(hourly), upfront=Decimal(upfront) if upfront else ZERO)
    return prices


def roles_of(text: str | None) -> tuple[str, ...] | None:
    """Reads a list of roles: ``servers,cache``.

    Raises:
        BadPriceError: a role is empty.
    """
    if text is None:
        return None
    roles = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in roles:
        raise BadPriceError(f"--cost-of {text!r}: must be roles with commas between them, such as servers,cache")
    return roles


def refuse_unknown(pricing: Pricing, a: Sequence[Cell], b: Sequence[Cell]) -> None:
    """Refuses a choice of roles or types that a side does not have.

    Raises:
        BadPriceError: neither side has a role or a type, or a side has none of the roles.
    """
    fleets = [fleet for cell in (*a, *b) for fleet in cell.fleets]
    kinds = sorted({fleet.instance_type for fleet in fleets})
    if fleets and (foreign := [kind for kind in pricing.types if kind not in kinds]):
        raise BadPriceError(f"--price {foreign[0]}: neither side has such nodes, only {', '.join(kinds)}")
    if pricing.roles is None:
        return
    known = dict.fromkeys(fleet.role for fleet in fleets)
    if unknown := [role for role in pricing.roles if role not in known]:
        raise BadPriceError(f"--cost-of {unknown[0]}: no fleet has this role, only {', '.join(known)}")
    for side, cells in (("A", a), ("B", b)):
        if not any(pricing.counted(cell) for cell in cells):
            there = ", ".join(dict.fromkeys(fleet.role for cell in cells for fleet in cell.fleets))
            raise BadPriceError(f"--cost-of {','.join(pricing.roles)}: {side} has none of these roles, only {there}")
