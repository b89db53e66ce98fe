"""Makes notifications: selects the changes of records that are news, and builds a document for each.

docs/reference/notifications.md describes the documents, and docs/reference/notifications.schema.json is their schema.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from troop.chaos.changes import BESIDE, Change, request_of
from troop.chaos.events import Event, Status, exception_of
from troop.chaos.injection import EndRequest, Injection, Proof
from troop.chaos.replacements import comparison
from troop.chaos.self_halt import SelfHalt
from troop.chaos.slowness import is_slow
from troop.chaos.strays import StrayRecord
from troop.chaos.verdict import Verdict, VerdictValue
from troop.chaos.verdict_rules import recovery_in_words, went_off
from troop.shared import codec, moments
from troop.shared.benchmark_change import BenchmarkChange, ChangedFigure
from troop.shared.state_keys import HALT, ITSELF, REAPER_OFF, SCHEDULES_OFF, SELF_HALT, SWITCH, UNIT

SCHEMA = 1
"""The version of the documents. A version can get additional fields; no field is removed or changes its meaning."""

SOURCE = "troop"

MOST_KEYS = 20
LONGEST_VALUE = 200
"""The limits for changed values. An item edited by hand can have 400 KB, more than the bus or a topic accepts."""

_NO_POLICY = frozenset({"unit", "key", "version", "schema"})
_SIGNATURE = frozenset({"changed_at", "changed_by", "changed_request", HALT})
"""The attributes about an item's last change, and about a halt. An edit of these alone is also news: it prepares a
forgery.
"""

WRITTEN_WITHIN = timedelta(seconds=60)
"""The longest time between the moment of a change and its write: a request takes up to half of it."""


class Kind(StrEnum):
    """The kinds of notifications."""

    TERMINATED = "terminated"
    INJECTED = "injected"
    END_REQUESTED = "end-requested"
    PROVEN = "proven"
    REPLACED = "replaced"
    UNPROVEN = "unproven"
    RECOVERED = "recovered"
    SLOW_RECOVERY = "slow-recovery"
    UNRECOVERED = "unrecovered"
    GROUP_DELETED = "group-deleted"
    BROKEN = "broken"
    FAILED = "failed"
    HALTED_ITSELF = "halted-itself"
    HALTED = "halted"
    RESUMED = "resumed"
    LEASHED = "leashed"
    UNLEASHED = "unleashed"
    REAPER_OFF = "reaper-off"
    REAPER_ON = "reaper-on"
    SCHEDULES_OFF = "schedules-off"
    SCHEDULES_ON = "schedules-on"
    POLICY_CHANGED = "policy-changed"
    STRAY_ITEM = "stray-item"
    CHANGE_POINT = "change-point"
    WEEKLY_LETTER = "weekly-letter"


DETAIL_TYPES: dict[Kind, str] = {
    Kind.TERMINATED: "Instance terminated",
    Kind.INJECTED: "Fault injected",
    Kind.END_REQUESTED: "Fault asked to end",
    Kind.PROVEN: "Fault proven over",
    Kind.REPLACED: "Instance replaced",
    Kind.UNPROVEN: "Fault unproven",
    Kind.RECOVERED: "Unit recovered",
    Kind.SLOW_RECOVERY: "Unit recovered slowly",
    Kind.UNRECOVERED: "Unit unrecovered",
    Kind.GROUP_DELETED: "Group deleted",
    Kind.BROKEN: "Unit broken",
    Kind.FAILED: "Termination failed",
    Kind.HALTED_ITSELF: "Chaos halted itself",
    Kind.HALTED: "Chaos halted",
    Kind.RESUMED: "Chaos resumed",
    Kind.LEASHED: "Chaos leashed",
    Kind.UNLEASHED: "Chaos unleashed",
    Kind.REAPER_OFF: "Reaper switched off",
    Kind.REAPER_ON: "Reaper switched on",
    Kind.SCHEDULES_OFF: "Schedules switched off",
    Kind.SCHEDULES_ON: "Schedules switched on",
    Kind.POLICY_CHANGED: "Policy changed",
    Kind.STRAY_ITEM: "Item without unit",
    Kind.CHANGE_POINT: "Benchmark changed",
    Kind.WEEKLY_LETTER: "Weekly letter",
}
"""The values of ``detail-type``, which rules on the bus match."""

WHEN: dict[Kind, str] = {
    Kind.TERMINATED: "Troop terminated an instance, and watches its group",
    Kind.INJECTED: "Troop asked Systems Manager to inject a lasting fault, or cannot exclude that it did",
    Kind.END_REQUESTED: "Troop asked for the end of a lasting fault before its time",
    Kind.PROVEN: "the end of a lasting fault is proven, and Troop watches the group",
    Kind.REPLACED: (
        "Troop terminated an instance, because the end of a lasting fault on it was not proven, and watches its group"
    ),
    Kind.UNPROVEN: (
        "the end of a lasting fault is not proven although its time is up, and Troop may not terminate the instance: a "
        "person must act"
    ),
    Kind.RECOVERED: "the group recovered in time",
    Kind.SLOW_RECOVERY: "in addition to `recovered`: the recovery was slow for this unit",
    Kind.UNRECOVERED: "the group did not recover in time; the unit is out of chaos until its owner returns it",
    Kind.GROUP_DELETED: "somebody deleted the group before it recovered",
    Kind.BROKEN: (
        "in addition to `recovered` or `group-deleted`, once the alarms can be judged: the hypothesis did not hold; "
        "the unit is out of chaos until its owner returns it"
    ),
    Kind.FAILED: (
        "a claim ended without a termination or a fault by Troop: AWS refused, chaos was halted, an alarm went off, "
        "another caller was faster, or a probe found an instance that is not fit for the fault"
    ),
    Kind.HALTED_ITSELF: "too many units were broken within an hour: nothing is decided until somebody resumes chaos",
    Kind.HALTED: "somebody halted chaos",
    Kind.RESUMED: "somebody resumed chaos",
    Kind.LEASHED: "somebody leashed chaos",
    Kind.UNLEASHED: "somebody unleashed chaos",
    Kind.REAPER_OFF: "somebody switched the reaper off",
    Kind.REAPER_ON: "somebody switched the reaper on",
    Kind.SCHEDULES_OFF: "somebody stopped the schedules of benchmarks",
    Kind.SCHEDULES_ON: "somebody let the schedules of benchmarks start runs again",
    Kind.POLICY_CHANGED: "somebody changed the policy of a unit, or returned the unit to chaos",
    Kind.STRAY_ITEM: "an item of `GroupTags` has had no group for a day, so its policy has no effect",
    Kind.CHANGE_POINT: (
        "the runs of a schedule measure another level than before: once for each change, when enough runs show it"
    ),
    Kind.WEEKLY_LETTER: "it is Monday, and `troop:weekly_letter` is true",
}
"""When a notification of the kind is sent, for docs/reference/notifications.md."""

_KINDS = {
    Status.RUNNING: Kind.INJECTED,
    Status.TERMINATED: Kind.TERMINATED,
    Status.RECOVERED: Kind.RECOVERED,
    Status.UNRECOVERED: Kind.UNRECOVERED,
    Status.GROUP_DELETED: Kind.GROUP_DELETED,
    Status.ABANDONED: Kind.FAILED,
    Status.GONE_ELSEWHERE: Kind.FAILED,
}

_REPLACED = (Status.RUNNING, Status.TERMINATED)

NEWS: dict[Status, tuple[Status, ...]] = {
    Status.CLAIMED: (Status.RUNNING, Status.TERMINATED, Status.ABANDONED, Status.GONE_ELSEWHERE),
    Status.RUNNING: (
        *(Status.ABANDONED, Status.TERMINATED),
        *(Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED),
    ),
    Status.TERMINATED: (Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED),
}
"""The steps of an event that cause a notification: the previous status -> the new ones."""

INJECTION_NEWS: Mapping[str, Kind] = {
    "end_request": Kind.END_REQUESTED,
    "proof": Kind.PROVEN,
    "unproven": Kind.UNPROVEN,
}
"""The attributes of an injection that are news when they are first set while the fault runs."""

LATER_VERDICTS = {Status.RECOVERED: VerdictValue.BROKEN}
"""The verdicts that are news when they come after the event's last step, by its status."""

_SWITCHED: dict[tuple[str, bool], Kind] = {
    ("halted", True): Kind.HALTED,
    ("halted", False): Kind.RESUMED,
    ("leashed", True): Kind.LEASHED,
    ("leashed", False): Kind.UNLEASHED,
    (REAPER_OFF, True): Kind.REAPER_OFF,
    (REAPER_OFF, False): Kind.REAPER_ON,
    (SCHEDULES_OFF, True): Kind.SCHEDULES_OFF,
    (SCHEDULES_OFF, False): Kind.SCHEDULES_ON,
}


@dataclass(frozen=True)
class Notification:
    """A notification, ready to send.

    Attributes:
        kind: what has happened.
        detail: the document, in JSON's types.
    """

    kind: Kind
    detail: Mapping[str, Any]

    @property
    def detail_type(self) -> str:
        return DETAIL_TYPES[self.kind]


def event_notifications(
    deployment: str,
    event: Event,
    before: Status | None,
    at: datetime,
    usually: float | None = None,
    *,
    was_judged: bool = False,
    had: Collection[str] = (),
) -> Iterator[Notification]:
    """Yields the notifications about a write of an event: none, one or more.

    Args:
        deployment: the stack's name.
        event: the event after the write.
        before: its status before.
        at: when it was written.
        usually: seconds that the unit usually takes to recover; None if not known.
        was_judged: whether the event had its verdict before.
        had: which attributes of :data:`INJECTION_NEWS` its injection had before.
    """
    if before is None:
        return
    detail = {
        "at": moments.iso(at),
        "event_id": event.event_id,
        "unit": event.unit,
        "owner": event.owner or None,
        "group": event.group,
        "instance_id": event.instance_id,
        "zone": event.zone,
        "method": event.method,
        "fault": event.fault,
        "os_shutdown": event.os_shutdown,
        "status": event.status.value,
        "claimed_at": moments.iso(event.at),
        "hit_at": moments.iso(event.hit_at) if event.hit_at else None,
        "terminated_at": moments.iso(event.terminated_at) if event.terminated_at else None,
        "injection": _injection(event.injection) if event.injection else None,
        "recovery_seconds": event.recovery_seconds,
        "replacement": comparison(event.build, event.replacement) if event.build and event.replacement else None,
        "launch_failure": event.launch_failure or None,
        "stages": codec.to_document(event.stages) if event.stages else None,
        "settles_at": moments.iso(event.settles_at) if event.settles_at else None,
        "verdict": _verdict(event.verdict) if event.verdict else None,
        "abort": codec.to_document(event.abort) if event.abort else None,
        "detail": event.detail,
    }
    if before is Status.RUNNING and event.injection:
        for name, kind in INJECTION_NEWS.items():
            if getattr(event.injection, name) and name not in had:
                yield _notification(deployment, kind, event.event_id, _sentence(kind, event), detail)
    if event.status in NEWS.get(before, ()):
        kind = Kind.REPLACED if (before, event.status) == _REPLACED else _KINDS[event.status]
        yield _notification(deployment, kind, event.event_id, _sentence(kind, event), detail)
        seconds = event.recovery_seconds
        if kind is Kind.RECOVERED and seconds is not None and usually is not None and is_slow(seconds, usually):
            summary = f"{event.unit} took {seconds:.0f} s to recover; it usually takes {usually:.0f} s"
            slow = {**detail, "usual_seconds": usually}
            yield _notification(deployment, Kind.SLOW_RECOVERY, event.event_id, summary, slow)
    if _is_broken(event) and not was_judged:
        yield _notification(deployment, Kind.BROKEN, event.event_id, _sentence(Kind.BROKEN, event), detail)


def _is_broken(event: Event) -> bool:
    """Checks whether the hypothesis did not hold. A group that did not recover has its own kind."""
    is_judged_broken = event.verdict is not None and event.verdict.value is VerdictValue.BROKEN
    return is_judged_broken and event.status is not Status.UNRECOVERED


def _injection(injection: Injection) -> dict[str, Any]:
    """Returns an injection without its probes: GET /events/{id} has what they have read."""
    return {
        "parameters": dict(injection.parameters),
        "ends_by": moments.iso(injection.ends_by) if injection.ends_by else None,
        "packages": list(injection.packages),
        "end_request": codec.to_document(injection.end_request) if injection.end_request else None,
        "command_status": injection.status or None,
        "over_at": moments.iso(injection.over_at) if injection.over_at else None,
        "unproven": injection.unproven or None,
        "proof": codec.to_document(injection.proof) if injection.proof else None,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """Returns a verdict without the states of its alarms, of which there can be more than a message may contain."""
    return {
        "value": verdict.value.value,
        "why": verdict.why,
        "since": moments.iso(verdict.since),
        "until": moments.iso(verdict.until),
        "went_off": list(went_off(verdict)),
    }


def self_halt_notifications(deployment: str, halt: SelfHalt) -> Iterator[Notification]:
    """Yields the notification that the deployment has halted itself."""
    detail = {"at": moments.iso(halt.at), "why": halt.why, "events": list(halt.events)}
    summary = f"The deployment halted itself: {halt.why}"
    yield _notification(deployment, Kind.HALTED_ITSELF, moments.iso(halt.at), summary, detail)


def self_halt_removed_by_hand(at: datetime) -> Change:
    """Returns the change of the switch that it amounts to if somebody removes the item of the deployment's own halt."""
    why = f"the item {SELF_HALT} of the table State was removed"
    return Change(SWITCH, at, "", {"halted": (True, False), "reason": (None, why)})


def change_notifications(
    deployment: str, change: Change, change_id: str, leashed: bool, by_hand: bool = False
) -> Iterator[Notification]:
    """Yields the notifications about a recorded change.

    Args:
        change_id: unique, and the same for every notification about this change.
        leashed: the initial state of the switch; all of its other attributes are first false.
        by_hand: the table's item was edited directly, so the caller is not known.
    """
    who = {
        "at": moments.iso(change.at),
        "caller": None if by_hand else change.caller,
        "by_hand": by_hand,
    }
    by = "by hand" if by_hand else f"by {change.caller}"
    if change.subject.startswith(UNIT):
        unit = change.subject.removeprefix(UNIT)
        if not change.values:
            return
        keys = sorted(change.values)
        changes = {key: {"old": _short(old), "new": _short(new)} for key, (old, new) in _some(change.values)}
        # A former owner hears of it for the last time; the new one gets all later notifications.
        owner = change.owner or change.values.get("owner", (None, None))[1]
        detail = {**who, "unit": unit, "owner": _short(owner) or None, "changes": changes, "keys_changed": len(keys)}
        summary = f"The policy of {unit} was changed {by}: {', '.join(key[:LONGEST_VALUE] for key in keys[:MOST_KEYS])}"
        yield _notification(deployment, Kind.POLICY_CHANGED, change_id, summary, detail)
    elif change.subject == SWITCH:
        values = {**change.values, **({"halted": (True, False)} if ITSELF in change.values else {})}
        reason = values.get("reason", (None, None))[1]
        for key in dict.fromkeys(key for key, _ in _SWITCHED):
            default = leashed and key == "leashed"
            old, new = (default if value is None else bool(value) for value in values.get(key, (None, None)))
            if old != new:
                kind = _SWITCHED[key, new]
                detail = {**who, "reason": _short(reason)}
                yield _notification(deployment, kind, change_id, f"{DETAIL_TYPES[kind]} {by}", detail)


def stray_notifications(deployment: str, record: StrayRecord) -> Iterator[Notification]:
    """Yields a notification for each stray item of which a tick tells. Two ticks that find the same one at the same
    time make notifications with the same ``id``.
    """
    for stray in record.reports:
        assert record.at
        assert stray.since
        since = moments.iso(stray.since)
        unit = stray.key[:LONGEST_VALUE]
        summary = f"The policy of {stray.in_words} has had no effect since {since}: no Auto Scaling group has this unit"
        detail = {
            "at": moments.iso(record.at),
            "unit": unit,
            "owner": stray.owner or None,
            "since": since,
            "nearest": stray.nearest,
        }
        yield _notification(deployment, Kind.STRAY_ITEM, f"{unit}#{since}", summary, detail)


def benchmark_notifications(deployment: str, at: datetime, change: BenchmarkChange) -> Iterator[Notification]:
    """Yields the notification that a scheduled benchmark measures another level.

    Args:
        at: when that was recorded.
    """
    size = f" ({change.size})" if change.size else ""
    differences = {
        name[:LONGEST_VALUE]: {"old": _short(old) or None, "new": _short(new) or None}
        for name, (old, new) in list(change.differences.items())[:MOST_KEYS]
    }
    figures = [_changed(one) for one in change.figures]
    detail = {
        "at": moments.iso(at),
        "benchmark": change.benchmark,
        "size": change.size,
        "schedule": change.schedule,
        "run": change.run,
        "run_before": change.run_before,
        "reporting_run": change.reporting_run,
        "figures": figures,
        "figures_more": change.more,
        "has_baseline": change.has_baseline,
        "differences": differences,
        "command": f"troop bench history {change.benchmark} --figure {change.figures[0].figure}",
    }
    more = f", and {change.more} more" if change.more else ""
    beside = f"; what else changed: {', '.join(differences)}" if differences else ""
    relative = ", relative to the baseline" if change.has_baseline else ""
    sentences = ", ".join(map(_figure_sentence, change.figures))
    summary = f"{change.benchmark}{size}: from the run {change.run} on, {sentences}{more}{relative}{beside}"
    key = "#".join((change.benchmark, change.size or "", change.schedule, change.run, change.reporting_run))
    yield _notification(deployment, Kind.CHANGE_POINT, key, summary, detail)


def _changed(one: ChangedFigure) -> dict[str, Any]:
    figure = {"measurement": one.measurement[:LONGEST_VALUE], "figure": one.figure}
    return {**figure, "before": one.before, "after": one.after, "ratio": one.after / one.before}


def _figure_sentence(one: ChangedFigure) -> str:
    percent = (one.after / one.before - 1) * 100
    return f"{one.figure} of {one.measurement[:LONGEST_VALUE]} {percent:+.1f} %"


_COUNTED = ("terminations", "injections", "held", "broken", "unknown", "unrecovered", "slower")


def letter_notification(
    deployment: str, at: datetime, summary: Mapping[str, Any], lines: Sequence[str]
) -> Notification:
    """Returns the notification with the letter of a week.

    Args:
        at: when the letter was due.
        summary: of the week, see :meth:`troop.chaos.period.Period.document`.
        lines: of the letter, see :func:`troop.chaos.letter.letter`; the first is a sentence about the whole week.
    """
    totals = summary["totals"]
    detail = {
        "at": moments.iso(at),
        "first": summary["first"],
        "last": summary["last"],
        **{key: totals[key] for key in _COUNTED},
        "letter": list(lines),
    }
    return _notification(deployment, Kind.WEEKLY_LETTER, summary["first"], lines[0], detail)


def edited_by_hand(
    old: Mapping[str, Any], new: Mapping[str, Any], recorded: Change | None, at: datetime
) -> dict[str, tuple[Any, Any]]:
    """Returns the values that were changed by hand in an item of ``GroupTags`` or in the switch; empty for an edit by
    the API.

    The item itself proves nothing: anyone who edits it can write the same attributes. So the record in ``Changes`` must
    have the same old and new values, must replace the same request, and must be as old as the edit. An old record that
    is named again does not match.

    Args:
        old, new: the item before and after in JSON's types; empty if there is none.
        recorded: the change that the item names by ``changed_at`` and ``changed_request``, if there is such a record.
        at: when the item was written.
    """
    keys = sorted({*old, *new} - _NO_POLICY)
    edited = {key: (old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)}
    if new and recorded and abs(at - recorded.at) <= WRITTEN_WITHIN and recorded.replaces == request_of(old):
        values = {key: pair for key, pair in recorded.values.items() if pair[0] != pair[1] and key not in BESIDE}
        if values == {key: pair for key, pair in edited.items() if key not in _SIGNATURE}:
            return {}
    return edited


def _notification(deployment: str, kind: Kind, key: str, summary: str, detail: Mapping[str, Any]) -> Notification:
    head = {"schema": SCHEMA, "id": f"{kind}#{key}", "kind": kind.value, "deployment": deployment, "summary": summary}
    return Notification(kind, head | dict(detail))


def _sentence(kind: Kind, event: Event) -> str:
    instance = f"{event.instance_id} of {event.group}"
    if event.injection and kind in _FAULT_KINDS:
        return _fault_sentence(kind, event, event.injection, instance)
    exception = exception_of(event.method, event.os_shutdown)
    exception = exception and f"; {exception}"
    failure = event.launch_failure and f"; the last launch failed: {event.launch_failure}"
    why = event.verdict.why if event.verdict else ""
    hit = f"{event.method} on" if event.injection else "the termination of"
    return {
        Kind.TERMINATED: f"{instance} was terminated ({event.method}){exception}",
        Kind.RECOVERED: f"{event.unit} {_recovery(event)}{_judgement(event)}",
        Kind.UNRECOVERED: f"{event.unit} has not recovered, and has left chaos: {event.detail}{failure}",
        Kind.GROUP_DELETED: f"{event.group} was deleted before it had recovered",
        Kind.BROKEN: f"{event.unit} is broken after {hit} {instance}, and has left chaos: {why}",
        Kind.FAILED: f"{instance} was not terminated by Troop: {event.detail}",
    }[kind]


_FAULT_KINDS = frozenset({Kind.INJECTED, Kind.REPLACED, Kind.RECOVERED, Kind.FAILED, *INJECTION_NEWS.values()})
"""The kinds that have sentences of their own about a lasting fault."""


def _fault_sentence(kind: Kind, event: Event, injection: Injection, instance: str) -> str:
    why = event.detail and f": {event.detail}"
    return {
        Kind.INJECTED: f"{event.fault} was injected into {instance}",
        Kind.END_REQUESTED: f"{event.method} on {instance} was asked to end: {_why(injection.end_request)}",
        Kind.PROVEN: f"{event.method} on {instance} is proven to be over: {_why(injection.proof)}",
        Kind.REPLACED: f"{instance} was terminated, because {event.method} on it was not proven to be over{why}",
        Kind.UNPROVEN: (
            f"{event.method} on {instance} is not proven to be over, and the instance was not terminated: "
            f"{injection.unproven}"
        ),
        Kind.RECOVERED: f"{event.unit} {_recovery(event)}{_judgement(event)}",
        Kind.FAILED: f"{event.method} was not injected into {instance}{why}",
    }[kind]


def _recovery(event: Event) -> str:
    words = recovery_in_words(event, f"{event.recovery_seconds or 0:.0f} s")
    return words if event.victim_stays else f"has {words}"


def _why(one: EndRequest | Proof | None) -> str:
    return one.why if one else ""


def _judgement(event: Event) -> str:
    """Returns what is known of the verdict on a recovered group, to follow a sentence."""
    if event.awaits_verdict and event.settles_at:
        return f"; its alarms can be judged from {moments.iso(event.settles_at)} on"
    if event.verdict is None:
        return ""
    words = {
        VerdictValue.HELD: "; its hypothesis held",
        VerdictValue.BROKEN: "; its hypothesis did not hold",
        VerdictValue.UNKNOWN: f"; whether its hypothesis held is unknown: {event.verdict.why}",
    }
    return words[event.verdict.value]


def _some(values: Mapping[str, tuple[Any, Any]]) -> list[tuple[str, tuple[Any, Any]]]:
    return [(key[:LONGEST_VALUE], values[key]) for key in sorted(values)[:MOST_KEYS]]


def _short(value: Any) -> Any:
    """Returns the value, or the beginning of its text if that is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
