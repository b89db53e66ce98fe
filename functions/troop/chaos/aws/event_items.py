"""Converts events to items of the table ``Events`` and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import date, datetime
from typing import Any

from troop.chaos.events import OPEN, SCHEMA, AbandonReason, Event, Last, Status, Watch
from troop.chaos.replacements import Build, Replacement
from troop.shared import moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.tables import EVENT, EVENT_OPEN

_MOMENTS = ("deadline", "attempted_at", "terminated_at", "recovered_at")


def to_item(event: Event) -> dict[str, Any]:
    """Converts an event to a typed item, with the keys of the table's indices.

    ``at`` sorts by time and is unique. Only events in flight have ``open``, so the index over it stays small.
    """
    values: dict[str, Any] = {
        "event_id": event.event_id,
        "schema": SCHEMA,
        "kind": EVENT,
        "at": f"{moments.iso(event.at)}#{event.event_id}",
        "open": EVENT_OPEN if event.status in OPEN else None,
        "unit": event.unit,
        "day": event.day.isoformat(),
        "status": event.status.value,
        "group": event.group,
        "instance_id": event.instance_id,
        "zone": event.zone,
        "method": event.method,
        "rolled": event.rolled,
        "probability": event.probability,
        "desired": event.desired,
        "execution": event.execution,
        "attempts": event.attempts or None,
        "os_shutdown": event.os_shutdown,
        "detail": event.detail,
        "cause": event.cause.value if event.cause else None,
        "recovery_seconds": event.recovery_seconds,
    }
    values["watch"] = watch_value(event.watch)
    values["before"] = _last_value(event.before) if event.before else None
    values["build"] = asdict(event.build) if event.build else None
    values["replacement"] = asdict(event.replacement) if event.replacement else None
    for name in _MOMENTS:
        moment: datetime | None = getattr(event, name)
        values[name] = moments.iso(moment) if moment else None
    return typed(values)


def name_of(item: Mapping[str, Any]) -> str:
    """Returns the table and the key of an item, for :mod:`troop.shared.malformed`."""
    return f"Events: {item['event_id']['S']}"


def from_item(item: Mapping[str, Any]) -> Event:
    """Converts an item to an event, the reverse of :func:`to_item`."""
    values = plain(item)
    return Event(
        event_id=values["event_id"],
        unit=values["unit"],
        day=date.fromisoformat(values["day"]),
        status=Status(values["status"]),
        at=moments.parse(values["at"].partition("#")[0]),
        group=values["group"],
        instance_id=values["instance_id"],
        zone=values.get("zone", ""),
        method=values["method"],
        rolled=_number(values.get("rolled")),
        probability=_number(values.get("probability")),
        desired=int(values["desired"]),
        execution=values.get("execution", ""),
        attempts=int(values.get("attempts", 0)),
        os_shutdown=values.get("os_shutdown"),
        detail=values.get("detail", ""),
        cause=_cause(values.get("cause")),
        watch=_watch(values.get("watch", {})),
        before=_last(values["before"]) if "before" in values else None,
        build=_build(values["build"]) if "build" in values else None,
        replacement=_replacement(values["replacement"]) if "replacement" in values else None,
        **{name: moments.parse(values[name]) if values.get(name) else None for name in _MOMENTS},
    )


def _last_value(last: Last) -> dict[str, Any]:
    return {"day": last.day.isoformat() if last.day else None, "event_id": last.event_id}


def _last(value: Mapping[str, Any]) -> Last:
    day = value.get("day")
    return Last(date.fromisoformat(day) if day else None, value.get("event_id"))


def _build(value: Mapping[str, Any]) -> Build:
    return Build(**{part.name: str(value.get(part.name, "")) for part in fields(Build)})


def _replacement(value: Mapping[str, Any]) -> Replacement:
    return Replacement(str(value["instance_id"]), _build(value["build"]))


def _cause(value: Any) -> AbandonReason | None:
    # A later version may have written another one.
    return AbandonReason(value) if value in list(AbandonReason) else None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def watch_value(watch: Watch) -> dict[str, Any]:
    """Returns the attribute ``watch``, in plain values."""
    return {
        "checks": watch.checks,
        "whole": watch.whole,
        "whole_since": moments.iso(watch.whole_since) if watch.whole_since else None,
        "checked_at": moments.iso(watch.checked_at) if watch.checked_at else None,
    }


def _watch(value: Mapping[str, Any]) -> Watch:
    since, checked = value.get("whole_since"), value.get("checked_at")
    return Watch(
        checks=int(value.get("checks", 0)),
        whole=int(value.get("whole", 0)),
        whole_since=moments.parse(since) if since else None,
        checked_at=moments.parse(checked) if checked else None,
    )
