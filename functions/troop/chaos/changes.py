"""Changes by people: what may be written into a unit's policy, and the record of who has changed what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from troop.chaos.policy import PARSERS
from troop.values import BadValue

MOST_NAMES = 50
"""Of stop alarms in an item."""


@dataclass(frozen=True)
class Author:
    """Who asks for a change: the ARN that IAM knows the caller by, and the id of his request."""

    caller: str
    request_id: str


@dataclass(frozen=True)
class Change:
    """A change on record.

    Attributes:
        subject: ``unit#<unit>`` or ``switch``.
        at: when it was made, aware.
        caller: ARN of whoever made it.
        values: (old, new) by key, None for a key that was, or then is, not set.
        replaces: the ``changed_request`` of the item that it has changed; None when that had none.
    """

    subject: str
    at: datetime
    caller: str
    values: Mapping[str, tuple[Any, Any]]
    replaces: str | None = None


def request_of(item: Mapping[str, Any]) -> str | None:
    """The id of the request that an item, in plain values, says it was last changed by; None when it says none."""
    request = item.get("changed_request")
    return request if isinstance(request, str) and request else None


def to_store(key: str, value: Any) -> Any:
    """A policy's value as it is stored: a plain attribute that people can read and edit.

    Args:
        key: one of :data:`troop.chaos.policy.PARSERS`.

    Raises:
        BadValue: the value is none that the key can have.
    """
    parsed = PARSERS[key](value)
    if isinstance(parsed, date):
        return parsed.isoformat()
    if isinstance(parsed, tuple):
        if len(parsed) > MOST_NAMES:
            raise BadValue(f"at most {MOST_NAMES} names")
        return list(parsed)
    return parsed


def version_of(item: Mapping[str, Any]) -> int:
    """The version of a unit's item; 0 when it has none: nobody has changed it but by hand."""
    version = item.get("version")
    try:
        number = int(version) if version is not None and not isinstance(version, (bool, str)) else 0
        return number if number == version and 0 < number < 2**53 else 0
    except (TypeError, ValueError, ArithmeticError):
        return 0
