"""Shortens a table of results for the cell's record: an item of DynamoDB holds at most 400 KB."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from troop.measure.merge import PERCENTILES

LARGEST = 200_000
"""Maximum bytes of the rows as JSON, which is longer than their form in DynamoDB."""


def stored_table(table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns as many rows as fit, and a last one with the number of omitted rows. ``results.json`` has all."""
    rows: list[dict[str, Any]] = []
    room = LARGEST
    for row in table:
        room -= len(json.dumps(row))
        if room < 0:
            return [*rows, _more(len(table) - len(rows))]
        rows.append(row)
    return rows


def _more(number: int) -> dict[str, Any]:
    nothing = dict.fromkeys(("per_second", "bytes_per_second", "mean_ms", *PERCENTILES, "max_ms"))
    note = f"{number} more rows in results.json"
    return {"phase": "", "role": "", "operation": note, "count": 0, "errors": {}, **nothing}
