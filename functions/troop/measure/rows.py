"""Stores counts by bucket: as a row, or as pairs.

A row, ``[bucket, count, count, ...]``, has the first bucket and all counts from there on, so it starts and ends with a
count above 0. Reading and adding it takes a fraction of the time of pairs, ``[[bucket, count], ...]``. Pairs suit
scattered counts.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any, Union

SPREAD = 3
"""A row has at most so many buckets for each that has a count. A pair takes as much text as three counts of 0, so rows
are hardly longer than pairs.
"""

Counts = Union[dict[int, int], list[int]]
"""Counts above 0 by bucket, or a row, which nobody changes."""


def is_row(stored: Sequence[Any]) -> bool:
    """Checks whether stored counts are a row, not pairs."""
    return bool(stored) and type(stored[0]) is int


def is_valid_row(row: list[Any], buckets: int, most: int) -> bool:
    """Checks a stored row: there are ``buckets`` buckets, and all counts together are at most ``most``.

    All loops run in C. A sum takes a third of the time of a maximum.
    """
    return (
        set(map(type, row)) == {int}
        and len(row) > 1
        and row[1] > 0
        and row[-1] > 0
        and row[0] + len(row) - 1 <= buckets
        and min(row) >= 0
        and sum(row) - row[0] <= most
    )


def pairs_of(stored: Sequence[Any]) -> Collection[Any]:
    """Returns pairs of a bucket and its count for stored counts. Does not check them."""
    if not is_row(stored):
        return stored
    counts = stored[1:]
    return [*compress(zip(itertools.count(stored[0]), counts), counts)]


def by_bucket(counts: Counts) -> dict[int, int]:
    """Returns counts by bucket: a dictionary as it is, or a new one."""
    return counts if isinstance(counts, dict) else dict(pairs_of(counts))


def used(counts: Counts) -> int:
    """Returns the number of buckets with a count."""
    return len(counts) if isinstance(counts, dict) else len(counts) - 1 - counts.count(0) + (counts[0] == 0)


def add_to(counts: dict[int, int], more: dict[int, int]) -> None:
    """Adds counts by bucket to the first ones. The loop runs in C."""
    counts.update(zip(more, map(operator.add, map(counts.get, more, itertools.repeat(0)), more.values())))


def sum_of(mine: Counts, more: Counts) -> Counts:
    """Adds up counts. Changes ``mine`` if it is a dictionary, and shares nothing that can change with ``more``."""
    if not mine or not more:
        return (dict(more) if isinstance(more, dict) else more) if more else mine
    if isinstance(mine, list) or isinstance(more, list):
        low, high = _row(mine), _row(more)
        if low[0] > high[0]:
            low, high = high, low
        start = high[0] - low[0] + 1
        end = start + len(high) - 1
        if max(end, len(low)) <= SPREAD * (len(low) + len(high)):  # otherwise most of the sum is zeros
            total = low + [0] * (end - len(low))
            total[start:end] = map(operator.add, total[start:end], high[1:])
            return total
    mine = by_bucket(mine)
    add_to(mine, by_bucket(more))
    return mine


def stored(counts: Counts) -> list[Any]:
    """Returns counts as they are stored. Equal counts give equal results, because the form depends only on them."""
    if not counts:
        return []
    length = max(counts) - min(counts) + 1 if isinstance(counts, dict) else len(counts) - 1
    if length <= SPREAD * used(counts):
        return _row(counts)
    buckets = by_bucket(counts)
    return [[index, buckets[index]] for index in sorted(buckets)]


def _row(counts: Counts) -> list[int]:
    """Returns counts as a row; there must be one."""
    if isinstance(counts, list):
        return counts
    first = min(counts)
    row = [first] + [0] * (max(counts) - first + 1)
    for index, count in counts.items():
        row[index - first + 1] = count
    return row
