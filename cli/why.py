"""`troop why`: why a unit was left alone on a day, or what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

import typer

from cli import show, times
from cli.answers import answer, day_of, stretches, words, zone_of
from cli.client import TroopClient
from cli.context import connection
from cli.errors import CliError, Exit
from troop import moments, values

_MOST = 1500
"""Decisions of a unit on a day: more than there are minutes in it."""

_AROUND = (timedelta(hours=14), timedelta(hours=36))
"""A day of any time zone lies between these before and after its midnight in UTC."""


def why(
    ctx: typer.Context,
    unit: Annotated[str, typer.Argument(help="A unit, or a group by its name.")],
    day: Annotated[
        str | None, typer.Option(help="YYYY-MM-DD, on the unit's calendar; by default its last one.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", "-v", help="And what each tick of the day decided.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document, with every tick.")] = False,
) -> None:
    """Why a unit was left alone, or what became of it, in one sentence."""
    wanted = _day(day)
    client, now = connection(ctx).client, times.now()
    found = client.known_unit(unit)
    name = found["unit"]
    asked = wanted or _last_day(client, found)
    decisions = client.decisions({"unit": name, "day": asked.isoformat()}, _MOST) if asked else []
    events = _events_of(client, name, asked) if asked else []
    sentence, zone = answer(name, asked, decisions, events, now), zone_of(decisions)
    if as_json:
        told = {"unit": name, "day": asked.isoformat() if asked else None, "time_zone": zone.key if decisions else None}
        show.document({**told, "answer": sentence, "decisions": decisions, "events": events})
        return
    show.say(sentence)
    if every and decisions:
        rows = [
            (f"{s.first.astimezone(zone):%H:%M}-{s.last.astimezone(zone):%H:%M}", s.ticks, words(s.reason), s.detail)
            for s in stretches(decisions)
        ]
        show.table((f"time in {zone.key}", "ticks", "reason", "detail"), rows)
    today = now.astimezone(zone).date()
    if wanted is None and asked and asked < today:
        show.note(f"no tick has decided about {name} today, {today:%A} {today.isoformat()}: this is the last day")


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else values.day(text)
    except values.BadValue as error:
        raise CliError(Exit.USAGE, f"--day is {text!r}: must be {error}") from None


def _last_day(client: TroopClient, unit: Mapping[str, Any]) -> date | None:
    """The last day of which something is on record: a decision or, on demand, an event without one."""
    days = [day_of(decision) for decision in client.decisions({"unit": unit["unit"]}, 1)]
    days += [date.fromisoformat(event["day"]) for event in unit["events"][:1]]
    return max(days, default=None)


def _events_of(client: TroopClient, unit: str, day: date) -> Sequence[dict[str, Any]]:
    midnight, (before, after) = datetime.combine(day, time.min, UTC), _AROUND
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    since, until = midnight - min(before, midnight - first), midnight + min(after, last - midnight)
    query = {"unit": unit, "since": moments.iso(since), "until": moments.iso(until)}
    return [event for event in client.events(query, 1000) if event["day"] == day.isoformat()]
