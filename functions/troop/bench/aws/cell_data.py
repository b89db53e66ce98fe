"""Deletes the objects that scripts of cells have created to measure with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.definition.names import data_prefix

SECONDS = 45.0
"""The most seconds that deletions of one call take, apart from the last request."""

_PAGE = 1000
"""The number of keys that S3 lists, and deletes, at a time."""


@dataclass(frozen=True)
class Deletion:
    """What became of the objects of one cell.

    Attributes:
        deleted: number of objects.
        over: whether none is left.
        problem: why some are left; None if none is, or if the time is over.
    """

    cell: str
    deleted: int = 0
    over: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class CellData:
    """The objects below ``data/`` of the results bucket.

    Attributes:
        client: S3's.
        seconds: returns a monotonic time in seconds.
    """

    client: Any
    bucket: str
    seconds: Callable[[], float] = time.monotonic

    def delete(self, run: str, cells: Sequence[str]) -> list[Deletion]:
        """Deletes the objects of cells, one cell after another, while there is time. A refusal is no exception."""
        end = self.seconds() + SECONDS
        return [self._delete_cell(run, cell, end) for cell in cells]

    def _delete_cell(self, run: str, cell: str, end: float) -> Deletion:
        deleted, after, problem = 0, "", None
        try:
            while self.seconds() < end:
                page = self.client.list_objects_v2(
                    Bucket=self.bucket, Prefix=data_prefix(run, cell), StartAfter=after, MaxKeys=_PAGE
                )
                keys = [one["Key"] for one in page.get("Contents", ())]
                refused = self._delete(keys) if keys else []
                deleted += len(keys) - len(refused)
                problem = problem or next((f"{one.get('Code')}: {one.get('Message')}" for one in refused), None)
                if not keys or not page["IsTruncated"]:
                    return Deletion(cell, deleted, over=problem is None, problem=problem)
                after = keys[-1]
        except (BotoCoreError, ClientError) as error:
            problem = str(error)
        return Deletion(cell, deleted, problem=problem)

    def _delete(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """Deletes objects, and returns S3's refusals."""
        these = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        answer = self.client.delete_objects(Bucket=self.bucket, Delete=these)
        return list(answer.get("Errors", ()))
