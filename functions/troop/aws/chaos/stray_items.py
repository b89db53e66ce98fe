"""Stores what ticks remember of stray items, in one item of the table ``State``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from troop import moments
from troop.aws.dynamo import typed
from troop.aws.transact import ConditionFailed, write
from troop.chaos.events import SCHEMA
from troop.chaos.strays import Stray, StrayRecord
from troop.state_keys import STRAYS

logger = Logger()


def to_item(record: StrayRecord) -> dict[str, Any]:
    """Converts a record that a tick has made to plain values."""
    assert record.at is not None
    return {
        "schema": SCHEMA,
        "version": record.version,
        "count": record.count,
        "named": list(map(_stray_to_item, record.named)),
        "near": {unit: list(keys) for unit, keys in record.near.items()},
        "waiting": {key: moments.iso(since) for key, since in record.waiting.items()},
        "reported": sorted(record.reported),
        "reports": list(map(_stray_to_item, record.reports)),
        "at": moments.iso(record.at),
    }


def from_item(item: Mapping[str, Any]) -> StrayRecord:
    """Converts the stored item in plain values; an empty one is the empty record."""
    if not item:
        return StrayRecord()
    return StrayRecord(
        version=int(item["version"]),
        count=int(item["count"]),
        named=tuple(map(_stray, item["named"])),
        near={unit: tuple(keys) for unit, keys in item["near"].items()},
        waiting={key: moments.parse(since) for key, since in item["waiting"].items()},
        reported=frozenset(item["reported"]),
        reports=tuple(map(_stray, item["reports"])),
        at=moments.parse(item["at"]),
    )


def _stray_to_item(stray: Stray) -> dict[str, Any]:
    since = moments.iso(stray.since) if stray.since else None
    return {"key": stray.key, "nearest": stray.nearest, "owner": stray.owner, "since": since}


def _stray(item: Mapping[str, Any]) -> Stray:
    since = item["since"]
    return Stray(item["key"], item["nearest"], item["owner"], moments.parse(since) if since else None)


@dataclass(frozen=True)
class StrayTable:
    """Writes the record. ``table``: the name of the table State."""

    client: Any
    table: str
    sleep: Callable[[float], None]

    def write(self, record: StrayRecord) -> None:
        """Writes the next version of the record. If another calendar's tick has written it, or DynamoDB refuses, the
        next tick does it: a record for people must not fail a tick.
        """
        item = to_item(record)
        names = {f"#{name}": name for name in item}
        try:
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=typed({"key": STRAYS}),
                UpdateExpression="SET " + ", ".join(f"{name} = {name.replace('#', ':')}" for name in names),
                ConditionExpression="attribute_not_exists(#version) OR #version = :before",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=typed({":before": record.version - 1})
                | {f":{name}": value for name, value in typed(item).items()},
            )
        except ConditionFailed:
            pass
        except (BotoCoreError, ClientError):
            logger.warning("stray items were not recorded", exc_info=True)
