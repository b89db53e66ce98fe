"""Reads and writes the risks on record: one partition of the table ``Decisions``."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troop.chaos.events import SCHEMA
from troop.risks.last_reading import LastReading
from troop.risks.risk import Key, Risk
from troop.shared import codec
from troop.shared.aws.dynamo import BATCH, batch_write, jsonable, plain, typed
from troop.shared.aws.throttling import Sleep
from troop.shared.malformed import Malformed, read
from troop.shared.tables import DECISIONS, RISKS

_LAST = "0"
"""The sort key of the last reading, before those of risks."""

_LONGEST_KEY = 1024
"""The most bytes of a sort key."""


class BadPosition(ValueError):
    """The position is not the end of any page of the listing."""


@dataclass(frozen=True)
class RiskPage:
    """A page of risks by rule and subject. ``position`` continues after it; None at the end."""

    risks: tuple[Risk, ...]
    position: str | None
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class RiskTable:
    """Reads and writes risks."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def page(self, limit: int, position: str | None = None, *, gone: bool = True) -> RiskPage:
        """Lists at most ``limit`` risks after ``position``, strongly consistent; one query.

        Args:
            gone: whether to include risks that are gone; without them a page can be short.

        Raises:
            BadPosition: the position lies outside the listing.
        """
        if position is not None and not (position > _LAST and len(position.encode()) <= _LONGEST_KEY):
            raise BadPosition(position)
        query = self._query("#sort > :sort", _LAST) | {"Limit": limit}
        if position:
            query["ExclusiveStartKey"] = _key(position)
        if not gone:
            query["FilterExpression"] = "attribute_not_exists(gone_since)"
        answer = self.client.query(**query)
        last = plain(answer.get("LastEvaluatedKey", {}))
        risks = read(map(plain, answer["Items"]), _risk, lambda item: f"Decisions: {item[DECISIONS.sort]}")
        return RiskPage(risks.items, str(last[DECISIONS.sort]) if last else None, risks.malformed)

    def all(self) -> Iterator[Risk]:
        """Yields all risks, also those that are gone, without malformed items."""
        position: str | None = None
        while True:
            page = self.page(1000, position)
            yield from page.risks
            if (position := page.position) is None:
                return

    def find(self, key: Key) -> Risk | None:
        """Returns a risk; None if there is none on record."""
        if len(_sort(key).encode()) > _LONGEST_KEY:
            return None
        items = self.client.query(**self._query("#sort = :sort", _sort(key)))["Items"]
        return next(iter(read(map(plain, items), _risk, lambda _: "").items), None)

    def last(self) -> LastReading | None:
        """Returns the last reading; None before the first one, or if somebody has damaged its record."""
        items = self.client.query(**self._query("#sort = :sort", _LAST))["Items"]
        rows = read(map(plain, items), lambda item: codec.from_document(LastReading, jsonable(item)), lambda _: "")
        return next(iter(rows.items), None)

    def write(self, reading: LastReading, risks: Sequence[Risk], before: Collection[Key]) -> None:
        """Replaces the risks on record; 25 a call. The record of the reading comes last.

        Args:
            before: the keys of those on record.

        Raises:
            ThrottledError, ClientError: of the table. The next reading repeats what is missing.
        """
        documents = {_sort(risk.key): codec.to_document(risk) for risk in risks}
        dropped = {_sort(key) for key in before} - documents.keys()
        writes: list[Mapping[str, Any]] = [{"DeleteRequest": {"Key": _key(sort)}} for sort in sorted(dropped)]
        documents[_LAST] = codec.to_document(reading)
        writes += [
            {"PutRequest": {"Item": _key(sort) | typed({"schema": SCHEMA, **document})}}
            for sort, document in documents.items()
        ]
        for start in range(0, len(writes), BATCH):
            batch_write(self.client, self.table, writes[start : start + BATCH], self.sleep)

    def _query(self, condition: str, sort: str) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "KeyConditionExpression": f"#key = :key AND {condition}",
            "ExpressionAttributeNames": {"#key": DECISIONS.partition, "#sort": DECISIONS.sort},
            "ExpressionAttributeValues": typed({":key": RISKS, ":sort": sort}),
            "ConsistentRead": True,
        }


def _risk(item: Mapping[str, Any]) -> Risk:
    return codec.from_document(Risk, {**item, "evidence": jsonable(item["evidence"])})


def _sort(key: Key) -> str:
    return "/".join(key)


def _key(sort: str) -> dict[str, Any]:
    return typed({DECISIONS.partition: RISKS, DECISIONS.sort: sort})
