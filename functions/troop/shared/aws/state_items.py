"""Reads and writes single items of the table ``State``. The writer sets when an item expires, if it does; DynamoDB
deletes it later.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.shared.aws.dynamo import plain, typed
from troop.shared.aws.throttling import Sleep
from troop.shared.aws.transact import ConditionFailed, write

Values = Mapping[str, Any]


@dataclass(frozen=True)
class StateItems:
    """Reads and writes items by their keys, see :mod:`troop.shared.state_keys`."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def find(self, key: str) -> dict[str, Any]:
        """Returns an item, strongly consistent; empty if there is none. An expired item can still exist for days."""
        answer = self.client.get_item(TableName=self.table, Key=typed({"key": key}), ConsistentRead=True)
        return plain(answer.get("Item", {}))

    def put(self, key: str, values: Values) -> None:
        """Sets attributes of an item, including ``expires_at`` and ``schema``.

        Raises:
            ClientError: DynamoDB refused.
        """
        self._set(key, values)

    def put_unless(self, key: str, values: Values, there: str, until: Any = None) -> dict[str, Any] | None:
        """Sets attributes, unless the attribute ``there`` is set already.

        Args:
            until: a stored value that is not greater has expired and counts as absent.

        Returns:
            None if they were set; otherwise the existing item, which is empty if it was deleted at that moment.

        Raises:
            ClientError: DynamoDB refused.
        """
        condition = f"attribute_not_exists(#{there})"
        if until is not None:
            condition += f" OR #{there} <= :compared"
        return self._set_if(key, values, condition, until)

    def put_instead(self, key: str, values: Values, there: str, known: Any) -> dict[str, Any] | None:
        """Sets attributes if the attribute ``there`` still has the value ``known``. Returns and raises like
        :meth:`put_unless`.
        """
        return self._set_if(key, values, f"#{there} = :compared", known)

    def _set_if(self, key: str, values: Values, condition: str, compared: Any) -> dict[str, Any] | None:
        try:
            self._set(key, values, {":compared": compared}, condition)
        except ConditionFailed:
            return self.find(key)
        return None

    def _set(self, key: str, values: Values, compared: Values | None = None, condition: str = "") -> None:
        parameters = {f":{name}": value for name, value in values.items()}
        write(
            self.client.update_item,
            self.sleep,
            TableName=self.table,
            Key=typed({"key": key}),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ExpressionAttributeNames={f"#{name}": name for name in values},
            ExpressionAttributeValues=typed({**parameters, **(compared or {})}),
            **({"ConditionExpression": condition} if condition else {}),
        )
