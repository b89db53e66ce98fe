"""Reads from the table ``State`` whether the reaper is switched off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from troop.shared.aws.dynamo import plain
from troop.shared.state_keys import REAPER_OFF, SWITCH


@dataclass(frozen=True)
class ReaperSwitch:
    """The reaper's switch.

    Attributes:
        client: DynamoDB's.
        table: the name of ``State``.
    """

    client: Any
    table: str

    def is_off(self) -> bool:
        """Checks whether the reaper is off, strongly consistent; False until it was switched off once.

        Raises:
            ClientError: DynamoDB refused.
        """
        answer = self.client.get_item(TableName=self.table, Key={"key": {"S": SWITCH}}, ConsistentRead=True)
        return bool(plain(answer.get("Item", {})).get(REAPER_OFF, False))
