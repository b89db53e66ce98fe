"""Writes to DynamoDB, retries conflicting writes, and reports which condition failed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ClientError

ATTEMPTS = 8
_PASSING = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})

Sleep = Callable[[float], None]


class ConditionFailed(Exception):
    """A part's condition failed, so nothing was written.

    Attributes:
        part: its position in the transaction.
    """

    def __init__(self, part: int) -> None:
        self.part = part
        super().__init__(f"condition of part {part}")


def transact(client: Any, parts: Sequence[dict[str, Any]], sleep: Sleep = time.sleep) -> None:
    """Writes all parts or none. Retries conflicts with other transactions, with full jitter.

    botocore sends the same token with each retry of a call, so a lost answer causes no second write.

    Raises:
        ConditionFailed: for the first part whose condition failed.
        ClientError: DynamoDB refused for another reason.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            client.transact_write_items(TransactItems=list(parts))
            return
        except ClientError as error:
            codes = [r.get("Code", "None") for r in error.response.get("CancellationReasons", [])]
            if "ConditionalCheckFailed" in codes:
                raise ConditionFailed(codes.index("ConditionalCheckFailed")) from None
            if attempt == ATTEMPTS or not _PASSING.intersection(codes):
                raise
            _back_off(attempt, sleep)


def write(call: Callable[..., Any], sleep: Sleep = time.sleep, **request: Any) -> Any:
    """Makes one plain write, such as ``update_item``. Retries conflicts with transactions, with full jitter:
    botocore does not, although the write would succeed a moment later.

    Raises:
        ConditionFailed: its condition failed.
        ClientError: DynamoDB refused for another reason.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return call(**request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ConditionalCheckFailedException":
                raise ConditionFailed(0) from None
            if attempt == ATTEMPTS or code != "TransactionConflictException":
                raise
            _back_off(attempt, sleep)
    raise AssertionError("the last attempt returns or raises")


def _back_off(attempt: int, sleep: Sleep) -> None:
    sleep(random.uniform(0, 0.05 * 2**attempt))
