"""The objects of a bucket, as simulated nodes read and write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from local.launcher import LocalAccount

THREADS = 8
"""All nodes share these."""


class SimulatedObjects:
    """A bucket, and threads that write to it. A context manager: leaving its block ends the threads."""

    def __init__(self, account: LocalAccount, bucket: str) -> None:
        self._bucket = bucket
        self._s3 = account.client("s3", max_pool_connections=THREADS + 2)

    def __enter__(self) -> SimulatedObjects:
        self.pool = ThreadPoolExecutor(THREADS)
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown()

    def names_in(self, prefix: str) -> list[str]:
        """Returns the names of folders and objects directly below a prefix."""
        pages = list(
            self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
        )
        keys = [one["Prefix"].rstrip("/") for page in pages for one in page.get("CommonPrefixes", [])]
        keys += [one["Key"] for page in pages for one in page.get("Contents", [])]
        return [key.removeprefix(prefix) for key in keys]

    def read(self, key: str) -> dict[str, Any] | None:
        """Returns a document; None if there is no such object."""
        try:
            document: dict[str, Any] = json.load(self._s3.get_object(Bucket=self._bucket, Key=key)["Body"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            raise
        return document

    def write_all(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Writes objects: keys and contents."""
        list(self.pool.map(lambda one: self._s3.put_object(Bucket=self._bucket, Key=one[0], Body=one[1]), objects))

    def write_once(self, key: str, body: bytes) -> None:
        """Writes an object unless there is one with this key."""
        try:
            self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] != "PreconditionFailed":
                raise


def encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
