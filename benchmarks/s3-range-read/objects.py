"""Stores the objects to read in two files, which all processes of the node map, so that half a million need no memory.

Paths are stored as S3 demands them, encoded, so that a read need not encode anything.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import mmap
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote_plus

from s3 import Bucket, Listed

from troop.measure.s3.signing import encoded_path

PATHS, PLACES = "objects.paths", "objects.places"
"""The paths without separators; and numbers of 8 bytes: the least size of an object, and for each object the end of its
path and its size."""
CSV_FORMAT = "CSV"


class ObjectsError(Exception):
    """There is nothing to read; the message says why."""


class Objects:
    """The stored objects."""

    def __init__(self, folder: Path) -> None:
        self._paths = _mapped(folder / PATHS)
        self._places = memoryview(_mapped(folder / PLACES)).cast("Q")

    def __len__(self) -> int:
        return len(self._places) // 2

    @property
    def least_bytes(self) -> int:
        """The size that every object has at least."""
        return int(self._places[0])

    def at(self, number: int) -> tuple[str, int]:
        """Returns the encoded path of an object, from 0, and its size in bytes."""
        places = self._places
        begin = places[2 * number - 1] if number else 0
        return self._paths[begin : places[2 * number + 1]].decode("ascii"), places[2 * number + 2]


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def store(folder: Path, objects: Iterable[Listed], least_bytes: int, most: int) -> tuple[int, int, int]:
    """Stores the first objects that are large enough; reads no more of ``objects`` than it needs.

    Args:
        most: the most objects to store.

    Returns:
        The number of objects seen and stored, and the bytes of the stored ones together.
    """
    seen = count = total = end = 0
    with (folder / PATHS).open("wb") as paths, (folder / PLACES).open("wb") as places:
        places.write(array("Q", [least_bytes]).tobytes())
        for one in objects:
            seen += 1
            if one.size >= least_bytes:
                end += paths.write(encoded_path(one.key).encode("ascii"))
                places.write(array("Q", [end, one.size]).tobytes())
                count, total = count + 1, total + one.size
                if count >= most:
                    break
    return seen, count, total


def listing_objects(bucket: Bucket, prefix: str) -> Iterator[Listed]:
    """Yields the objects below a prefix in the order of their keys.

    Raises:
        S3Error: the bucket cannot be listed.
    """
    for page in bucket.listing(prefix):
        yield from page


def inventory_objects(bucket: Bucket, key: str, source: str) -> Iterator[Listed]:
    """Yields the objects of an S3 Inventory, without old versions and delete markers.

    Args:
        bucket: contains the inventory.
        key: of its manifest.json.
        source: the bucket that the inventory must describe.

    Raises:
        S3Error: a part of it cannot be read.
        ObjectsError: it is not an inventory of ``source`` in CSV, or has no sizes.
    """
    try:
        with bucket.open(key) as answer:
            manifest = json.loads(answer.read())
        described, form = str(manifest["sourceBucket"]), str(manifest["fileFormat"])
        columns = [name.strip() for name in str(manifest["fileSchema"]).split(",")]
        parts = [str(part["key"]) for part in manifest["files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ObjectsError(f"s3://{bucket.name}/{key} is no manifest of an S3 Inventory: {error!r}") from None
    if described != source:
        raise ObjectsError(f"the inventory describes {described}, and the bucket to read is {source}")
    if form != CSV_FORMAT or not {"Key", "Size"} <= set(columns):
        raise ObjectsError(f"the inventory is {form} of {', '.join(columns)}: it must be CSV with Key and Size")
    places = {name: columns.index(name) for name in columns}
    for part in parts:
        with bucket.open(part) as answer, gzip.open(answer) as unpacked:
            for row in csv.reader(io.TextIOWrapper(unpacked, encoding="utf-8", newline="")):
                if len(row) != len(columns):
                    raise ObjectsError(f"s3://{bucket.name}/{part} has a line of {len(row)} values: {row!r:.200}")
                facts = {name: row[place] for name, place in places.items()}
                if facts.get("IsLatest", "true") == "true" and facts.get("IsDeleteMarker", "false") == "false":
                    yield Listed(unquote_plus(facts["Key"]), _size(facts["Size"], part))


def file_objects(path: Path) -> Iterator[Listed]:
    """Yields the objects of a CSV file whose lines are ``key,size``; gzip if its name ends with ``.gz``.

    Raises:
        ObjectsError: the file is missing or damaged.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if len(row) != 2:
                    raise ObjectsError(f"{path.name}:{number}: the line must be key,size: {row!r:.200}")
                yield Listed(row[0], _size(row[1], f"{path.name}:{number}"))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ObjectsError(f"cannot read {path.name}: {error}") from None


def _size(text: str, where: str) -> int:
    if not text.isdigit():
        raise ObjectsError(f"{where}: the size of an object is {text!r}: must be a number of bytes")
    return int(text)
