"""What is kept of runs in the results bucket, and the reports that are made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench import names
from troop.report.archive import refuse_large

CONTENT_TYPES = {
    names.RECORD: "application/json",
    names.REPORT_JSON: "application/json",
    names.REPORT_HTML: "text/html; charset=utf-8",
}
"""Of what is written here, by name: a browser shows a page that says it is one, and keeps anything else."""

URL_SECONDS = 3600

_NO_SUCH_KEY, _DENIED = "NoSuchKey", "AccessDenied"


@dataclass(frozen=True)
class StoredRun:
    """One run's folder; a :class:`troop.report.archive.Kept`."""

    client: Any
    bucket: str
    run: str

    def read(self, name: str) -> bytes | None:
        """A file's content; None when there is none.

        Raises:
            ClientError: S3 refused.
            DamagedError: it is a node's, and too large; it is not read.
        """
        key = names.run_prefix(self.run) + name
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            # To a reader who may list only a part of the bucket S3 does not say that an object is missing, but refuses.
            if code == _NO_SUCH_KEY or (code == _DENIED and name not in self._listed(name)):
                return None
            raise
        with closing(answer["Body"]) as stream:
            refuse_large(name, answer["ContentLength"])
            body: bytes = stream.read()
        return body

    def names(self, below: str) -> Sequence[str]:
        """Of all files whose names begin with ``below``, in full and in order.

        Raises:
            ClientError: S3 refused.
        """
        return list(self._listed(below))

    def _listed(self, below: str) -> Iterator[str]:
        prefix = names.run_prefix(self.run)
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix + below)
        return (one["Key"].removeprefix(prefix) for page in pages for one in page.get("Contents", []))


@dataclass(frozen=True)
class StoredReport:
    """A report that is there.

    Attributes:
        at: when it was written.
        etag: another one after it was made again.
        size: bytes.
    """

    at: datetime
    etag: str
    size: int


@dataclass(frozen=True)
class StoredRuns:
    """``client`` of S3; for :meth:`address` it must sign with version 4 for the region's own host."""

    client: Any
    bucket: str

    def of(self, run: str) -> StoredRun:
        return StoredRun(self.client, self.bucket, run)

    def write(self, run: str, name: str, body: bytes) -> None:
        """Writes one of :data:`CONTENT_TYPES`, over the one before it.

        Raises:
            ClientError: S3 refused.
        """
        self.client.put_object(
            Bucket=self.bucket,
            Key=names.run_prefix(run) + name,
            Body=body,
            ContentType=CONTENT_TYPES[name],
            CacheControl="no-cache",  # it may be made again
        )

    def find(self, run: str, name: str) -> StoredReport | None:
        """Whether a file is there; its content is not read.

        Raises:
            ClientError: S3 refused.
        """
        key = names.run_prefix(run) + name
        # Not by HEAD: that says neither whether a right or the object is missing, nor by which right it would be known.
        listed = self.client.list_objects_v2(Bucket=self.bucket, Prefix=key, MaxKeys=1).get("Contents", [])
        entry = next((one for one in listed if one["Key"] == key), None)
        return StoredReport(entry["LastModified"], entry["ETag"].strip('"'), entry["Size"]) if entry else None

    def address(self, run: str, name: str) -> str:
        """Where anybody who has the address can get a file for :data:`URL_SECONDS`, or as long as the credentials of
        whoever has signed it last. Asks nothing of AWS. It is as good as a key: it gets into no log.
        """
        url: str = self.client.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self.bucket,
                "Key": names.run_prefix(run) + name,
                "ResponseContentType": CONTENT_TYPES[name],
                "ResponseContentDisposition": f'inline; filename="troop-{run}-{name}"',
            },
            ExpiresIn=URL_SECONDS,
        )
        return url
