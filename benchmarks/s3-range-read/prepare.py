"""Chooses the objects for range reads, and stores their keys and sizes for the measured phase.

Parameters: ``bucket``; ``prefix`` of the keys; ``objects``, the most objects to choose; ``max_bytes`` of a range, the
minimum size of an object. By default, each node lists the bucket. ``inventory`` is the manifest of an S3 Inventory in
place of that (``s3://bucket/.../manifest.json``), and ``keys_file`` a CSV file of ``key,size`` among the benchmark's
files or artifacts. With ``fill_objects``, the nodes create the objects first (fill.py).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fill import FillError, bucket_of, count_of, create, share
from fill import objects as created
from objects import Objects, ObjectsError, file_objects, inventory_objects, listing_objects, store
from s3 import Bucket, Listed, S3Error

from troop.measure.s3.credentials import CredentialsError, CredentialStore

MOST_OBJECTS = 500_000


def main() -> None:
    parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    _, most = range_bytes(parameters)
    bucket, prefix = bucket_of(parameters), str(parameters.get("prefix", ""))
    if count_of(parameters):
        chosen = created(parameters)
        print(f"created {create(parameters, CredentialStore()):,} objects")
    else:
        chosen = (one for one in source(bucket, prefix, parameters) if one.key.startswith(prefix))
    limit = int(parameters.get("objects", MOST_OBJECTS))
    if limit < 1:
        sys.exit(f"objects is {limit}: must be at least 1")
    seen, count, total = store(Path(os.environ["TROOP_SHARED"]), chosen, most, limit)
    print(f"{bucket}: saw {seen:,} objects, chose {count:,} of at least {most:,} bytes: {total / 1e9:,.3f} GB")
    if not count:
        sys.exit(f"nothing to read: no object in {bucket} has at least max_bytes = {most} bytes")
    own = share()[0] if count_of(parameters) else 0  # other nodes may still create theirs
    if own < count:
        key = unquote(Objects(Path(os.environ["TROOP_SHARED"])).at(own)[0])
        Bucket(bucket, CredentialStore()).ask("GET", key, {}, headers={"range": "bytes=0-0"})  # a reason before load


def range_bytes(parameters: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the fewest and the most bytes of a range; ends the script if they are invalid."""
    most = int(parameters["max_bytes"])
    least = int(parameters.get("min_bytes", 0)) or most
    if not 1 <= least <= most:
        sys.exit(f"min_bytes is {least} and max_bytes is {most}: min_bytes must be from 1 to max_bytes, or 0")
    return least, most


def source(bucket: str, prefix: str, parameters: Mapping[str, Any]) -> Iterator[Listed]:
    """Returns the objects of the file, the inventory or the listing that the parameters ask for."""
    inventory, keys_file = str(parameters.get("inventory", "")), str(parameters.get("keys_file", ""))
    if inventory and keys_file:
        sys.exit("inventory and keys_file are both set: use one of them")
    if keys_file:
        folders = [Path(os.environ[name]) for name in ("TROOP_FILES", "TROOP_ARTIFACTS")]
        paths = [folder / keys_file for folder in folders if (folder / keys_file).is_file()]
        if not paths:
            sys.exit(f"there is no file or artifact {keys_file}")
        return file_objects(paths[0])
    credentials = CredentialStore()
    if inventory:
        name, _, key = inventory.partition("s3://")[2].partition("/")
        if not key.endswith("manifest.json"):
            sys.exit(f"inventory is {inventory}: must be s3://BUCKET/.../manifest.json")
        return inventory_objects(Bucket(name, credentials), key, bucket)
    return listing_objects(Bucket(bucket, credentials), prefix)


if __name__ == "__main__":
    try:
        main()
    except (CredentialsError, FillError, ObjectsError, S3Error) as failed:
        sys.exit(str(failed))
