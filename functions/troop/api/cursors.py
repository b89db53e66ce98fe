"""Opaque cursors: where a listing goes on, bound to the filter it was made with."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

UNKNOWN = "cursor is not one that this API gave: start again without it"

_DIGEST = 8


class BadCursor(ValueError):
    """Text that is no cursor, or one of another listing."""


def encode(position: str, listing: Any) -> str:
    """A cursor for a position within a listing; ``listing`` is whatever tells it from others, as JSON-like values."""
    return base64.urlsafe_b64encode(_digest(listing) + position.encode()).decode().rstrip("=")


def decode(cursor: str, listing: Any) -> str:
    """The position a cursor stands for.

    Raises:
        BadCursor: it is none, or belongs to a listing with other parameters.
    """
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        position = raw[_DIGEST:].decode()
    except (binascii.Error, ValueError):
        raise BadCursor(UNKNOWN) from None
    if not position:
        raise BadCursor(UNKNOWN)
    if raw[:_DIGEST] != _digest(listing):
        raise BadCursor("cursor belongs to a listing with other parameters: repeat those, or start without it")
    return position


def _digest(listing: Any) -> bytes:
    return hashlib.sha256(json.dumps(listing, sort_keys=True, default=str).encode()).digest()[:_DIGEST]
