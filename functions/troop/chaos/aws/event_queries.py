"""Lists events, newest first, with bounded reads for any size of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.chaos.aws.event_items import from_item, name_of
from troop.chaos.events import Event, Status
from troop.chaos.verdict import VerdictValue
from troop.shared import moments
from troop.shared.aws.dynamo import typed
from troop.shared.malformed import Malformed, read
from troop.shared.tables import EVENT, EVENTS_BY_TIME, EVENTS_BY_UNIT

READS = 4
"""The most queries for a page."""

EXAMINED = 250
"""The most events that a query examines, so that a page examines at most READS x EXAMINED."""


class BadPosition(ValueError):
    """The position is not the end of any page of the listing."""


@dataclass(frozen=True)
class EventFilter:
    """A filter of events: the range includes ``since`` but not ``until``. None means any."""

    unit: str | None = None
    group: str | None = None
    status: Status | None = None
    since: datetime | None = None
    until: datetime | None = None
    method: str | None = None
    verdict: VerdictValue | None = None

    @property
    def beyond_keys(self) -> dict[str, str]:
        """The conditions on attributes that are not keys of an index, by their paths in an item; these read items that
        do not match.
        """
        conditions = {
            "group": self.group,
            "status": self.status and self.status.value,
            "method": self.method,
            "verdict.value": self.verdict and self.verdict.value,
        }
        return {name: value for name, value in conditions.items() if value is not None}

    @property
    def bounds(self) -> tuple[str, str]:
        """The range of the index's sort key, both ends included."""
        return moments.key_range(self.since, self.until)


@dataclass(frozen=True)
class EventPage:
    """A page, newest first, without the malformed events. ``position`` continues after it; None at the end.

    A page can be short, and with a filter on anything but unit and time even empty, and still have a position, because
    reads are bounded.
    """

    events: tuple[Event, ...]
    position: str | None
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class EventQueries:
    """Reads the indices of the table ``Events``."""

    client: Any
    table: str

    def page(self, event_filter: EventFilter, limit: int, position: str | None = None) -> EventPage:
        """Lists at most ``limit`` events that match, after ``position`` (of an earlier page with the same filter).

        Raises:
            BadPosition: the position lies outside the listing, where DynamoDB would refuse to start.
        """
        low, high = event_filter.bounds
        if position is not None and not (low <= position <= high and position.partition("#")[2]):
            raise BadPosition(position)
        items: list[Mapping[str, Any]] = []
        for _ in range(READS):
            query = self._query(event_filter, position, limit - len(items))
            answer = self.client.query(**query)
            matching = answer["Items"]
            items += matching[: limit - len(items)]
            last = answer.get("LastEvaluatedKey")
            position = last["at"]["S"] if last else None
            if len(items) == limit:
                more = position is not None or (len(matching) > 0 and matching[-1] is not items[-1])
                position = items[-1]["at"]["S"] if more else None
                break
            # DynamoDB stops after 1 MB. More such events, whose alarms changed often, would not fit into an answer:
            # Lambda accepts 6 MB.
            if position is None or (items and answer["ScannedCount"] < query["Limit"]):
                break
        events = read(items, from_item, name_of)
        return EventPage(events.items, position, events.malformed)

    def _query(self, event_filter: EventFilter, position: str | None, missing: int) -> dict[str, Any]:
        index, value = (EVENTS_BY_UNIT, event_filter.unit) if event_filter.unit else (EVENTS_BY_TIME, EVENT)
        low, high = event_filter.bounds
        query: dict[str, Any] = {
            "TableName": self.table,
            "IndexName": index.name,
            "ScanIndexForward": False,
            "KeyConditionExpression": "#key = :key AND #at BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#key": index.partition, "#at": index.sort},
            "ExpressionAttributeValues": typed({":key": value, ":low": low, ":high": high}),
            "Limit": min(missing, EXAMINED),
        }
        if filters := event_filter.beyond_keys:
            query["Limit"] = EXAMINED
            paths = {path: path.split(".") for path in filters}
            query["FilterExpression"] = " AND ".join(f"#{'.#'.join(path)} = :{path[0]}" for path in paths.values())
            query["ExpressionAttributeNames"] |= {f"#{name}": name for path in paths.values() for name in path}
            query["ExpressionAttributeValues"] |= typed({f":{paths[path][0]}": one for path, one in filters.items()})
        if position:
            event_id = position.partition("#")[2]
            query["ExclusiveStartKey"] = typed({"event_id": event_id, index.partition: value, index.sort: position})
        return query
