"""Encodes and decodes opaque cursors: the position at which a listing continues, bound to the listing's filter."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools.event_handler.exceptions import BadRequestError

UNKNOWN = "cursor does not come from this API: start again without it"

_DIGEST = 8


class BadCursor(ValueError):
    """Text that is not a cursor, or the cursor of another listing."""


def encode(position: str | None, listing: Any) -> str | None:
    """Returns the cursor of a position within a listing, None for no position. ``listing`` holds JSON-like values that
    identify the listing.
    """
    if not position:
        return None
    return base64.urlsafe_b64encode(_digest(listing) + position.encode()).decode().rstrip("=")


def decode(cursor: str | None, listing: Any) -> str | None:
    """Returns the position of a cursor; None without a cursor.

    Raises:
        BadCursor: it is not a cursor, or belongs to a listing with other parameters.
    """
    if not cursor:
        return None
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


@contextmanager
def refused(lost: type[Exception], message: str = UNKNOWN) -> Iterator[None]:
    """Refuses the request when :func:`decode` rejects its cursor, or the cursor's position is invalid.

    Args:
        lost: the exception raised for a position at which no page of the listing can end.
        message: the message for that case.

    Raises:
        BadRequestError: the problem with the cursor.
    """
    try:
        yield
    except BadCursor as bad:
        raise BadRequestError(str(bad)) from None
    except lost:
        raise BadRequestError(message) from None


def _digest(listing: Any) -> bytes:
    return hashlib.sha256(json.dumps(listing, sort_keys=True, default=str).encode()).digest()[:_DIGEST]
