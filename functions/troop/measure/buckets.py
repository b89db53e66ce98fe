"""Computes HdrHistogram's buckets: a fixed number for every doubling, so that widths grow with values."""

from __future__ import annotations

from typing import Callable, NamedTuple


class Buckets(NamedTuple):
    """Functions between values and buckets. Plain functions, because they are called for every operation.

    Attributes:
        index_of: the bucket of a value, from 0.
        lowest_in: the smallest value of a bucket.
        highest_in: the largest value of a bucket.
    """

    index_of: Callable[[int], int]
    lowest_in: Callable[[int], int]
    highest_in: Callable[[int], int]


def buckets(bits: int) -> Buckets:
    """Returns buckets with ``2**bits`` for every doubling; every value below twice this has its own bucket."""
    mask = (2 << bits) - 1

    def index_of(value: int) -> int:
        shift = (value | mask).bit_length() - bits - 1
        return (shift << bits) + (value >> shift)

    def lowest_in(index: int) -> int:
        shift = max((index >> bits) - 1, 0)
        return (index - (shift << bits)) << shift

    def highest_in(index: int) -> int:
        return lowest_in(index + 1) - 1

    return Buckets(index_of, lowest_in, highest_in)
