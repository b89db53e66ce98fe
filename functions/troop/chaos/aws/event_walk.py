"""Reads all terminations since a moment, newest first, in as many queries as the caller consumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from troop.chaos.aws.event_queries import EventFilter
from troop.chaos.events import WITHOUT_TERMINATION, Status
from troop.shared import moments
from troop.shared.aws.dynamo import typed
from troop.shared.malformed import read
from troop.shared.tables import EVENT, EVENTS_BY_TIME

TERMINATIONS = tuple(status for status in Status if status not in {Status.LEASHED, *WITHOUT_TERMINATION})
"""The statuses of terminations; leashed records and abandoned claims are not terminations. Lasting faults have them,
too.
"""


class Termination(NamedTuple):
    """The attributes of an event that are read; ``at`` is the claim's moment."""

    at: datetime
    group: str
    instance_id: str


class Stretch(NamedTuple):
    """The result of one query. ``back_to``: the moment of the last event it examined; None at the end."""

    terminations: list[Termination]
    back_to: datetime | None


@dataclass(frozen=True)
class EventWalk:
    """Reads the index by time of the table ``Events``, 1 MB of it (some 1,700 events) a query."""

    client: Any
    table: str

    def since(self, moment: datetime | None, conditions: Mapping[str, str]) -> Iterator[Stretch]:
        """Yields the terminations from ``moment`` on (None: all) whose attributes match ``conditions``.

        Args:
            conditions: values by attribute, ``group`` or ``instance_id``: DynamoDB does not return other items, but
                still reads them.
        """
        low, high = EventFilter(since=moment).bounds
        kinds = {f":status{i}": status.value for i, status in enumerate(TERMINATIONS)}
        filters = [
            f"#status IN ({', '.join(kinds)})",
            # A lasting fault is no termination, unless its end was not proven.
            "(attribute_not_exists(injection) OR attribute_exists(terminated_at))",
            *(f"#{name} = :{name}" for name in conditions),
        ]
        values = {":kind": EVENT, ":low": low, ":high": high} | kinds
        query = {
            "TableName": self.table,
            "IndexName": EVENTS_BY_TIME.name,
            "ScanIndexForward": False,
            "KeyConditionExpression": "kind = :kind AND #at BETWEEN :low AND :high",
            "FilterExpression": " AND ".join(filters),
            "ProjectionExpression": "#at, #group, instance_id",
            "ExpressionAttributeNames": {"#at": "at", "#group": "group", "#status": "status"}
            | {f"#{name}": name for name in conditions},
            "ExpressionAttributeValues": typed(values | {f":{name}": value for name, value in conditions.items()}),
        }
        for page in self.client.get_paginator("query").paginate(**query):
            last = page.get("LastEvaluatedKey")
            # A malformed one has no place in this format; GET /events names it.
            terminations = list(read(page["Items"], _termination, str).items)
            yield Stretch(terminations, _moment(last["at"]["S"]) if last else None)


def _termination(item: Mapping[str, Any]) -> Termination:
    return Termination(_moment(item["at"]["S"]), item["group"]["S"], item["instance_id"]["S"])


def _moment(at: str) -> datetime:
    return moments.parse(at.partition("#")[0])
