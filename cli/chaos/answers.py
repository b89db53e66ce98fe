"""Explains what happened to a unit on a day, or why nothing did, from its decisions and events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from cli.chaos import course
from troop.chaos.decisions import TERMINATE
from troop.chaos.events import STEPS, Status, exception_of
from troop.chaos.guards import in_words
from troop.chaos.verdict import VerdictValue
from troop.shared import zones
from troop.shared.formatting import SPACE

_EXPIRY = "decisions have expired (troop:decision_retention_days). `troop doctor` checks whether ticks run"


_CLAIMED_WITHIN = timedelta(minutes=16)
"""A tick older than 15 minutes claims nothing; one minute is for clocks that differ."""

_HIT = frozenset({Status.RUNNING, Status.TERMINATED, *STEPS[Status.TERMINATED]})
"""Statuses of events in which an instance was hit."""

_WEIGHTS: Mapping[str, int] = {**dict.fromkeys(_HIT, 0), Status.CLAIMED: 1, Status.LEASHED: 3}
"""Order of statuses: hit, about to be, abandoned (2), leashed."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive ticks with the same reason.

    Attributes:
        first, last: the times of the first and the last tick.
        ticks: the number of ticks.
        detail: the detail of the last tick.
    """

    first: datetime
    last: datetime
    ticks: int
    reason: str
    detail: str


def zone_of(decisions: Sequence[Mapping[str, Any]]) -> zones.Zone:
    """Returns the time zone of the decisions' calendar; UTC if it is unknown, also to this command."""
    try:
        return zones.zone(next((str(d["time_zone"]) for d in decisions if d["time_zone"]), "UTC"))
    except zones.UnknownZoneError:  # this command's zones differ from the deployment's
        return zones.zone("UTC")


def day_of(decision: Mapping[str, Any]) -> date:
    """Returns the local day of a decision; in UTC if neither day nor zone is known."""
    if decision["day"]:
        return date.fromisoformat(decision["day"])
    return _moment(decision["tick"]).astimezone(zone_of([decision])).date()


def stretches(decisions: Iterable[Mapping[str, Any]]) -> list[Stretch]:
    """Groups the decisions of one unit into stretches of one reason each, oldest first."""
    periods: list[Stretch] = []
    for decision in sorted(decisions, key=lambda d: _moment(d["tick"])):
        tick, reason, detail = _moment(decision["tick"]), decision["reason"], decision["detail"]
        if periods and periods[-1].reason == reason:
            periods[-1] = Stretch(periods[-1].first, tick, periods[-1].ticks + 1, reason, detail)
        else:
            periods.append(Stretch(tick, tick, 1, reason, detail))
    return periods


def answer(
    unit: str,
    day: date | None,
    decisions: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    now: datetime,
    zone: zones.Zone,
) -> str:
    """Returns one or two sentences: what happened to a unit on a day or, if nothing did, why.

    Args:
        day: the local day on the unit's calendar; None if no day has decisions.
        decisions: all of that day, newest first, as GET /decisions returns them.
        events: all of that day, newest first, as GET /events returns them.
        now: the current time, which tells whether the day is over.
        zone: the time zone of the unit's calendar; UTC if it is unknown.
    """
    if event := min(events, key=lambda e: _WEIGHTS.get(e["status"], 2), default=None):
        others = sum(e["status"] in _HIT for e in events if e is not event)
        return _event_answer(unit, event, zone, others)
    if day is None:
        return f"No decision about {unit} is on record: no tick has run since it was created, or its {_EXPIRY}."
    if not decisions:
        if day > now.astimezone(UTC).date():
            return f"{unit}: {_day(day)} is in the future."
        return f"No tick decided about {unit} on {_day(day)}: none was planned, none ran, or its {_EXPIRY}."
    return _decisions_answer(unit, day, decisions, zone, now)


def _decisions_answer(
    unit: str, day: date, decisions: Sequence[Mapping[str, Any]], zone: zones.Zone, now: datetime
) -> str:
    periods = stretches(decisions)
    # Ticks continue for an hour after the window, to sweep; their reason does not explain the day.
    *before, last = [stretch for stretch in periods if stretch.reason != "outside-window"] or periods
    if last.reason == TERMINATE:
        target = _instance(unit, next(d for d in decisions if d["reason"] == TERMINATE))
        why = "it is about to begin" if now - last.last <= _CLAIMED_WITHIN else "its workflow failed"
        return (
            f"{unit}: {target} was selected on {_day(day)} at {_clock(last.last, zone)}, "
            f"but no hit is on record: {why}, or the last check prevented it."
        )
    why = in_words(last.reason, last.detail)
    earlier = [in_words(reason) for reason in dict.fromkeys(s.reason for s in before) if reason != last.reason]
    since = f" (since {_clock(last.first, zone)}, before that {', '.join(earlier)})" if earlier else ""
    if day == now.astimezone(zone).date():
        return f"{unit} has not been hit today, {_day(day)}, so far: {why}{since}."
    return f"{unit} was not hit on {_day(day)}: {why}{since}."


def _event_answer(unit: str, event: Mapping[str, Any], zone: zones.Zone, others: int) -> str:
    instance, detail = _instance(unit, event), str(event["detail"]).rstrip(".")
    claimed, suffix = _local(event["at"], zone), f": {detail}" if detail else ""
    fault = event["method"] if event.get("injection") else ""
    moment = _local(course.hit_at(event) or event["at"], zone)
    hit = f"{unit}: {course.fault(event)} was injected into {instance} on {moment}"
    if not fault:
        hit = f"{unit}: {instance} was terminated on {moment}"
    elif event.get("terminated_at"):
        hit += " (the instance was then terminated, because the end of the fault was not proven)"
    if (early := course.ended_early(event)) and early not in (event.get("verdict") or {}).get("why", ""):
        hit += f" (it was asked to end early: {early.rstrip('.')})"
    if exception := exception_of(event["method"], event.get("os_shutdown")):
        hit += f" ({exception})"
    if others:
        hit += f" (and {others} more that day)"
    match event["status"]:
        case Status.RECOVERED:
            recovered = course.recovery_in_words(event).replace(SPACE, " ") or "recovered"  # also for programs
            return f"{hit}, and its group {recovered}.{_verdict(event, zone)}"
        case Status.RUNNING if not course.recovers_from(event):
            unproven = event["injection"]["unproven"]
            return f"{hit}, and its end is not proven yet{f', act now: {unproven}' if unproven else ''}."
        case Status.RUNNING | Status.TERMINATED:
            return f"{hit}, and its group is being watched until it has recovered."
        case Status.UNRECOVERED:
            return f"{hit}, and its group did not recover in time{suffix}."
        case Status.GROUP_DELETED:
            return f"{hit}, and its group was deleted before it had recovered.{_verdict(event, zone)}"
        case Status.CLAIMED:
            if fault:
                return f"{unit}: {fault} is about to be injected into {instance} (claimed on {claimed})."
            return f"{unit}: {instance} is about to be terminated (claimed on {claimed})."
        case Status.GONE_ELSEWHERE:
            return (
                f"{unit}: {instance} was selected for termination on {claimed}, but something else terminated it first."
            )
        case Status.LEASHED:
            would = (
                f"{fault} would have been injected into {instance}"
                if fault
                else f"{instance} would have been terminated"
            )
            return f"{unit}: {would} on {claimed}, but the deployment was leashed."
        case _:
            hit_name = fault or "termination"
            return f"{unit}: {instance} was selected for {hit_name} on {claimed}, but the claim was abandoned{suffix}."


def _verdict(event: Mapping[str, Any], zone: zones.Zone) -> str:
    """Returns a sentence about the verdict, after a space; "" without one, as for an event of an earlier version."""
    if course.awaits_verdict(event):
        return f" Its alarms can be judged from {_clock(_moment(event['settles_at']), zone)} on."
    verdict = event.get("verdict")
    if not verdict:
        return ""
    held = {
        VerdictValue.HELD: "Its hypothesis held",
        VerdictValue.BROKEN: "Its hypothesis did not hold",
        VerdictValue.UNKNOWN: "Whether its hypothesis held is not known",
    }
    return f" {held[VerdictValue(verdict['value'])]}: {verdict['why'].rstrip('.')}."


def _instance(unit: str, record: Mapping[str, Any]) -> str:
    instance, group = record["instance_id"] or "an instance", record["group"]
    return f"{instance} of {group}" if group and group != unit else str(instance)


def _day(day: date) -> str:
    return f"{day:%A} {day.isoformat()}"


def _clock(moment: datetime, zone: zones.Zone) -> str:
    at = moment.astimezone(zone)
    name = at.tzname() or ""
    return (
        f"{at:%H:%M} {name if name.isalpha() else f'UTC{name}'}"  # many zones are called by their offset, such as -03
    )


def _local(moment: str, zone: zones.Zone) -> str:
    at = _moment(moment).astimezone(zone)
    return f"{_day(at.date())} at {_clock(at, zone)}"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
