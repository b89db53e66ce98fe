"""What an answer about a run of many cells leaves out, so that it can be given: Lambda answers with 6 MB at most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from troop.bench.record import Resource

LARGEST = 5_000_000
"""Bytes of an answer as JSON. Lambda's limit is 6 MB, of what stands in a text of the text's own quotes and all."""

MOST_RESOURCES = 2000
"""So many of what a run has created are listed; the rest is counted."""


def size(model: BaseModel) -> int:
    """Bytes of it in an answer."""
    return _bytes(model.model_dump(mode="json"))


def listed(resources: Sequence[Resource]) -> list[Resource]:
    """Those that an answer lists, in their order: of very many those first that are not gone."""
    if len(resources) <= MOST_RESOURCES:
        return list(resources)
    places = sorted(range(len(resources)), key=lambda place: resources[place].gone_at is not None)
    return [resources[place] for place in sorted(places[:MOST_RESOURCES])]


def within(results: Sequence[Any], room: int) -> list[bool]:
    """Which cells' results, or other parts, can be given, from the first one on: until one does not fit into what is
    left of the room.

    Args:
        results: of each cell, as JSON-like values; None takes no room.
        room: bytes.
    """
    fits, is_full = [], False
    for one in results:
        needed = 0 if one is None else _bytes(one)
        is_full = is_full or needed > room
        room -= 0 if is_full else needed
        fits.append(not is_full or one is None)
    return fits


def _bytes(value: Any) -> int:
    # The answer is a text within the function's answer: its quotes and backslashes are escaped once more.
    text = json.dumps(value)
    return len(text) + text.count('"') + text.count("\\")
