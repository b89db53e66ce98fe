"""Stores counts by bucket: as a row, or as pairs.

A stored row, ``[bucket, count, count, ...]``, has the first bucket and all counts from there on, so it starts and ends
with a count above 0. Reading it takes a fraction of the time of pairs, ``[[bucket, count], ...]``. Pairs suit scattered
counts.

In memory, the counts of a row are one large integer with 64 bits for each, so adding two rows is a single addition.
Columns (:func:`columns`) store the counts of many rows in this form, so reading them creates no number for each count.
"""

from __future__ import annotations

import binascii
import itertools
import operator
import zlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Callable, NamedTuple, Union

SPREAD = 3
"""The most buckets of a row for each that has a count. A pair takes as much text as three counts of 0, so rows
are hardly longer than pairs.
"""

PACKED_SPREAD = 32
"""The most buckets of a row in columns for each with a count: counts of 0 need hardly any space, and rows are read and
added much faster.
"""

_BITS = 64
_BYTES = _BITS // 8
_WIDEST = 6
"""The most bytes of a count in a column: all counts of a row together then have less than :data:`_BITS` bits."""
_LANE = (1 << _BITS) - 1
MOST_LANES = 1 << 23
"""The most counts of one document's columns: 64 MiB in memory."""


class Row(NamedTuple):
    """Counts of consecutive buckets, of which the first and the last are above 0.

    Attributes:
        first: the first bucket.
        length: the number of buckets.
        total: the sum of all counts, or more; below 2^64, so no count reaches the next one's bits.
        packed: the counts, :data:`_BITS` each, from the lowest bits on.
    """

    first: int
    length: int
    total: int
    packed: int

    def unpacked(self) -> list[int]:
        """Returns the first bucket and all counts, as they are stored."""
        return [self.first, *array("Q", self.packed.to_bytes(_BYTES * self.length, "little"))]


_new_row: Callable[[type[Row], tuple[int, int, int, int]], Row] = tuple.__new__
"""Creates a row in half of the constructor's time: a merge creates millions."""

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


def column(numbers: Sequence[int]) -> dict[str, Any] | list[int]:
    """Returns numbers as ``{"bytes": of each, "count": of numbers, "packed": text}``; as they are if one is too
    large or negative.
    """
    width = max(1, (max(numbers, default=0).bit_length() + 7) // 8)
    if width > _WIDEST or min(numbers, default=0) < 0:
        return list(numbers)
    lanes, narrow = array("Q", numbers).tobytes(), bytearray(width * len(numbers))
    for byte in range(width):
        narrow[byte::width] = lanes[byte::_BYTES]
    packed = binascii.b2a_base64(zlib.compress(bytes(narrow), 1), newline=False).decode("ascii")
    return {"bytes": width, "count": len(numbers), "packed": packed}


def from_column(document: Mapping[str, Any], most: int) -> bytearray:
    """Returns the numbers of a document of :func:`column`, :data:`_BITS` each.

    Args:
        most: the number of numbers that are allowed.

    Raises:
        RowError: it is invalid.
    """
    width, count, text = (document.get(key) for key in ("bytes", "count", "packed"))
    if type(width) is not int or type(count) is not int or not (1 <= width <= _WIDEST and 0 <= count <= most):
        raise RowError(f"a column must have at most {most} numbers of 1 to {_WIDEST} bytes")
    try:
        narrow = zlib.decompressobj().decompress(binascii.a2b_base64(text), width * count + 1)  # type: ignore[arg-type]
    except (TypeError, ValueError, zlib.error) as error:
        raise RowError(f"a column cannot be read: {error}") from None
    if len(narrow) != width * count:
        raise RowError(f"a column must have {count} numbers of {width} bytes")
    lanes = bytearray(_BYTES * count)
    for byte in range(width):
        lanes[byte::_BYTES] = narrow[byte::width]
    return lanes


def columns(several: Iterable[Counts]) -> dict[str, Any] | list[Any]:
    """Returns counts as ``{"rows": [[bucket, number of counts], ...], "column": of all counts}``, where very scattered
    counts are pairs; or a list of all as they are stored, if a count is too large for a column.
    """
    several, numbers = list(several), list[int]()
    every = [_row_or_pairs(counts) for counts in several]
    for one in every:
        if is_row(one):
            numbers += one[1:]
    rows = [[one[0], len(one) - 1] if is_row(one) else one for one in every]
    packed = column(numbers)
    return list(map(stored, several)) if isinstance(packed, list) else {"rows": rows, "column": packed}


def _row_or_pairs(counts: Counts) -> list[Any]:
    if isinstance(counts, Row):
        return counts.unpacked()
    is_dense = counts and max(counts) - min(counts) < PACKED_SPREAD * len(counts)
    return _dense(counts) if is_dense else list(map(list, sorted(counts.items())))


def from_columns(document: Mapping[str, Any], buckets: int, most: int) -> list[Any]:
    """Reads a document of :func:`columns`: a row for each row, and pairs as they are, unchecked.

    Args:
        buckets: the number of buckets that exist.
        most: the number of rows that are allowed.

    Raises:
        RowError: it is invalid.
    """
    rows, packed = document.get("rows"), document.get("column")
    if not isinstance(packed, Mapping) or not isinstance(rows, list) or len(rows) > most:
        raise RowError(f"rows must be a list of at most {most}, with a column")
    lanes, end = from_column(packed, MOST_LANES), 0
    largest, result = 8 * packed["bytes"], list(rows)
    for number, row in enumerate(rows):
        if not isinstance(row, list):
            raise RowError("rows must be lists")
        if is_row(row):
            first, length = row if len(row) == 2 else (-1, -1)
            if type(length) is not int or not (first >= 0 and 1 <= length <= buckets - first):
                raise RowError(f"a row must be a bucket and a number of counts, for buckets from 0 to below {buckets}")
            begin, end = end, end + length * _BYTES
            counts = int.from_bytes(lanes[begin:end], "little")
            if not counts & _LANE or counts.bit_length() <= _BITS * (length - 1):
                raise RowError("the row has a count of 0 at an end, or the column ends before it")
            result[number] = _new_row(Row, (first, length, length << largest, counts))
    if end != len(lanes):
        raise RowError("a column must have the counts of all rows")
    return result


def pairs_of(stored: Sequence[Any]) -> Collection[Any]:
    """Returns pairs of a bucket and its count for stored counts. Does not check them."""
    return _pairs(stored) if is_row(stored) else stored


def by_bucket(counts: Counts) -> dict[int, int]:
    """Returns counts by bucket: a dictionary as it is, or a new one."""
    return counts if isinstance(counts, dict) else dict(_pairs(counts.unpacked()))


def used(counts: Counts) -> int:
    """Returns the number of buckets with a count."""
    return len(counts) if isinstance(counts, dict) else len(_pairs(counts.unpacked()))


def size_of(counts: Counts) -> int:
    """Returns the number of counts in memory, with those of 0 between others."""
    return counts.length if isinstance(counts, Row) else len(counts)


def add_to(counts: dict[int, int], more: dict[int, int]) -> None:
    """Adds counts by bucket to the first ones. The loop runs in C."""
    counts.update(zip(more, map(operator.add, map(counts.get, more, itertools.repeat(0)), more.values())))


def sum_of(mine: Counts, more: Counts) -> Counts:
    """Adds up counts. Changes ``mine`` if it is a dictionary, and shares nothing that can change with ``more``."""
    if not mine or not more:
        return (dict(more) if isinstance(more, dict) else more) if more else mine
    if isinstance(mine, Row) or isinstance(more, Row):
        low, high = _row(mine), _row(more)
        if low and high and (total := _sum_of_rows(low, high)):
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


def _sum_of_rows(one: Row, other: Row) -> Row | None:
    """Adds up two rows; None if most of the sum were zeros, or a count could reach the bits of the next one."""
    first, length, total, counts = one
    start, more_length, more_total, more = other
    if start < first:
        return _sum_of_rows(other, one)
    start -= first
    total += more_total
    whole = max(length, start + more_length)
    if whole > SPREAD * (length + more_length) or total >> _BITS:
        return None
    return _new_row(Row, (first, whole, total, counts + (more << _BITS * start if start else more)))


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
