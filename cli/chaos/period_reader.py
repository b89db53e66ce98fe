"""Reads the events of a period and all units, and summarises them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from cli.chaos.course import victim_stays
from cli.chaos.risks import last_reading, on_record
from cli.chaos.stage_times import stage_seconds
from cli.client.client import TroopClient
from cli.shared import times
from cli.shared.errors import CliError
from troop.chaos.events import Status
from troop.chaos.letter import letter
from troop.chaos.period import Outcome, Period, UnitNow, verdict_word
from troop.chaos.slowness import RECENT
from troop.risks.risk_changes import risk_changes, risk_lines
from troop.shared import moments
from troop.shared.formatting import counted
from troop.shared.version import VERSION

MOST_READ = 500_000
"""The most events that one report reads: 5,000 requests."""

ALARMS_REMEMBERED = timedelta(days=30)
"""The time for which CloudWatch stores the history of alarms."""


@dataclass(frozen=True)
class Reading:
    """How far the events are read, for people who wait."""

    events: int
    back_to: datetime


def read_period(
    client: TroopClient,
    first: date,
    last: date,
    now: datetime,
    decision_days: int | None,
    tell: Callable[[Reading], None],
) -> dict[str, Any]:
    """Returns the report of a period as one document, in JSON's types.

    It is a summary, see :meth:`troop.chaos.period.Period.document`, with ``risks`` (see
    :func:`troop.risks.risk_changes.risk_changes`; None if they could not be read), ``letter`` (lines), ``expired``
    (sentences on what can no longer be read), ``events_read``, ``created_at`` and ``created_by``.

    Args:
        first, last: days on this machine's clock, both included.
        decision_days: the days for which the deployment stores decisions; None if not known.
        tell: is called after each page.

    Raises:
        CliError: the deployment's API refuses.
    """
    period = Period(times.midnight(first), times.midnight(last + timedelta(days=1)), first, last)
    read, ended = _read_events(client, period, tell)
    summary = period.document(units_now(client.groups()))
    risks = risks_of(client, period, now)
    return {
        "created_at": moments.iso(now),
        "created_by": VERSION,
        **summary,
        "events_read": read,
        "risks": risks,
        "letter": [*letter(summary), *(risk_lines(risks) if risks else ())],
        "expired": [
            *_expired(period, summary, ended, now, decision_days),
            *([] if risks else ["There is no reading of risks, or it could not be read: `troop risks` says why."]),
        ],
    }


def risks_of(client: TroopClient, period: Period, now: datetime) -> dict[str, Any] | None:
    """Returns what changed of the risks; None before the first reading, or if the API refuses: others can be read."""
    try:
        answer = client.risks(gone=True)
    except CliError:
        return None
    if answer["reading"] is None:
        return None
    risks = ((on_record(one), one["exemption"] is not None) for one in answer["risks"])
    return risk_changes(risks, last_reading(answer["reading"]), period.since, period.until, now)


def _read_events(client: TroopClient, period: Period, tell: Callable[[Reading], None]) -> tuple[int, bool]:
    """Adds the events of a period, and earlier ones until each recovery can be compared with those before it.

    Returns:
        The number of events that are read, and whether the deployment has no earlier ones within reach.
    """
    read = 0
    query = {"since": moments.iso(period.since - RECENT), "until": moments.iso(period.until)}
    for page in client.event_pages(query):
        for event in page:
            period.add(outcome_of(event))
        read += len(page)
        if period.oldest:
            tell(Reading(read, period.oldest))
            if read >= MOST_READ or (period.oldest < period.since and period.is_complete):
                return read, False
    return read, True


def outcome_of(event: Mapping[str, Any]) -> Outcome:
    """Returns what a summary needs of an event of the API. Deployments of earlier versions state less."""
    status, verdict = Status(event["status"]), event.get("verdict")
    return Outcome(
        event_id=event["event_id"],
        unit=event["unit"],
        owner=event.get("owner") or "",
        day=date.fromisoformat(event["day"]),
        at=moments.parse(event["at"]),
        status=status,
        method=event["method"],
        seconds=event.get("recovery_seconds"),
        stages=stage_seconds(event),
        lasting=bool(event.get("injection")),
        stays=victim_stays(event),
        verdict=verdict_word(
            status, verdict["value"] if verdict else None, status is Status.RECOVERED and bool(event.get("settles_at"))
        ),
        why=verdict["why"] if verdict else event["detail"],
    )


def units_now(groups: Iterable[Mapping[str, Any]]) -> Iterator[UnitNow]:
    """Yields the units of the groups of GET /groups."""
    members: dict[str, list[Mapping[str, Any]]] = {}
    for group in groups:
        members.setdefault(group["unit"], []).append(group)
    for unit, its in members.items():
        outlook = its[0]["outlook"]
        opted_out = [one for one in its if not (one["takes_part"] or one["protected"] or one["problems"])]
        yield UnitNow(
            unit=unit,
            owner=next((one["owner"] for one in its if one["owner"]), ""),
            state=outlook["state"],
            why=outlook["why"],
            endless=outlook["reason"] == "opted-out" and any(one["until"] is None for one in opted_out),
        )


def _expired(
    period: Period, summary: Mapping[str, Any], ended: bool, now: datetime, decision_days: int | None
) -> Iterator[str]:
    """Yields sentences on what of the period can no longer be read, or was never recorded."""
    oldest = period.oldest
    if oldest is None or oldest < period.since:
        yield "Events do not expire: all of the period are read."
    elif ended:
        yield f"Events do not expire. The deployment has none before {moments.second(oldest)}."
    else:
        yield f"Only the newest {MOST_READ:,} events are read, since {moments.second(oldest)}: shorten the period."
    if decision_days is None:
        yield "Decisions, which say why a unit was skipped, expire after troop:decision_retention_days."
    elif (since := now - timedelta(days=decision_days)) > period.since:
        yield f"Decisions before {since.date()} have expired: why a unit was skipped then can no longer be read."
    remembered = now - ALARMS_REMEMBERED
    if remembered > period.since and summary["units_hit"]:
        yield (
            f"CloudWatch has forgotten what alarms did before {remembered.date()}. The states that led to a verdict "
            "are stored with its event."
        )
    if unjudged := summary["totals"]["unjudged"]:
        yield f"{counted(unjudged, 'termination')} of earlier versions: without a verdict, and without stages."
