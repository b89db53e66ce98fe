"""Objects that a node may write have no end, and may grow between a listing and a read: every read has a limit."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from botocore.response import StreamingBody

from troop.bench.aws.cell_store import MOST_OUTPUT, CellStore, Listed
from troop.bench.aws.live_store import LiveStore
from troop.bench.aws.stored_runs import StoredRuns
from troop.bench.definition import names
from troop.bench.records import archive
from troop.bench.records.archive import DamagedError
from troop.measure import live, summary

RUN, NODE, NOW = "20261120-224600-1f0c9b2e", "i-1", datetime(2026, 11, 20, tzinfo=UTC)
TERABYTES = 5 * 1024**4


class Endless(io.RawIOBase):
    """A stream that never ends, and counts what is read of it."""

    def __init__(self, begin: bytes = b"") -> None:
        self.begin, self.number = begin, 0

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            pytest.fail("all of it was to be read")
        first, self.begin = self.begin[:size], self.begin[size:]
        self.number += size
        return first + b" " * (size - len(first))


class Bucket:
    """An S3 client for one object, which is small when it is listed."""

    def __init__(self, begin: bytes = b"") -> None:
        self.stream = Endless(begin)

    def get_object(self, Key: str, **_: Any) -> dict[str, Any]:
        return {"Body": StreamingBody(cast(Any, self.stream), TERABYTES), "ContentLength": TERABYTES}

    def list_objects_v2(self, Prefix: str, **_: Any) -> dict[str, Any]:
        return {"Contents": [{"Key": Prefix, "Size": 9, "LastModified": NOW}]}

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, Prefix: str, **_: Any) -> list[dict[str, Any]]:
        return [{"Contents": [{"Key": f"{Prefix}AROA:{NODE}.json", "Size": 9, "LastModified": NOW}]}]


def documents(bucket: Bucket) -> Any:
    key = f"{names.nodes_prefix(RUN, 'c001')}AROA:{NODE}.json"
    return list(CellStore(bucket, "results").documents([Listed(key, NOW, 9)]))


def archived(bucket: Bucket) -> Any:
    with pytest.raises(DamagedError):
        StoredRuns(bucket, "results").stored_run(RUN).read(f"c001/output/measure/AROA:{NODE}.log.gz")


READS: list[tuple[Callable[[Bucket], Any], Any, int]] = [
    (documents, [(NODE, None)], summary.MOST_BYTES),
    (lambda bucket: CellStore(bucket, "results").tail("output"), "", MOST_OUTPUT),
    (lambda bucket: LiveStore(bucket, "results").summaries(RUN, "c001", NOW, {NODE: "a"}), ([], 1), live.MOST_BYTES),
    (archived, None, archive.MOST_BYTES),
]


@pytest.mark.parametrize(("read", "expected", "most"), READS)
def test_file_of_a_node_is_read_up_to_a_limit(read: Callable[[Bucket], Any], expected: Any, most: int) -> None:
    bucket = Bucket()
    assert read(bucket) == expected
    assert bucket.stream.number <= most + 1


@pytest.mark.parametrize(
    "output", [b"one\ntwo\n", b"one\ntwo\n" + random.Random(1).randbytes(2 * MOST_OUTPUT)], ids=len
)
def test_the_beginning_of_a_node_s_output_is_enough(output: bytes) -> None:
    """Random bytes cannot be packed, so less of them is read than unpacked text may have."""
    tail = CellStore(Bucket(gzip.compress(output)), "results").tail("output")
    assert tail == "one\ntwo" if len(output) < 9 else len(tail) > 9
