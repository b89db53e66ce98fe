"""Describes the next days of a unit in words, from the document of :mod:`cli.forecasts.unit_ahead`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from cli.shared.listings import Column
from troop.chaos.guards import in_words
from troop.shared.formatting import share


def _day(day: Mapping[str, Any]) -> str:
    return f"{date.fromisoformat(day['day']):%a %Y-%m-%d}"


def _hours(day: Mapping[str, Any]) -> str | None:
    return None if day["reason"] else f"{day['open']} to {day['close']}"


def _why_not(day: Mapping[str, Any]) -> str | None:
    return in_words(day["reason"], day["detail"]) if day["reason"] else None


def _outcome(day: Mapping[str, Any]) -> str:
    expected = day["expected"]
    if expected is None or not expected["hit"]:
        return "no"
    return "leashed" if expected["leashed"] else "yes"


def _why(day: Mapping[str, Any]) -> str | None:
    expected = day["expected"]
    if expected is None:
        return _why_not(day)
    return None if expected["hit"] else in_words(expected["reason"], expected["detail"])


def _expected(day: Mapping[str, Any], key: str) -> Any:
    return day["expected"] and day["expected"][key]


OUTCOMES = (
    Column("day", _day),
    Column("hit", _outcome),
    Column("at", lambda day: _expected(day, "at")),
    Column("instance", lambda day: _expected(day, "instance_id")),
    Column("if it has gone", lambda day: (_expected(day, "rank") or [])[1:], wide=True),
    Column("why not", _why),
)
ODDS = (
    Column("day", _day),
    Column("chance", lambda day: share(day["chance"])),
    Column("hours", _hours),
    Column("why not", _why_not),
)
"""The columns of a table of days, for those who may read the salt and for those who may not."""


def _likely(chance: float) -> str:
    return "over 99 %" if 0.99 < chance < 1 else share(chance)


def summary(document: Mapping[str, Any]) -> str:
    """Returns one or two sentences: when the unit is hit next or, without the salt, the odds and why only these."""
    days, unit = document["days"], document["unit"]
    span = f"{len(days)} days" if len(days) > 1 else "day"
    if document["not_expected"]:
        return (
            f"The chance that {unit} loses an instance within the {span} is {_likely(document['chance_of_any'])}. "
            f"These are odds; to see the minute, you must read the salt: {document['not_expected']}."
        )
    hit = next((day for day in days if day["expected"] and day["expected"]["hit"]), None)
    if hit is None:
        return f"{unit} loses no instance within the {span}, if nothing changes."
    expected = hit["expected"]
    would = "would lose" if expected["leashed"] else "loses"
    leash = ", were the deployment not leashed" if expected["leashed"] else ""
    return (
        f"Next: {unit} {would} {expected['instance_id']} on {date.fromisoformat(hit['day']):%A} {hit['day']} at "
        f"{expected['at']} {document['time_zone']}{leash}, if nothing changes."
    )
