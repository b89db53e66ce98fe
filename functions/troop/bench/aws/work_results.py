"""Lists the results of a fleet's tasks, with addresses from which they can be downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.bench.definition import names

PAGE = 1000
"""The most results of a page: as many as S3 lists in one call."""

_URL_SECONDS = 3600


@dataclass(frozen=True)
class Result:
    """The result of a task.

    Attributes:
        id: of the task.
        size: in bytes.
        at: when it was delivered.
        url: returns it to a GET, for an hour.
    """

    id: str
    size: int
    at: datetime
    url: str


@dataclass(frozen=True)
class ResultPage:
    """A page of results by the ids of their tasks; ``last`` is the last id, None on the last page."""

    results: tuple[Result, ...]
    last: str | None


@dataclass(frozen=True)
class WorkResults:
    """The results of tasks in the results bucket.

    Attributes:
        client: S3's; it must sign with version 4.
    """

    client: Any
    bucket: str

    def page(self, run: str, after: str | None = None) -> ResultPage:
        """Returns the results of the tasks after one of them. Makes one call to S3.

        Raises:
            ClientError: S3 refused.
        """
        prefix = names.work_results_prefix(run)
        begin = {"StartAfter": names.work_result_key(run, after)} if after else {}
        answer = self.client.list_objects_v2(Bucket=self.bucket, Prefix=prefix, MaxKeys=PAGE, **begin)
        results = tuple(
            Result(one["Key"].removeprefix(prefix), one["Size"], one["LastModified"], self._url(one["Key"]))
            for one in answer.get("Contents", [])
        )
        return ResultPage(results, results[-1].id if answer["IsTruncated"] else None)

    def _url(self, key: str) -> str:
        parameters = {"Bucket": self.bucket, "Key": key}
        return str(self.client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=_URL_SECONDS))
