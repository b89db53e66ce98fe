"""Makes the document that tells the nodes of a standing fleet what to do.

It follows from the record alone, so that the last of several writers is right, or the next check corrects it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

FORMAT = "troop.orders/1"


def to_document(
    expires_at: datetime, drains: Iterable[str] = (), restarts: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns the orders.

    Args:
        expires_at: when the fleet ends.
        drains: ids of the nodes that are to take no more tasks.
        restarts: ids of repairs by the ids of the nodes that are to restart their application.
    """
    return {
        "format": FORMAT,
        "expires_at": int(expires_at.timestamp()),
        "drain": sorted(drains),
        "restart": dict(sorted((restarts or {}).items())),
    }
