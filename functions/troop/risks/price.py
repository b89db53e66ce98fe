"""Defines a price with its currency. Pure."""

from __future__ import annotations

from decimal import Decimal

from troop.shared.records import record


@record
class Price:
    """An amount of a currency, such as USD; in China CNY."""

    amount: Decimal
    currency: str
