"""Lists decisions, newest first, with bounded reads for any size of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from troop.chaos.aws.decision_table import SHARDS, day_shard
from troop.shared import moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.malformed import Malformed, read
from troop.shared.tables import DECISIONS_BY_DAY

READS = 4
"""The most queries for a page of one unit; a page of a day makes one for each of the day's parts."""

EXAMINED = 250
"""The most decisions that one query for a day of a unit examines."""

_WEST, _EAST = timedelta(hours=12), timedelta(hours=14)
"""The largest offsets of local days from UTC days, west and east."""

_LONGEST_KEY = 1024
"""The most bytes of a sort key; DynamoDB rejects longer ones."""


class BadPosition(ValueError):
    """The position is not the end of any page of the listing."""


@dataclass(frozen=True)
class DecisionRecord:
    """The record of a decision.

    Attributes:
        tick: the moment it was for.
        day: the local day; None in old records without one.
        groups: names of the unit's groups at that tick.
        rolled, probability: the day's roll, and its limit; None if not known.
        calendar: the name of the unit's calendar, which may not exist.
        group, instance_id: the instance to terminate (or, leashed, the one that would be); None if there was none.
    """

    unit: str
    tick: datetime
    day: date | None
    reason: str
    detail: str
    groups: tuple[str, ...]
    rolled: float | None
    probability: float | None
    calendar: str
    group: str | None
    instance_id: str | None


@dataclass(frozen=True)
class DecisionPage:
    """A page, newest first, without the malformed decisions. ``position`` continues after it; None at the end. A page
    can be short, even empty, and still have a position, because reads are bounded.
    """

    decisions: tuple[DecisionRecord, ...]
    position: str | None
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class DecisionQueries:
    """Reads the table ``Decisions`` and its index."""

    client: Any
    table: str

    def latest(self, unit: str) -> DecisionRecord | None:
        """Returns the unit's last decision that has not expired, unless it is malformed; one query of one item."""
        decisions = self.unit_page(unit, None, 1).decisions
        return decisions[0] if decisions else None

    def unit_page(self, unit: str, day: date | None, limit: int, position: str | None = None) -> DecisionPage:
        """Lists at most ``limit`` decisions about a unit (on a local day), after ``position``.

        Without a day this takes one query, unless DynamoDB splits the answer because of its size; with a day at most
        READS that examine EXAMINED each.

        Raises:
            BadPosition: the position lies outside the listing.
        """
        low, high = _ticks_of(day)
        if position is not None and not (len(position) == len(low) and low <= position <= high):
            raise BadPosition(position)
        rows: list[dict[str, Any]] = []
        for _ in range(READS):
            answer = self.client.query(**self._unit_query(unit, day, limit - len(rows), position))
            matching = [plain(item) for item in answer["Items"]]
            taken = matching[: limit - len(rows)]
            rows += taken
            last = answer.get("LastEvaluatedKey")
            position = last["tick"]["S"] if last else None
            if len(rows) == limit:
                more = position is not None or len(matching) > len(taken)
                return _page(rows, rows[-1]["tick"] if more else None)
            if position is None:
                break
        return _page(rows, position)

    def day_page(self, day: date, limit: int, position: str | None = None) -> DecisionPage:
        """Lists at most ``limit`` decisions about all units on a local day, after ``position``; those of one tick in
        reverse order of the units' names. SHARDS queries that examine ``limit`` decisions each.

        Raises:
            BadPosition: the position is longer than any in the listing.
        """
        if position is not None and len(position.encode()) > _LONGEST_KEY:
            raise BadPosition(position)
        rows: list[dict[str, Any]] = []
        floor = ""  # every part has been read down to here
        for shard in range(SHARDS):
            answer = self.client.query(**self._part_query(day, shard, limit, position))
            rows += map(plain, answer["Items"])
            if last := answer.get("LastEvaluatedKey"):
                floor = max(floor, last["at"]["S"])
        ordered = sorted((item for item in rows if item["at"] >= floor), key=lambda item: str(item["at"]), reverse=True)
        page = ordered[:limit]
        more = len(ordered) > limit or bool(floor)
        return _page(page, (page[-1]["at"] if page else floor) if more else None)

    def _unit_query(self, unit: str, day: date | None, missing: int, position: str | None) -> dict[str, Any]:
        low, high = _ticks_of(day)
        query: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": "#unit = :unit AND #tick BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#unit": "unit", "#tick": "tick"},
            "ExpressionAttributeValues": typed({":unit": unit, ":low": low, ":high": high}),
            "ScanIndexForward": False,
            "ConsistentRead": True,
            "Limit": missing,
        }
        if day:
            query["Limit"] = EXAMINED
            query["FilterExpression"] = "#day = :day"
            query["ExpressionAttributeNames"]["#day"] = "day"
            query["ExpressionAttributeValues"] |= typed({":day": day.isoformat()})
        if position:
            query["ExclusiveStartKey"] = typed({"unit": unit, "tick": position})
        return query

    def _part_query(self, day: date, shard: int, limit: int, position: str | None) -> dict[str, Any]:
        query: dict[str, Any] = {
            "TableName": self.table,
            "IndexName": DECISIONS_BY_DAY.name,
            "KeyConditionExpression": "#part = :part",
            "ExpressionAttributeNames": {"#part": DECISIONS_BY_DAY.partition},
            "ExpressionAttributeValues": typed({":part": day_shard(day, shard)}),
            "ScanIndexForward": False,
            "Limit": limit,
        }
        if position:
            query["KeyConditionExpression"] += " AND #at < :position"
            query["ExpressionAttributeNames"]["#at"] = "at"
            query["ExpressionAttributeValues"] |= typed({":position": position})
        return query


def _ticks_of(day: date | None) -> tuple[str, str]:
    """Returns the first and the last tick, both included, that can be on a local day of any time zone."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    if day is None:
        return moments.iso(first), moments.iso(last)
    midnight = datetime.combine(day, time.min, UTC)
    length = timedelta(days=1) + _WEST
    return moments.iso(midnight - min(_EAST, midnight - first)), moments.iso(midnight + min(length, last - midnight))


def _page(rows: Iterable[Mapping[str, Any]], position: str | None) -> DecisionPage:
    decisions = read(rows, _decided, lambda item: f"Decisions: {item['unit']}, {item['tick']}")
    return DecisionPage(decisions.items, position, decisions.malformed)


def _decided(item: Mapping[str, Any]) -> DecisionRecord:
    policy = item.get("policy", {})  # not in the index
    probability = item.get("probability", policy.get("probability", {}).get("value"))
    return DecisionRecord(
        unit=item["unit"],
        tick=moments.parse(item["tick"]),
        day=date.fromisoformat(item["day"]) if item.get("day") else None,
        reason=item["reason"],
        detail=item.get("detail", ""),
        groups=_texts(item.get("groups", [])),
        rolled=_number(item.get("rolled")),
        probability=_number(probability),
        calendar=str(item.get("calendar", policy.get("calendar", {}).get("value", ""))),
        group=item.get("group"),
        instance_id=item.get("instance_id"),
    )


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("groups must be a list of texts")
    return tuple(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
