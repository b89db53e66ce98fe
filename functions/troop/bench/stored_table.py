"""The table of results as it is kept with a cell's record: one item of DynamoDB holds 400 KB, with all else in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from troop.measure.merge import PERCENTILES

LARGEST = 200_000
"""Bytes of its rows as JSON, which is more than they take in DynamoDB."""


def stored_table(table: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows from the first one on, as many as there is room for; a last one tells how many more there are. All of
    them are in the cell's ``results.json``.
    """
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
