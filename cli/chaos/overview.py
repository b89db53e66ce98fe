"""Counts units by state, and describes the ticks, for `troop status`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cli.chaos.units import outlook
from troop.chaos.outlook import TAKING_PART

_TICKS, _STRAYS = "ticks-", "stray-items"


def units_by_state(groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts units by the state that GET /groups gives them: those that take part first, then the most frequent."""
    states = {group["unit"]: str(outlook(group)["state"]) for group in groups}
    counts = Counter(states.values()).most_common()
    return dict(sorted(counts, key=lambda pair: pair[0] != TAKING_PART))


def events_by_status(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts events by status, the most frequent first."""
    return dict(Counter(str(event["status"]) for event in events).most_common())


def ticks(health: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the checks of GET /health that are about ticks."""
    return [check for check in health["checks"] if str(check["name"]).startswith(_TICKS)]


def strays(health: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the check of GET /health that names items of ``GroupTags`` without a unit; None if there are none."""
    return next((check for check in health["checks"] if check["name"] == _STRAYS and check["status"] != "ok"), None)


def in_words(counts: Mapping[str, int]) -> str:
    """Returns counts such as ``3 taking part, 1 protected``."""
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())
