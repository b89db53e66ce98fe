"""Items of the table ``State`` that pass: whoever keeps one says when it expires, and DynamoDB removes it later."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.aws.dynamo import plain, typed
from troop.aws.transact import ConditionFailed, Sleep, write

Values = Mapping[str, Any]


@dataclass(frozen=True)
class PassingItems:
    """Reads and writes them by their keys: see :mod:`troop.state_keys`."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def find(self, key: str) -> dict[str, Any]:
        """An item, strongly consistent; empty when there is none. One that has expired can be there for days yet."""
        answer = self.client.get_item(TableName=self.table, Key=typed({"key": key}), ConsistentRead=True)
        return plain(answer.get("Item", {}))

    def put(self, key: str, values: Values) -> None:
        """Sets attributes of an item, ``expires_at`` and ``schema`` among them.

        Raises:
            ClientError: DynamoDB refused.
        """
        self._set(key, values)

    def put_unless(self, key: str, values: Values, there: str, until: Any = None) -> dict[str, Any] | None:
        """Sets them, unless one of them, ``there``, is set already.

        Args:
            until: a value that is no greater counts as none, for what it stands for is over.

        Returns:
            None when they are set; else the item that is in the way, empty when it has gone in this very moment.

        Raises:
            ClientError: DynamoDB refused.
        """
        condition = f"attribute_not_exists(#{there})"
        if until is not None:
            condition += f" OR #{there} <= :compared"
        return self._set_if(key, values, condition, until)

    def put_instead(self, key: str, values: Values, there: str, known: Any) -> dict[str, Any] | None:
        """Sets them in the place of others: where one of them, ``there``, is still what is ``known``. Answers and
        raises as :meth:`put_unless` does.
        """
        return self._set_if(key, values, f"#{there} = :compared", known)

    def _set_if(self, key: str, values: Values, condition: str, compared: Any) -> dict[str, Any] | None:
        try:
            self._set(key, values, {":compared": compared}, ConditionExpression=condition)
        except ConditionFailed:
            return self.find(key)
        return None

    def _set(self, key: str, values: Values, compared: Values | None = None, **condition: str) -> None:
        parameters = {f":{name}": value for name, value in values.items()}
        write(
            self.client.update_item,
            self.sleep,
            TableName=self.table,
            Key=typed({"key": key}),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ExpressionAttributeNames={f"#{name}": name for name in values},
            ExpressionAttributeValues=typed({**parameters, **(compared or {})}),
            **condition,
        )
