"""Why a unit was left alone on a day, or what became of it, in one sentence made of decisions and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from troop.chaos.decisions import TERMINATE
from troop.chaos.events import STEPS, Status, exception_of

_EXPIRY = "what was decided is no longer kept (troop:decision_retention_days); `troop doctor` says whether ticks come"


_CLAIMED_WITHIN = timedelta(minutes=16)
"""A tick that is older than a quarter of an hour claims nothing any more; clocks differ."""

_TERMINATED = frozenset({Status.TERMINATED, *STEPS[Status.TERMINATED]})
"""Of events in which an instance was terminated."""

_WEIGHTS: Mapping[str, int] = {**dict.fromkeys(_TERMINATED, 0), Status.CLAIMED: 1, Status.LEASHED: 3}
"""What happened comes before what is about to, that before what came to nothing (2), and what would have last."""


@dataclass(frozen=True)
class Stretch:
    """Ticks in a row with the same reason.

    Attributes:
        first, last: the moments of the first and the last of them.
        ticks: how many.
        detail: of the last.
    """

    first: datetime
    last: datetime
    ticks: int
    reason: str
    detail: str


def zone_of(decisions: Sequence[Mapping[str, Any]]) -> ZoneInfo:
    """The time zone of the calendar that decisions were made by; UTC when it is not known, here or there."""
    try:
        return ZoneInfo(next((str(d["time_zone"]) for d in decisions if d["time_zone"]), "UTC"))
    except ZoneInfoNotFoundError:  # a machine with other zones than the deployment
        return ZoneInfo("UTC")


def day_of(decision: Mapping[str, Any]) -> date:
    """The local day of a decision; by UTC's clock where neither day nor zone is known."""
    if decision["day"]:
        return date.fromisoformat(decision["day"])
    return _moment(decision["tick"]).astimezone(zone_of([decision])).date()


def stretches(decisions: Iterable[Mapping[str, Any]]) -> list[Stretch]:
    """Decisions of one unit, newest first, as stretches of one reason each, oldest first."""
    periods: list[Stretch] = []
    for decision in sorted(decisions, key=lambda d: _moment(d["tick"])):
        tick, reason, detail = _moment(decision["tick"]), decision["reason"], decision["detail"]
        if periods and periods[-1].reason == reason:
            periods[-1] = Stretch(periods[-1].first, tick, periods[-1].ticks + 1, reason, detail)
        else:
            periods.append(Stretch(tick, tick, 1, reason, detail))
    return periods


def words(reason: str) -> str:
    """A reason as it stands in a sentence."""
    return reason.replace("-", " ")


def answer(
    unit: str,
    day: date | None,
    decisions: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    now: datetime,
) -> str:
    """What happened to a unit on a day, and if nothing, why.

    Args:
        day: the local day on the unit's calendar; None when nothing is on record of any day.
        decisions: all of that day, newest first, as GET /decisions tells them.
        events: all of that day, newest first, as GET /events tells them.
        now: tells a day that is over from one that goes on.
    """
    zone = zone_of(decisions)
    if event := min(events, key=lambda e: _WEIGHTS.get(e["status"], 2), default=None):
        others = sum(e["status"] in _TERMINATED for e in events if e is not event)
        return _of_event(unit, day, event, zone, others)
    if day is None:
        return f"No decision about {unit} is on record: no tick has come since there is such a unit, or {_EXPIRY}."
    if not decisions:
        if day > now.astimezone(UTC).date():
            return f"{unit}: {_day(day)} is yet to come."
        return f"No tick decided about {unit} on {_day(day)}: its calendar has none that day, none came, or {_EXPIRY}."
    return _of_decisions(unit, day, decisions, zone, now)


def _of_decisions(unit: str, day: date, decisions: Sequence[Mapping[str, Any]], zone: ZoneInfo, now: datetime) -> str:
    periods = stretches(decisions)
    # Ticks go on for an hour after the window, to sweep up: what they say of the day is not why nothing happened in it.
    *before, last = [stretch for stretch in periods if stretch.reason != "outside-window"] or periods
    if last.reason == TERMINATE:
        target = _instance(unit, next(d for d in decisions if d["reason"] == TERMINATE))
        why = "it is about to begin" if now - last.last <= _CLAIMED_WITHIN else "its workflow failed"
        return (
            f"{unit}: {target} was to be terminated on {_day(day)} at {_clock(last.last, zone)}, "
            f"and no termination is on record: {why}, or something spoke against it at the last look."
        )
    reason, detail = words(last.reason), last.detail.rstrip(".")
    why = detail if detail.startswith(reason) else f"{reason}: {detail}" if detail else reason
    earlier = [words(reason) for reason in dict.fromkeys(s.reason for s in before) if reason != last.reason]
    since = f" (since {_clock(last.first, zone)}, before that {', '.join(earlier)})" if earlier else ""
    if day == now.astimezone(zone).date():
        return f"{unit} has not been terminated today, {_day(day)}, so far: {why}{since}."
    return f"{unit} was not terminated on {_day(day)}: {why}{since}."


def _of_event(unit: str, day: date | None, event: Mapping[str, Any], zone: ZoneInfo, others: int) -> str:
    instance, detail = _instance(unit, event), str(event["detail"]).rstrip(".")
    claimed, suffix = _clock(_moment(event["at"]), zone), f": {detail}" if detail else ""
    on = _day(day or date.fromisoformat(event["day"]))
    ended = event.get("terminated_at")
    terminated = f"{unit}: {instance} was terminated on {on} at {_clock(_moment(ended), zone) if ended else claimed}"
    if exception := exception_of(event["method"], event.get("os_shutdown")):
        terminated += f" ({exception})"
    if others:
        terminated += f" (and {others} more that day)"
    match event["status"]:
        case Status.RECOVERED:
            seconds = event["recovery_seconds"]
            after = "" if seconds is None else f" in {seconds:.0f} s"
            return f"{terminated}, and its group recovered{after}."
        case Status.TERMINATED:
            return f"{terminated}, and its group is being watched until it has recovered."
        case Status.UNRECOVERED:
            return f"{terminated}, and its group did not recover in time{suffix}."
        case Status.GROUP_DELETED:
            return f"{terminated}, and its group was deleted before it had recovered."
        case Status.CLAIMED:
            return f"{unit}: {instance} is about to be terminated, as was put on record on {on} at {claimed}."
        case Status.GONE_ELSEWHERE:
            return f"{unit}: {instance} was to be terminated on {on} at {claimed}, and somebody else did that first."
        case Status.LEASHED:
            return (
                f"{unit}: {instance} would have been terminated on {on} at {claimed}, were the deployment not leashed."
            )
        case _:
            return f"{unit}: {instance} was to be terminated on {on} at {claimed}, and that was given up{suffix}."


def _instance(unit: str, record: Mapping[str, Any]) -> str:
    instance, group = record["instance_id"] or "an instance", record["group"]
    return f"{instance} of {group}" if group and group != unit else str(instance)


def _day(day: date) -> str:
    return f"{day:%A} {day.isoformat()}"


def _clock(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%H:%M %Z}"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
