"""Reads what the workflow wants this node of a standing fleet to do."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agent.errors import UNREADABLE, AgentError

FORMAT = "troop.orders/1"


@dataclass(frozen=True)
class Orders:
    """The orders for one node.

    Attributes:
        expires_at: when the fleet ends, in seconds since 1970.
        is_draining: whether the node's workers must take no more tasks.
        repair: id of the restart that it must carry out; None for none.
    """

    expires_at: float
    is_draining: bool = False
    repair: str | None = None


def read(body: bytes, node: str) -> Orders:
    """Reads the orders for a node.

    Raises:
        AgentError: they cannot be read.
    """
    try:
        document = json.loads(body)
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {document['format']!r}: must be {FORMAT}")
        is_draining, repair = node in (document.get("drain") or ()), (document.get("restart") or {}).get(node)
        return Orders(float(document["expires_at"]), is_draining, None if repair is None else str(repair))
    except UNREADABLE as error:
        raise AgentError(f"cannot read the orders: {error!r}") from None
