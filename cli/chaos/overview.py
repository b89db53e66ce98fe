"""Counts units by state, and describes the ticks and the release, for `troop status`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cli.chaos import course
from cli.chaos.units import outlook
from cli.shared import show
from troop.chaos.outlook import TAKING_PART
from troop.shared import moments

_TICKS, _STRAYS = "ticks-", "stray-items"


def units_by_state(groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts units by the state that GET /groups gives them: those that take part first, then the most frequent."""
    states = {group["unit"]: str(outlook(group)["state"]) for group in groups}
    counts = Counter(states.values()).most_common()
    return dict(sorted(counts, key=lambda pair: pair[0] != TAKING_PART))


def odds(groups: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns how many units take part, and the number of terminations to expect of them on a business day.

    Each unit counts with its probability, the lowest of its groups. Caps, and days between terminations, can prevent
    some.
    """
    lowest: dict[str, float] = {}
    for group in groups:
        if outlook(group)["takes_part"]:
            lowest[group["unit"]] = min(lowest.get(group["unit"], 1.0), group["probability"])
    return {"units": len(lowest), "a_day": sum(lowest.values())}


def events_by_status(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts events by status, the most frequent first."""
    return dict(Counter(str(event["status"]) for event in events).most_common())


def events_by_verdict(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts events by verdict, the most frequent first; those without one are not counted."""
    return dict(Counter(words for event in events if (words := course.verdict(event))).most_common())


def ticks(health: Mapping[str, Any], now: datetime) -> str:
    """Returns whether ticks come and succeed, and when the last one came and the next one is due, in words."""
    checks = [check for check in health["checks"] if str(check["name"]).startswith(_TICKS)]
    if "last_tick" not in health:  # an API of an earlier version
        return "; ".join(show.timed(str(check["detail"])) for check in checks)
    late = [show.timed(str(check["detail"])) for check in checks if check["status"] != "ok"]
    last, following = (moments.parse(text) if (text := health.get(key)) else None for key in ("last_tick", "next_tick"))
    times = show.clocks(now, last=last, next=following)
    return "; ".join(filter(None, (*(late or ["on time" if last else "none has come yet"]), times)))


def release(health: Mapping[str, Any] | None) -> str:
    """Returns which release runs, and since when; "" if that is unknown, as with an API of an earlier version."""
    if not (running := (health or {}).get("release")):
        return ""
    commit = f"commit {running['commit'][:12]}" if running["commit"] else "of no commit"
    return f"{running['version']}, {commit}, since {show.moment(running['since'])}"


def strays(health: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the check of GET /health that names items of ``GroupTags`` without a unit; None if there are none."""
    return next((check for check in health["checks"] if check["name"] == _STRAYS and check["status"] != "ok"), None)


def in_words(counts: Mapping[str, int]) -> str:
    """Returns counts such as ``3 taking part, 1 protected``."""
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())
