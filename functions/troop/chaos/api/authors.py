"""Reads who changes something, from a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from troop.chaos.changes import Author
from troop.shared.api.requests import caller_of


def author_of(event: Mapping[str, Any]) -> Author:
    """Returns the author that a change is recorded for."""
    request_id = (event.get("requestContext") or {}).get("requestId") or uuid4()
    return Author(caller=caller_of(event) or "unknown", request_id=str(request_id))
