"""Reads and writes exemptions: one partition of the table ``Changes``, to which each change adds a record.

An exemption lasts at most :data:`troop.risks.risk.LONGEST_EXEMPTION`, so older records have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from troop.risks.risk import LONGEST_EXEMPTION, Exemption, Key
from troop.shared import moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.malformed import read
from troop.shared.tables import CHANGES

_LAST_DAY = timedelta(days=2)
"""An exemption lasts to the end of its last day, on any calendar's clock."""

SUBJECT = "risks"
"""The partition. Records of policies begin with ``unit#``."""


@dataclass(frozen=True)
class ExemptionTable:
    """Reads and writes exemptions."""

    client: Any
    table: str

    def add(self, exemption: Exemption, request_id: str) -> None:
        """Records an exemption, which replaces an earlier one of the same risk.

        Raises:
            ClientError: DynamoDB refused.
        """
        value = {"reason": exemption.reason, "until": exemption.until.isoformat()}
        self._put(exemption.key, exemption.by, exemption.at, request_id, value)

    def end(self, key: Key, by: str, at: datetime, request_id: str) -> None:
        """Records that a risk is no longer exempt.

        Raises:
            ClientError: DynamoDB refused.
        """
        self._put(key, by, at, request_id, None)

    def _put(self, key: Key, by: str, at: datetime, request_id: str, value: Mapping[str, str] | None) -> None:
        # Without ``schema``: the index of all changes lists those of policies and of the switch.
        item = {
            CHANGES.partition: SUBJECT,
            CHANGES.sort: f"{moments.iso(at)}#{request_id}",
            "caller": by,
            "changes": {" ".join(key): {"old": None, "new": value}},
        }
        self.client.put_item(TableName=self.table, Item=typed(item))

    def current(self, now: datetime, today: date) -> dict[Key, Exemption]:
        """Returns the exemptions in force, strongly consistent; one query for a megabyte of records."""
        decided: dict[Key, Exemption | None] = {}
        for key, exemption in self._newest_first(now):
            decided.setdefault(key, exemption)
        return {key: one for key, one in decided.items() if one and one.until >= today}

    def _newest_first(self, now: datetime) -> Iterator[tuple[Key, Exemption | None]]:
        low, high = moments.key_range(now - LONGEST_EXEMPTION - _LAST_DAY, None)
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="#key = :key AND #at BETWEEN :low AND :high",
            ExpressionAttributeNames={"#key": CHANGES.partition, "#at": CHANGES.sort},
            ExpressionAttributeValues=typed({":key": SUBJECT, ":low": low, ":high": high}),
            ScanIndexForward=False,
            ConsistentRead=True,
        )
        for page in pages:
            yield from read(map(plain, page["Items"]), _exemption, lambda _: "").items


def _exemption(item: Mapping[str, Any]) -> tuple[Key, Exemption | None]:
    ((name, value),) = item["changes"].items()
    rule, _, subject = name.partition(" ")
    if (new := value["new"]) is None:
        return (rule, subject), None
    at = moments.parse(item[CHANGES.sort].partition("#")[0])
    exemption = Exemption(rule, subject, new["reason"], date.fromisoformat(new["until"]), item["caller"], at)
    return exemption.key, exemption
