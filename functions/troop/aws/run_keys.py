"""Idempotency keys of runs: what one was first used for, so that the same request again is the same run."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop.aws.dynamo import plain, typed
from troop.aws.transact import ConditionFailed, Sleep, write
from troop.bench.record import SCHEMA

KEPT = timedelta(days=7)
_PREFIX = "run-key#"


@dataclass(frozen=True)
class Used:
    """What a key stands for.

    Attributes:
        run: the id that its first request was given, whether there is such a run already or not.
        digest: of that request.
    """

    run: str
    digest: str


@dataclass(frozen=True)
class RunKeys:
    """Keeps keys in the table ``State``; they expire by themselves a week later."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def used(self, key: str) -> Used | None:
        """What a key was used for; None when it was not."""
        item = self.client.get_item(TableName=self.table, Key=_where(key), ConsistentRead=True).get("Item")
        if not item:
            return None
        found = plain(item)
        return Used(str(found["given"]), str(found["digest"]))

    def use(self, key: str, run: str, digest: str, now: datetime) -> Used:
        """Uses a key, unless it was used before: then what it stands for stays as it is, and is the answer."""
        values = {
            ":run": run,
            ":digest": digest,
            ":expires": int((now + KEPT).timestamp()),
            ":schema": SCHEMA,
        }
        try:
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=_where(key),
                UpdateExpression="SET given = :run, digest = :digest, expires_at = :expires, #schema = :schema",
                ConditionExpression="attribute_not_exists(given)",
                ExpressionAttributeNames={"#schema": "schema"},
                ExpressionAttributeValues=typed(values),
            )
        except ConditionFailed:
            if found := self.used(key):
                return found
            raise  # it expired in this very moment: the request can be made again
        return Used(run, digest)


def _where(key: str) -> dict[str, Any]:
    return typed({"key": _PREFIX + hashlib.sha256(key.encode()).hexdigest()})
