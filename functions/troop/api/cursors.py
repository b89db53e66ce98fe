"""Opaque cursors: where a listing goes on, bound to the filter it was made with."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools.event_handler.exceptions import BadRequestError

UNKNOWN = "cursor is not one that this API gave: start again without it"

_DIGEST = 8


class BadCursor(ValueError):
    """Text that is no cursor, or one of another listing."""


def encode(position: str | None, listing: Any) -> str | None:
    """A cursor for a position within a listing, None for none; ``listing`` is whatever tells it from others, as
    JSON-like values.
    """
    if not position:
        return None
    return base64.urlsafe_b64encode(_digest(listing) + position.encode()).decode().rstrip("=")


def decode(cursor: str | None, listing: Any) -> str | None:
    """The position a cursor stands for; None without one.

    Raises:
        BadCursor: it is none, or belongs to a listing with other parameters.
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
    """Refuses the request when its cursor is none that :func:`decode` takes, or leads nowhere.

    Args:
        lost: is raised for a position that no page of the listing can have ended with.
        message: tells the caller so.

    Raises:
        BadRequestError: what is wrong with the cursor.
    """
    try:
        yield
    except BadCursor as bad:
        raise BadRequestError(str(bad)) from None
    except lost:
        raise BadRequestError(message) from None


def _digest(listing: Any) -> bytes:
    return hashlib.sha256(json.dumps(listing, sort_keys=True, default=str).encode()).digest()[:_DIGEST]
