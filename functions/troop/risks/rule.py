"""Defines rules: what predicts a failed recovery, or costs money for nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from troop.risks.price import Price
from troop.risks.signs import Sign
from troop.shared.records import record


class Severity(StrEnum):
    """How bad it gets: a recovery that fails; one that takes longer, or of which nobody knows; money or order."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Subject(StrEnum):
    """The kinds of subjects of rules."""

    UNIT = "unit"
    INSTANCE = "instance"
    VOLUME = "volume"
    SNAPSHOT = "snapshot"
    TEMPLATE = "launch template"
    ADDRESS = "address"


CHARGED = frozenset({Subject.VOLUME, Subject.SNAPSHOT, Subject.ADDRESS})
"""The kinds of leftovers that AWS charges for."""

Evidence = Mapping[str, str | int | float | list[str]]


@record
class Hit:
    """A rule holds for a subject.

    Attributes:
        evidence: the values that show it, by words for people.
        monthly: the price of a month of a leftover; None if not known, or for no leftover.
    """

    evidence: Evidence
    monthly: Price | None = None


@record
class Unknown:
    """Whether a rule holds for a subject cannot be said.

    Attributes:
        why: what is not known, in words.
    """

    why: str


@record
class Rule:
    """A rule.

    Attributes:
        name: in lower case with hyphens.
        title: the risk in a sentence without a period.
        reason: why that is a risk.
        remedy: what to do.
        check: decides about one subject: None if it is no risk.
        confirmed_by: the signs of a failed event that confirm the risk; empty if none can.
    """

    name: str
    severity: Severity
    title: str
    reason: str
    remedy: str
    check: Callable[[Any], Hit | Unknown | None]
    subject: Subject = Subject.UNIT
    confirmed_by: frozenset[Sign] = frozenset()

    @property
    def is_cost(self) -> bool:
        """Whether it is about leftovers."""
        return self.subject not in (Subject.UNIT, Subject.INSTANCE)
