"""Defines changes by people: the valid values of a unit's policy, and the record of each change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from troop.chaos.policy import PARSERS
from troop.shared.choice import text_of
from troop.shared.state_keys import HALT, ITSELF, UNIT

BESIDE = frozenset({ITSELF, "unrecovered"})
"""The keys of a record whose values are in other items than the changed one."""


@dataclass(frozen=True)
class Author:
    """The author of a change: the caller's ARN in IAM, and the id of the request."""

    caller: str
    request_id: str


@dataclass(frozen=True)
class Change:
    """A recorded change.

    Attributes:
        subject: ``unit#<unit>`` or ``switch``.
        at: when it was made, aware.
        caller: ARN of its author.
        values: (old, new) by key, None for a key that was, or then is, not set.
        replaces: the ``changed_request`` of the changed item; None if it had none.
        owner: the unit's owner before the change; "" if it had none, and of the switch.
    """

    subject: str
    at: datetime
    caller: str
    values: Mapping[str, tuple[Any, Any]]
    replaces: str | None = None
    owner: str = ""

    @property
    def unit(self) -> str | None:
        """The unit whose policy changed; None for the switch."""
        return self.subject.removeprefix(UNIT) if self.subject.startswith(UNIT) else None


def request_of(item: Mapping[str, Any]) -> str | None:
    """Returns the id of the request that last changed an item (in plain values); None if the item has none."""
    request = item.get("changed_request")
    return request if isinstance(request, str) and request else None


def halt_of(item: Mapping[str, Any]) -> dict[str, str] | None:
    """Returns from a switch's item (in plain values) ``by`` whom, ``at`` which moment and for which ``reason`` people
    have halted; None if they have not. A halt by hand, or by an earlier version, is the item's last change.
    """
    if not item.get("halted"):
        return None
    halt = item.get(HALT)
    if not isinstance(halt, Mapping):
        halt = {"at": item.get("changed_at"), "by": item.get("changed_by"), "reason": item.get("reason")}
    return {key: str(halt.get(key) or "") for key in ("at", "by", "reason")}


def to_store(key: str, value: Any) -> Any:
    """Converts a policy's value for storage: a plain attribute that people can read and edit.

    Args:
        key: one of :data:`troop.chaos.policy.PARSERS`.

    Raises:
        BadValue: the key cannot have this value.
    """
    parsed = PARSERS[key](value)
    if isinstance(parsed, date):
        return parsed.isoformat()
    if key == "method":
        return text_of(parsed)
    return list(parsed) if isinstance(parsed, tuple) else parsed


def version_of(item: Mapping[str, Any]) -> int:
    """Returns the version of a unit's item; 0 if it has none, because it was only edited by hand."""
    version = item.get("version")
    try:
        number = int(version) if version is not None and not isinstance(version, (bool, str)) else 0
        return number if number == version and 0 < number < 2**53 else 0
    except (TypeError, ValueError, ArithmeticError):
        return 0
