"""Splits CSV data by the driver's rank: of n drivers, the driver of rank r gets the r-th of each n records."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


def records(lines: Iterable[str]) -> Iterator[str]:
    """Yields the records of a CSV file unchanged. A quoted field may contain line ends."""
    record = ""
    for line in lines:
        record += line
        if record.count('"') % 2 == 0:
            if record.strip("\r\n"):
                yield record
            record = ""
    if record:
        yield record


def write_part(source: Path, target: Path, rank: int, nodes: int, *, header: bool) -> int:
    """Writes this driver's part of a file, and returns its number of records.

    Args:
        header: whether the first record names the columns, so that each part begins with it.
    """
    with (
        source.open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
        target.open("w", encoding="utf-8", errors="surrogateescape", newline="") as part,
    ):
        all_records = records(lines)
        if header:
            part.write(_ended(next(all_records, "")))
        count = 0
        for record in itertools.islice(all_records, rank, None, nodes):
            part.write(_ended(record))
            count += 1
    if not count:
        sys.exit(f"{source.name} has no record for driver {rank} of {nodes}: use more data, or fewer drivers")
    return count


def _ended(record: str) -> str:
    return record if record.endswith(("\n", "\r")) or not record else f"{record}\n"
