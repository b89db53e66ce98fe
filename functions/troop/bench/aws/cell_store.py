"""Reads and writes a run's documents in the results bucket: the workflow's and the nodes'.

Nodes write anything under their own keys, up to terabytes, also between a listing and a read. So what a node may write
is read up to a limit. A document that is too large or not JSON is read as None; the caller judges it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.definition import names
from troop.measure.redaction import redacted
from troop.measure.summary import MOST_BYTES

THREADS = 16
WINDOW, WINDOW_BYTES = THREADS, 16 * 1024 * 1024
"""The most documents in memory at a time, and their bytes if there is more than one. A summary of many operations can
have megabytes, and takes ten times as much memory.
"""

MOST_OUTPUT = 4 * 1024 * 1024
"""The most bytes of a node's output that are read, packed and unpacked."""

_GZIP = 16 + zlib.MAX_WBITS
PUTS = 5
"""Number of tries of a put while another caller puts the same object."""

_THERE, _AT_THE_SAME_TIME = frozenset({"PreconditionFailed", "412"}), frozenset({"ConditionalRequestConflict", "409"})

_MISSING = frozenset({"NoSuchKey", "AccessDenied"})

TAIL_LINES, TAIL_CHARACTERS = 15, 1200


@dataclass(frozen=True)
class Listed:
    """An object in a listing of the bucket."""

    key: str
    modified: datetime
    size: int


@dataclass(frozen=True)
class CellStore:
    """The documents in the results bucket.

    Attributes:
        client: S3's, with at least :data:`THREADS` connections.
    """

    client: Any
    bucket: str

    def write(self, key: str, document: Any) -> None:
        self.put(key, encoded(document), "application/json")

    def put(self, key: str, body: bytes, kind: str = "application/octet-stream") -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=kind)

    def put_once(self, key: str, body: bytes, kind: str = "application/octet-stream") -> bytes:
        """Puts an object unless it exists, also while several cells do so. Returns the stored content.

        Raises:
            ClientError: S3 refused.
        """
        for left in range(PUTS - 1, -1, -1):
            try:
                self.client.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=kind, IfNoneMatch="*")
                return body
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if code in _THERE:
                    break
                if code not in _AT_THE_SAME_TIME or not left:
                    raise
        return self.get(key)

    def get(self, key: str, most: int | None = None) -> bytes:
        """Returns an object's content.

        Args:
            most: the most bytes to read, from the beginning. For all that nodes may write.

        Raises:
            ClientError: there is no such object.
        """
        return content(self.client.get_object(Bucket=self.bucket, Key=key), most)

    def find(self, key: str, most: int | None = None) -> bytes | None:
        """Returns an object's content like :meth:`get`; None if there is none.

        Lists the bucket, because S3 refuses a missing object, instead of reporting it as missing, to readers who may
        list only part of a bucket.
        """
        answer = self.client.list_objects_v2(Bucket=self.bucket, Prefix=key, MaxKeys=1)
        return self.get(key, most) if any(one["Key"] == key for one in answer.get("Contents", [])) else None

    def read(self, key: str) -> Any:
        """Returns a document of the workflow or the API.

        Raises:
            ClientError: there is no such object.
            ValueError: it is not JSON.
        """
        return json.loads(self.get(key))

    def find_document(self, key: str) -> Any:
        """Returns a document like :meth:`read`; None if there is none."""
        return self.find_version(key)[0]

    def find_version(self, key: str) -> tuple[Any, str]:
        """Returns a document like :meth:`find_document`, and its version for :meth:`replace`; "" if there is none."""
        answer = self.client.list_objects_v2(Bucket=self.bucket, Prefix=key, MaxKeys=1)
        if not any(one["Key"] == key for one in answer.get("Contents", [])):
            return None, ""
        stored = self.client.get_object(Bucket=self.bucket, Key=key)
        return json.loads(stored["Body"].read()), stored["ETag"]

    def replace(self, key: str, document: Any, version: str) -> bool:
        """Writes a document if it still has a version. Returns false if another caller has written it since.

        Raises:
            ClientError: S3 refused.
        """
        condition = {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        try:
            self.client.put_object(
                Bucket=self.bucket, Key=key, Body=encoded(document), ContentType="application/json", **condition
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in _THERE | _AT_THE_SAME_TIME:
                raise
            return False
        return True

    def listed(self, prefix: str) -> dict[str, Listed]:
        """Lists what nodes have written below a prefix, by their ids."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        objects = (Listed(o["Key"], o["LastModified"], o["Size"]) for page in pages for o in page.get("Contents", []))
        return {names.node_of(one.key): one for one in objects}

    def present(self, keys: Iterable[str], most: int) -> Iterator[tuple[Listed, bytes]]:
        """Yields the objects that exist, each with its first ``most`` bytes, and reads several at once. Leaves out one
        that S3 refuses, as it does a missing one to readers who may list only part of a bucket: a listing tells.
        """

        def read(key: str) -> tuple[Listed, bytes] | None:
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if error.response["Error"]["Code"] not in _MISSING:
                    raise
                return None
            return Listed(key, answer["LastModified"], answer["ContentLength"]), content(answer, most)

        with ThreadPoolExecutor(THREADS) as pool:
            yield from (one for one in pool.map(read, keys) if one is not None)

    def documents(self, objects: Iterable[Listed]) -> Iterator[tuple[str, Any]]:
        """Yields nodes' documents with their ids, and reads several at once; None for one that is not JSON, or exceeds
        :data:`~troop.measure.summary.MOST_BYTES`.
        """
        with ThreadPoolExecutor(THREADS) as pool:
            for some in _windows(objects):
                yield from zip((names.node_of(one.key) for one in some), pool.map(self._document, some), strict=True)

    def beginnings(self, objects: Iterable[Listed], size: int) -> Iterator[tuple[Listed, bytes]]:
        """Yields nodes' objects with their first ``size`` bytes, and reads several at once."""

        def beginning(one: Listed) -> bytes:
            some = {"Range": f"bytes=0-{size - 1}"} if one.size else {}  # an empty object has no range
            return content(self.client.get_object(Bucket=self.bucket, Key=one.key, **some), size)

        several = list(objects)
        with ThreadPoolExecutor(THREADS) as pool:
            yield from zip(several, pool.map(beginning, several), strict=True)

    def _document(self, listed: Listed) -> Any:
        return None if listed.size > MOST_BYTES else document(self.get(listed.key, MOST_BYTES + 1))

    def put_log(self, key: str, text: str) -> None:
        """Stores output compressed, as nodes do."""
        self.put(key, gzip.compress(text.encode(), mtime=0), "application/gzip")

    def tail(self, key: str) -> str:
        """Returns the last lines of a node's output, without credentials; "" if there is none, or it cannot be read."""
        packed = self.find(key, MOST_OUTPUT)
        if packed is None:
            return ""
        text = b""
        with suppress(zlib.error):
            text = zlib.decompressobj(_GZIP).decompress(packed, MOST_OUTPUT)
        return last_lines(redacted(text.decode(errors="replace")))


def _windows(objects: Iterable[Listed]) -> Iterator[list[Listed]]:
    some: list[Listed] = []
    size = 0
    for one in objects:
        if some and (len(some) == WINDOW or size + one.size > WINDOW_BYTES):
            yield some
            some, size = [], 0
        some.append(one)
        size += one.size
    if some:
        yield some


def document(body: bytes) -> Any:
    """Returns a node's document; None if it is not JSON, or exceeds :data:`~troop.measure.summary.MOST_BYTES`."""
    try:
        return json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        return None


def content(answer: Mapping[str, Any], most: int | None) -> bytes:
    """Returns the content of an answer of S3, at most ``most`` bytes from the beginning; None for all."""
    with closing(answer["Body"]) as stream:
        body: bytes = stream.read(most)
    return body


def encoded(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-TAIL_LINES:])[-TAIL_CHARACTERS:]


def newest(objects: Iterable[Listed], most: int) -> Sequence[Listed]:
    """Returns the ``most`` objects that were written last."""
    return sorted(objects, key=lambda one: (one.modified, one.key))[-most:]
