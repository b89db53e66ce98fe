"""Recognises repeated requests without a key: within some seconds they count as one."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from troop.chaos.events import SCHEMA
from troop.shared.aws.state_items import StateItems
from troop.shared.state_keys import REPEAT

WITHIN = timedelta(seconds=4)
"""The time within which requests count as one. A request whose connection broke is repeated at once. Clients of the
original that want several terminations send requests five seconds apart, after the response; and clocks differ.
"""
_LIFETIME = timedelta(days=1)


class RequestDedup(StateItems):
    """Stores the key that each request received; such items expire by themselves."""

    def key_of(self, digest: str, now: datetime) -> str:
        """Returns the key for a request: that of the first one with the same digest, if it was within
        :data:`WITHIN`.
        """
        values = _values(key := _key(digest, now), now)
        earliest = _stamp(now) - int(WITHIN.total_seconds() * 1000)
        return _key_in_use(self.put_unless(REPEAT + digest, values, "since", until=earliest), key)

    def replacement_key(self, digest: str, key: str, now: datetime) -> str:
        """Returns a new key for a request whose key has no event. Two concurrent calls get the same one."""
        seed = hashlib.sha256(key.encode()).hexdigest()[:8]  # both keys can have the same millisecond
        new = f"{_key(digest, now)}-{seed}"
        return _key_in_use(self.put_instead(REPEAT + digest, _values(new, now), "given", key), new)


def _key_in_use(stored: dict[str, Any] | None, key: str) -> str:
    return key if stored is None else str(stored.get("given", key))


def _values(key: str, now: datetime) -> dict[str, Any]:
    expires = int((now + _LIFETIME).timestamp())
    return {"given": key, "since": _stamp(now), "expires_at": expires, "schema": SCHEMA}


def _stamp(now: datetime) -> int:
    return int(now.timestamp() * 1000)


def _key(digest: str, now: datetime) -> str:
    return f"repeat-{digest[:32]}-{_stamp(now)}"
