"""Reads and writes what the results bucket stores of runs, reports included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.definition import names
from troop.bench.records.archive import refuse_large

CONTENT_TYPES = {
    names.RECORD: "application/json",
    names.REPORT_JSON: "application/json",
    names.REPORT_HTML: "text/html; charset=utf-8",
}
"""The types of the files written here, by name: browsers show HTML pages, and download anything else."""

URL_SECONDS = 3600

_NO_SUCH_KEY, _DENIED = "NoSuchKey", "AccessDenied"


@dataclass(frozen=True)
class StoredRun:
    """One run's folder; a :class:`troop.bench.records.archive.Archive`."""

    client: Any
    bucket: str
    run: str

    def read(self, name: str) -> bytes | None:
        """Returns a file's content; None if there is none.

        Raises:
            ClientError: S3 refused.
            DamagedError: it is a node's file and too large; it is not read.
        """
        key = names.run_prefix(self.run) + name
        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            # For a missing object, S3 refuses readers who may list only part of the bucket.
            if code == _NO_SUCH_KEY or (code == _DENIED and name not in self._listed(name)):
                return None
            raise
        with closing(answer["Body"]) as stream:
            refuse_large(name, answer["ContentLength"])
            body: bytes = stream.read()
        return body

    def names(self, below: str) -> Sequence[str]:
        """Returns the full names of all files that begin with ``below``, in order.

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
    """A stored report.

    Attributes:
        at: when it was written.
        etag: changes when the report is made again.
        size: in bytes.
    """

    at: datetime
    etag: str
    size: int


@dataclass(frozen=True)
class StoredRuns:
    """The stored runs.

    Attributes:
        client: S3's; :meth:`address` needs signature version 4 for the region's own host.
    """

    client: Any
    bucket: str

    def stored_run(self, run: str) -> StoredRun:
        return StoredRun(self.client, self.bucket, run)

    def write(self, run: str, name: str, body: bytes) -> None:
        """Writes one of :data:`CONTENT_TYPES`, and replaces an earlier one.

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
        """Returns the description of a file, without reading its content; None if there is none.

        Raises:
            ClientError: S3 refused.
        """
        key = names.run_prefix(run) + name
        # HEAD does not say whether a permission or the object is missing, nor which permission.
        listed = self.client.list_objects_v2(Bucket=self.bucket, Prefix=key, MaxKeys=1).get("Contents", [])
        entry = next((one for one in listed if one["Key"] == key), None)
        return StoredReport(entry["LastModified"], entry["ETag"].strip('"'), entry["Size"]) if entry else None

    def address(self, run: str, name: str) -> str:
        """Returns an address from which anyone can get a file for :data:`URL_SECONDS`, or until the signer's
        credentials expire. Makes no call to AWS. Treat the address as a secret, and never log it.
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
