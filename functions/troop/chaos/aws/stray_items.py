"""Converts what ticks remember of stray items to one item of the table ``State``, and back."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from troop.chaos.events import SCHEMA
from troop.chaos.strays import Stray, StrayRecord
from troop.shared import moments


def to_item(record: StrayRecord) -> dict[str, Any]:
    """Converts a record that a tick has made to plain values."""
    assert record.at is not None
    return {
        "schema": SCHEMA,
        "version": record.version,
        "count": record.count,
        "named": list(map(_stray_to_item, record.named)),
        "near": {unit: list(keys) for unit, keys in record.near.items()},
        "waiting": {key: moments.iso(since) for key, since in record.waiting.items()},
        "reported": sorted(record.reported),
        "reports": list(map(_stray_to_item, record.reports)),
        "at": moments.iso(record.at),
    }


def from_item(item: Mapping[str, Any]) -> StrayRecord:
    """Converts the stored item in plain values; an empty one is the empty record.

    So is one that somebody has damaged, but for its version, so that the next tick replaces it.
    """
    if not item:
        return StrayRecord()
    try:
        return _record(item)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        version = item.get("version")
        return StrayRecord(version=int(version) if isinstance(version, (int, Decimal)) else 0)


def _record(item: Mapping[str, Any]) -> StrayRecord:
    return StrayRecord(
        version=int(item["version"]),
        count=int(item["count"]),
        named=tuple(map(_stray, item["named"])),
        near={unit: tuple(keys) for unit, keys in item["near"].items()},
        waiting={key: moments.parse(since) for key, since in item["waiting"].items()},
        reported=frozenset(item["reported"]),
        reports=tuple(map(_stray, item["reports"])),
        at=moments.parse(item["at"]),
    )


def _stray_to_item(stray: Stray) -> dict[str, Any]:
    since = moments.iso(stray.since) if stray.since else None
    return {"key": stray.key, "nearest": stray.nearest, "owner": stray.owner, "since": since}


def _stray(item: Mapping[str, Any]) -> Stray:
    since = item["since"]
    return Stray(item["key"], item["nearest"], item["owner"], moments.parse(since) if since else None)
