"""Writes to DynamoDB, repeats conflicting writes, and reports which condition failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ClientError

from troop.shared.aws.throttling import CONTENDED, WRITES, Sleep, ThrottledError, reasons, repeat

_CONDITION = frozenset({"ConditionalCheckFailed", "ConditionalCheckFailedException"})


class ConditionFailed(Exception):
    """A part's condition failed, so nothing was written.

    Attributes:
        part: its position in the transaction.
    """

    def __init__(self, part: int) -> None:
        self.part = part
        super().__init__(f"condition of part {part}")


def transact(client: Any, parts: Sequence[dict[str, Any]], sleep: Sleep = time.sleep) -> None:
    """Writes all parts or none.

    botocore sends the same token with each retry of a call, so a lost answer causes no second write.

    Raises:
        ConditionFailed: for the first part whose condition failed.
        ThrottledError: other transactions, or too many writes, prevented every try.
        ClientError: DynamoDB refused for another reason.
    """
    write(client.transact_write_items, sleep, TransactItems=list(parts))


def write(call: Callable[..., Any], sleep: Sleep = time.sleep, **request: Any) -> Any:
    """Makes one write, such as ``update_item``. Repeats it while transactions prevent it.

    Raises:
        ConditionFailed: its condition failed.
        ThrottledError: transactions prevented every try.
        ClientError: DynamoDB refused for another reason.
    """

    def once() -> Any:
        try:
            return call(**request)
        except ClientError as error:
            codes = reasons(error)
            failed = [part for part, code in enumerate(codes) if code in _CONDITION]
            if failed:
                raise ConditionFailed(failed[0]) from None
            if CONTENDED.intersection(codes):
                raise ThrottledError(error.operation_name, _tables(request), error.response) from error
            raise

    return repeat(once, WRITES, sleep)


def _tables(request: dict[str, Any]) -> str:
    """Returns the names of the tables to which a request writes."""
    parts = [action for part in request.get("TransactItems", ()) for action in part.values()]
    return ", ".join(sorted({one["TableName"] for one in parts or [request] if "TableName" in one}))
