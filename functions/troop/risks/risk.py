"""Defines risks as they are on record, and exemptions from them. Pure."""

from __future__ import annotations

from dataclasses import field
from datetime import date, datetime, timedelta
from typing import Any

from troop.risks.price import Price
from troop.risks.rule import Severity
from troop.shared.codec import stored
from troop.shared.records import record

REMEMBERED = timedelta(days=100)
"""The time for which a risk that is gone stays on record: longer than the period of the usual report."""

LONGEST_EXEMPTION = timedelta(days=366)

Key = tuple[str, str]
"""A rule, and the name of its subject."""


@record
class Risk:
    """A rule that holds for a subject, or has held.

    Attributes:
        rule: its name, see :data:`troop.risks.rules.RULES`.
        subject: a unit, or the id of a resource.
        owner: by tag; "" without one.
        evidence: see :class:`troop.risks.rule.Hit`.
        first_seen, last_seen: the first and the last reading of this occurrence in which the rule held.
        gone_since: the first reading in which it no longer held; None while it holds.
        unknown: why the last reading could not tell; "" if it could.
        monthly: the price of a month; None if not known, or for no leftover.
        confirmed: the first event that confirmed it, see :mod:`troop.risks.signs`; "" without one.
    """

    rule: str
    subject: str
    severity: Severity
    owner: str
    evidence: dict[str, Any] = field(hash=False)
    first_seen: datetime
    last_seen: datetime
    gone_since: datetime | None = None
    unknown: str = field(default="", metadata=stored(omit=True))
    monthly: Price | None = None
    confirmed: str = field(default="", metadata=stored(omit=True))

    @property
    def key(self) -> Key:
        return self.rule, self.subject


@record
class Exemption:
    """Somebody accepts a risk until a day.

    Attributes:
        until: the last day, on the clock of the calendar ``default``.
        by: ARN of its author.
    """

    rule: str
    subject: str
    reason: str
    until: date
    by: str
    at: datetime

    @property
    def key(self) -> Key:
        return self.rule, self.subject
