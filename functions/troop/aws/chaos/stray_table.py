"""Stores what ticks remember of stray items. Apart from the conversion, which the command needs without the logger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.chaos.stray_items import to_item
from troop.aws.dynamo import typed
from troop.aws.transact import ConditionFailed, write
from troop.chaos.strays import StrayRecord
from troop.state_keys import STRAYS

logger = Logger()


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
