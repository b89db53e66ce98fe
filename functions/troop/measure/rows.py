"""Stores counts by bucket: as a row, or as pairs.

A stored row, ``[bucket, count, count, ...]``, has the first bucket and all counts from there on, so it starts and ends
with a count above 0. Reading it takes a fraction of the time of pairs, ``[[bucket, count], ...]``. Pairs suit scattered
counts.

In memory, the counts of a row are one large integer with 64 bits for each, so adding two rows is a single addition.
"""

from __future__ import annotations

import itertools
import operator
from array import array
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any, NamedTuple, Union

SPREAD = 3
"""A row has at most so many buckets for each that has a count. A pair takes as much text as three counts of 0, so rows
are hardly longer than pairs.
"""

_BITS = 64
_BYTES = _BITS // 8


class Row(NamedTuple):
    """Counts of consecutive buckets, of which the first and the last are above 0.

    Attributes:
        first: the first bucket.
        length: the number of buckets.
        total: the sum of all counts; below 2^64, so no count reaches the next one's bits.
        packed: the counts, :data:`_BITS` each, from the lowest bits on.
    """

    first: int
    length: int
    total: int
    packed: int

    def unpacked(self) -> list[int]:
        """Returns the first bucket and all counts, as they are stored."""
        return [self.first, *array("Q", self.packed.to_bytes(_BYTES * self.length, "little"))]


Counts = Union[dict[int, int], Row]
"""Counts above 0 by bucket, or a row of them."""


class RowError(ValueError):
    """A list is not a stored row."""


def is_row(stored: Sequence[Any]) -> bool:
    """Checks whether stored counts are a row, not pairs."""
    return bool(stored) and type(stored[0]) is int


def row_of(stored: list[Any], buckets: int, most: int) -> Row:
    """Reads a stored row. JSON's ``true`` counts as 1.

    Args:
        buckets: the number of buckets that exist.
        most: the largest sum of all counts; below 2^64.

    Raises:
        RowError: a number is not whole or out of range, or a count at an end is 0.
    """
    try:
        counts = array("Q", stored)
    except (TypeError, OverflowError) as error:
        raise RowError(str(error)) from None
    first = counts.pop(0)
    total = sum(stored) - first  # of the list, whose numbers need not be created again
    if not counts or not counts[0] or not counts[-1] or first + len(counts) > buckets or total > most:
        raise RowError("the row has a count of 0 at an end, or exceeds the buckets or the largest sum")
    return Row(first, len(counts), total, _pack(counts))


def pairs_of(stored: Sequence[Any]) -> Collection[Any]:
    """Returns pairs of a bucket and its count for stored counts. Does not check them."""
    return _pairs(stored) if is_row(stored) else stored


def by_bucket(counts: Counts) -> dict[int, int]:
    """Returns counts by bucket: a dictionary as it is, or a new one."""
    return counts if isinstance(counts, dict) else dict(_pairs(counts.unpacked()))


def used(counts: Counts) -> int:
    """Returns the number of buckets with a count."""
    return len(counts) if isinstance(counts, dict) else len(_pairs(counts.unpacked()))


def add_to(counts: dict[int, int], more: dict[int, int]) -> None:
    """Adds counts by bucket to the first ones. The loop runs in C."""
    counts.update(zip(more, map(operator.add, map(counts.get, more, itertools.repeat(0)), more.values())))


def sum_of(mine: Counts, more: Counts) -> Counts:
    """Adds up counts. Changes ``mine`` if it is a dictionary, and shares nothing that can change with ``more``."""
    if not mine or not more:
        return (dict(more) if isinstance(more, dict) else more) if more else mine
    if isinstance(mine, Row) or isinstance(more, Row):
        low, high = _row(mine), _row(more)
        if low and high and (total := _sum_of_rows(*sorted((low, high)))):
            return total
    mine = by_bucket(mine)
    add_to(mine, by_bucket(more))
    return mine


def stored(counts: Counts) -> list[Any]:
    """Returns counts as they are stored. Equal counts give equal results, because the form depends only on them."""
    if not counts:
        return []
    if isinstance(counts, Row):
        row = counts.unpacked()
        pairs = _pairs(row)
        return row if counts.length <= SPREAD * len(pairs) else list(map(list, pairs))
    if max(counts) - min(counts) + 1 <= SPREAD * len(counts):
        return _dense(counts)
    return [[index, counts[index]] for index in sorted(counts)]


def _pairs(row: Sequence[int]) -> list[tuple[int, int]]:
    counts = row[1:]
    return [*compress(zip(itertools.count(row[0]), counts), counts)]


def _sum_of_rows(low: Row, high: Row) -> Row | None:
    """Adds up two rows; None if most of the sum were zeros, or a count could reach the bits of the next one."""
    start = high.first - low.first
    length = max(low.length, start + high.length)
    total = low.total + high.total
    if length > SPREAD * (low.length + high.length) or total >> _BITS:
        return None
    return Row(low.first, length, total, low.packed + (high.packed << _BITS * start))


def _row(counts: Counts) -> Row | None:
    """Returns counts as a row; None if their total is too large for one. There must be counts."""
    if isinstance(counts, Row):
        return counts
    total = sum(counts.values())
    if total >> _BITS:
        return None
    first, *dense = _dense(counts)
    return Row(first, len(dense), total, _pack(array("Q", dense)))


def _pack(counts: array[int]) -> int:
    return int.from_bytes(counts.tobytes(), "little")


def _dense(counts: dict[int, int]) -> list[int]:
    """Returns the first bucket and all counts from there on; there must be one."""
    first = min(counts)
    row = [first] + [0] * (max(counts) - first + 1)
    for index, count in counts.items():
        row[index - first + 1] = count
    return row
