"""Writes the letter of a period: a few lines by owner, made of a summary. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from troop.shared.formatting import counted, duration
from troop.shared.zones import Zone

MOST_OWNERS = 40
MOST_NAMES = 3
"""The most owners of a letter, and the most units that a line names in one place: a topic accepts 256 KB, and readers
accept less.
"""

_LONGEST_NAME = 100


def week_before(moment: datetime, zone: Zone) -> tuple[date, date]:
    """Returns the Monday and the Sunday of the last full week before a moment, on the zone's clock."""
    today = moment.astimezone(zone).date()
    sunday = today - timedelta(days=today.weekday() + 1)
    return sunday - timedelta(days=6), sunday


def bounds(first: date, last: date, zone: Zone) -> tuple[datetime, datetime]:
    """Returns the moments at which the first of some days begins, and the last one ends."""
    return (
        datetime.combine(first, time.min, zone),
        datetime.combine(last + timedelta(days=1), time.min, zone),
    )


def letter(summary: Mapping[str, Any]) -> list[str]:
    """Returns the lines of the letter.

    Args:
        summary: see :meth:`troop.chaos.period.Period.document`.
    """
    totals = summary["totals"]
    head = f"{summary['first']} to {summary['last']}: "
    if not totals["hits"]:
        leashed = summary["without_termination"].get("LEASHED", 0)
        would = f"; the leash prevented {counted(leashed, 'hit')}" if leashed else ""
        return [f"{head}no hits{would}."]
    lines = [f"{head}{_hits(totals, counted(summary['units_hit'], 'unit'))}{_verdicts(totals)}."]
    owners = [row for row in summary["owners"] if row["hits"]]
    for row in owners[:MOST_OWNERS]:
        owner = short(row["owner"] or "no owner")
        lines.append(f"{owner}: {_hits(row)}{''.join(_parts(row, summary))}.")
    if len(owners) > MOST_OWNERS:
        lines.append(f"{counted(len(owners) - MOST_OWNERS, 'more owner')}: `troop report` has all of them.")
    return lines


def _parts(row: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is told of an owner. Units come from their counts, because lists of events are bounded."""
    units = [one for one in summary["units"] if one["owner"] == row["owner"]]
    yield _verdicts(row)
    if row["recovery"]["count"]:
        yield f"; recovered in {_seconds(row['recovery']['median'])} (median)"
    if row["recovery_after_faults"]["count"]:
        median = _seconds(row["recovery_after_faults"]["median"])
        yield f"; recovered {median} after a lasting fault (median)"
    yield named(
        "; broken or not recovered: ", [short(one["unit"]) for one in units if one["broken"] or one["unrecovered"]]
    )
    yield named("; verdict unknown: ", [short(one["unit"]) for one in units if one["unknown"]])
    slow = {one["unit"]: short(one["unit"]) for one in units if one["slower"]}
    slowest = {
        one["unit"]: f"{short(one['unit'])} ({_seconds(one['seconds'])}, usually {_seconds(one['usual_seconds'])})"
        for one in reversed(summary["slower"])  # of several of one unit, the slowest stays
        if one["unit"] in slow
    }
    ordered = dict.fromkeys([one["unit"] for one in summary["slower"] if one["unit"] in slow]) | slow | slowest
    yield named("; slower than before: ", [name for name in ordered.values() if name])
    yield named("; held again: ", [short(one["unit"]) for one in summary["mended"] if one["owner"] == row["owner"]])


def _hits(counts: Mapping[str, Any], units: str = "") -> str:
    """Returns how many hits of each kind there were: ``2 terminations and 1 lasting fault of 2 units``."""
    kinds = {"termination": counts["terminations"], "lasting fault": counts["injections"]}
    words = " and ".join(counted(number, kind) for kind, number in kinds.items() if number)
    return f"{words} of {units}" if units else words


def _verdicts(counts: Mapping[str, Any]) -> str:
    """Returns the verdicts that occur: ``, 3 HELD, 1 BROKEN``."""
    words = {
        "held": "HELD",
        "broken": "BROKEN",
        "unknown": "UNKNOWN",
        "pending": "without a verdict yet",
        "unjudged": "without a verdict",
    }
    return "".join(f", {counts[key]:,} {word}" for key, word in words.items() if counts[key])


def named(head: str, names: Sequence[str]) -> str:
    """Returns the first names after some words, and how many more there are; "" without names."""
    if not names:
        return ""
    more = len(names) - MOST_NAMES
    return head + ", ".join(names[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _seconds(seconds: float) -> str:
    return duration(seconds).replace("\N{NO-BREAK SPACE}", " ")


def short(text: str) -> str:
    """Returns the beginning of a name that people have set, on one line."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 3] + "..."
