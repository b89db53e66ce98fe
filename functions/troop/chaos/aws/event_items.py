"""Converts events to items of the table ``Events`` and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.chaos.events import OPEN, SCHEMA, Event
from troop.shared import codec, moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.tables import EVENT, EVENT_OPEN, EVENT_SETTLES


def to_item(event: Event) -> dict[str, Any]:
    """Converts an event to a typed item, with the keys of the table's indices.

    ``at`` sorts by time and is unique. Only events in flight, and those that await their verdict, have ``open``, so the
    index over it stays small.
    """
    own = {
        "schema": SCHEMA,
        "kind": EVENT,
        "at": f"{moments.iso(event.at)}#{event.event_id}",
        "open": EVENT_OPEN if event.status in OPEN else EVENT_SETTLES if event.awaits_verdict else None,
        "recovery_seconds": event.recovery_seconds,
    }
    return typed(codec.to_document(event) | own)


def name_of(item: Mapping[str, Any]) -> str:
    """Returns the table and the key of an item, for :mod:`troop.shared.malformed`."""
    return f"Events: {item['event_id']['S']}"


def from_item(item: Mapping[str, Any]) -> Event:
    """Converts an item to an event, the reverse of :func:`to_item`."""
    values = plain(item)
    return codec.from_document(Event, {"zone": "", **values, "at": values["at"].partition("#")[0]})
