"""Converts what ticks remember of stray items to one item of the table ``State``, and back."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from troop.chaos.events import SCHEMA
from troop.chaos.strays import StrayRecord
from troop.shared import codec
from troop.shared.codec import DocumentError


def to_item(record: StrayRecord) -> dict[str, Any]:
    """Converts a record that a tick has made to plain values."""
    assert record.at is not None
    return {"schema": SCHEMA, **codec.to_document(record)}


def from_item(item: Mapping[str, Any]) -> StrayRecord:
    """Converts the stored item in plain values; an empty one is the empty record.

    So is one that somebody has damaged, but for its version, so that the next tick replaces it.
    """
    if not item:
        return StrayRecord()
    try:
        return codec.from_document(StrayRecord, item)
    except DocumentError:
        version = item.get("version")
        return StrayRecord(version=int(version) if isinstance(version, (int, Decimal)) else 0)
