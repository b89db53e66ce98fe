"""Finds a node's rank in the roster of its cell."""

from __future__ import annotations

import json

from agent.errors import UNREADABLE, AgentError

FORMAT = "troop.roster/1"


def seat_in(body: bytes, node: str) -> int | None:
    """Returns this node's rank in the roster of a standing fleet; None while ranks are not complete, or it has none.

    Raises:
        AgentError: the roster cannot be read.
    """
    try:
        document = json.loads(body)
        ranks = {str(entry["id"]): int(entry["rank"]) for entry in document["nodes"] if entry["is_present"]}
        return ranks.get(node) if document["complete"] else None
    except UNREADABLE as error:
        raise AgentError(f"cannot read the roster: {error!r}") from None


def rank_in(body: bytes, node: str) -> int:
    """Returns this node's rank among the nodes of its role.

    Raises:
        AgentError: the node has no rank, or the roster cannot be read.
    """
    try:
        document = json.loads(body)
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {document['format']!r}: must be {FORMAT}")
        ranks = {str(entry["id"]): int(entry["rank"]) for entry in document["nodes"]}
    except UNREADABLE as error:
        raise AgentError(f"cannot read the roster: {error!r}") from None
    if node not in ranks:
        raise AgentError(f"{node} is not on the roster")
    return ranks[node]
