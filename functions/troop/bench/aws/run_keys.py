"""Stores idempotency keys of runs, so that a repeated request returns the same run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop.bench.records.record import SCHEMA
from troop.shared.aws.state_items import StateItems
from troop.shared.aws.transact import ConditionFailed
from troop.shared.state_keys import RUN_KEY

KEY_LIFETIME = timedelta(days=7)


@dataclass(frozen=True)
class Used:
    """What a key stands for.

    Attributes:
        run: the id that its first request got, whether the run exists yet or not.
        digest: a hash of that request.
    """

    run: str
    digest: str


class RunKeys(StateItems):
    """Keys in the table ``State``, where they expire after a week."""

    def used(self, key: str) -> Used | None:
        """Returns what a key was used for; None if it was not used."""
        entry = self.find(_where(key))
        return _used(entry) if entry else None

    def use(self, key: str, run: str, digest: str, now: datetime) -> Used:
        """Uses a key and returns what it stands for: if it was used before, that of the earlier request."""
        expires = int((now + KEY_LIFETIME).timestamp())
        values = {"given": run, "digest": digest, "expires_at": expires, "schema": SCHEMA}
        earlier = self.put_unless(_where(key), values, "given")
        if earlier is None:
            return Used(run, digest)
        if not earlier:
            raise ConditionFailed(0)  # it expired at this moment: the request can be repeated
        return _used(earlier)


def _used(item: Mapping[str, Any]) -> Used:
    return Used(str(item["given"]), str(item["digest"]))


def _where(key: str) -> str:
    return RUN_KEY + hashlib.sha256(key.encode()).hexdigest()
