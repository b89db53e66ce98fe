"""Stores what ticks remember of stray items. Apart from the conversion, which the command needs without the logger."""

from __future__ import annotations

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.stray_items import to_item
from troop.chaos.strays import StrayRecord
from troop.shared.aws.state_items import StateItems
from troop.shared.aws.transact import ConditionFailed
from troop.shared.state_keys import STRAYS

logger = Logger()

_IS_THE_LAST = (
    "attribute_not_exists(#version) OR #version = :before OR NOT attribute_type(#version, :number)"  # or damaged
)


class StrayTable(StateItems):
    """Writes the record."""

    def write(self, record: StrayRecord) -> None:
        """Writes the next version of the record. If another calendar's tick has written it, or DynamoDB refuses, the
        next tick does it: a record for people must not fail a tick.
        """
        compared = {":before": record.version - 1, ":number": "N"}
        try:
            self._set(STRAYS, to_item(record), compared, _IS_THE_LAST)
        except ConditionFailed:
            pass
        except (BotoCoreError, ClientError):
            logger.warning("stray items were not recorded", exc_info=True)
