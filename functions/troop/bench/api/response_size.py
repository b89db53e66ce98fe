"""Leaves parts out of an answer about a run of many cells, because Lambda answers with at most 6 MB."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from troop.bench.records.record import Resource

LARGEST = 5_000_000
"""The most bytes of an answer as JSON. Lambda's limit of 6 MB also counts the escapes of the JSON text."""

MOST_RESOURCES = 2000
"""The number of a run's resources to list; the rest is only counted."""


def size(model: BaseModel) -> int:
    """Returns the model's bytes in an answer."""
    return _bytes(model.model_dump(mode="json"))


def listed(resources: Sequence[Resource]) -> list[Resource]:
    """Returns the resources that an answer lists, in their order; of too many, existing ones before removed ones."""
    if len(resources) <= MOST_RESOURCES:
        return list(resources)
    places = sorted(range(len(resources)), key=lambda place: resources[place].gone_at is not None)
    return [resources[place] for place in sorted(places[:MOST_RESOURCES])]


def within(results: Sequence[Any], room: int) -> list[bool]:
    """Computes which results fit into the room: all from the first one until one exceeds what is left.

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
    # The answer is a string within the function's answer, which escapes its quotes and backslashes again.
    text = json.dumps(value)
    return len(text) + text.count('"') + text.count("\\")
