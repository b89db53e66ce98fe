"""Who takes part in a cell, where, and with which rank."""

from __future__ import annotations

import json

from agent.errors import UNREADABLE, AgentError

FORMAT = "troop.roster/1"


def rank_in(body: bytes, node: str) -> int:
    """This node's rank among those of its role.

    Raises:
        AgentError: it has none, or that is no roster.
    """
    try:
        document = json.loads(body)
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}: must be {FORMAT}")
        ranks = {str(entry["id"]): int(entry["rank"]) for entry in document["nodes"]}
    except UNREADABLE as error:
        raise AgentError(f"the roster cannot be read: {error!r}") from None
    if node not in ranks:
        raise AgentError(f"{node} is not on the roster")
    return ranks[node]
