"""Restores what a claim has changed that hit nothing: the count of the day, the unit's last termination, and that the
instance has its lasting fault.
"""

from __future__ import annotations

from typing import Any

from troop.chaos.events import SCHEMA, Event
from troop.shared.state_keys import DAY, HIT, UNIT


def rollback_writes(table: str, event: Event, spends: bool, restoring: bool) -> list[dict[str, Any]]:
    """Returns the parts for the transaction that closes the event.

    Args:
        table: ``State``.
        event: as it ends, with its final sentence.
        spends: the unit's day is used up nevertheless.
        restoring: restores the last termination, on the condition that the unit's item names this event. That is true
            unless someone has edited the item; then its content stays.
    """
    hit = [_hit(table, event)] if event.injection else []
    return [_count(table, event), *hit, *_unit(table, event, spends, restoring)]


def _count(table: str, event: Event) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": table,
            "Key": {"key": {"S": f"{DAY}{event.day}"}},
            "UpdateExpression": "ADD #count :back",
            "ExpressionAttributeNames": {"#count": "count"},
            "ExpressionAttributeValues": {":back": {"N": "-1"}},
        }
    }


def _hit(table: str, event: Event) -> dict[str, Any]:
    # Without a condition: while the item has an event, no other claim of the instance succeeds.
    return {
        "Update": {
            "TableName": table,
            "Key": {"key": {"S": HIT + event.instance_id}},
            "UpdateExpression": "REMOVE event_id",
        }
    }


def _unit(table: str, event: Event, spends: bool, restoring: bool) -> list[dict[str, Any]]:
    before = event.before if restoring else None
    values: dict[str, Any] = {}
    if spends:
        values |= {"abandoned_day": str(event.day), "abandoned_event": event.event_id, "abandoned_why": event.detail}
    if before:
        values |= {"last_day": str(before.day) if before.day else None, "last_event": before.event_id}
    if not values:
        return []
    assignments = [f"{name} = :{name}" for name, value in values.items() if value is not None]
    gone = [name for name, value in values.items() if value is None]
    update: dict[str, Any] = {
        "TableName": table,
        "Key": {"key": {"S": UNIT + event.unit}},
        "UpdateExpression": " ".join(
            [f"SET {', '.join([*assignments, '#schema = :schema'])}", *([f"REMOVE {', '.join(gone)}"] if gone else [])]
        ),
        "ExpressionAttributeNames": {"#schema": "schema"},
        "ExpressionAttributeValues": {f":{name}": {"S": value} for name, value in values.items() if value is not None}
        | {":schema": {"N": str(SCHEMA)}},
    }
    if before:
        update["ConditionExpression"] = "last_event = :this"
        update["ExpressionAttributeValues"][":this"] = {"S": event.event_id}
    return [{"Update": update}]
