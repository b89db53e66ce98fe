"""Reads from the table ``State`` whether somebody has switched the reaper off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from troop.aws.dynamo import plain
from troop.state_keys import REAPER_OFF, SWITCH


@dataclass(frozen=True)
class ReaperSwitch:
    """``client``: DynamoDB's; ``table``: the name of ``State``."""

    client: Any
    table: str

    def is_off(self) -> bool:
        """Whether it is off: strongly consistent, and False until somebody has set it.

        Raises:
            ClientError: DynamoDB refused.
        """
        answer = self.client.get_item(TableName=self.table, Key={"key": {"S": SWITCH}}, ConsistentRead=True)
        return bool(plain(answer.get("Item", {})).get(REAPER_OFF, False))
