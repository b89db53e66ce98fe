"""Chooses the objects for range reads, and writes their presigned URLs for the measured phase.

Parameters: ``bucket``; ``keys``, a list, or ``prefix``, below which all objects may be chosen; ``objects``, the most
objects to choose (default 8); ``max_bytes`` of a range, the minimum size of an object; ``address_seconds``, the
lifetime of URLs, which are renewed in time (default 6 h).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from addresses import LASTS_SECONDS, CliError, aws, presigned, write

LISTED = 10_000
"""The most objects to list."""


def main() -> None:
    parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    least, most = int(parameters["min_bytes"]), int(parameters["max_bytes"])
    if not 1 <= least <= most:
        sys.exit(f"min_bytes is {least} and max_bytes is {most}: min_bytes must be from 1 to max_bytes")
    bucket = str(parameters["bucket"])
    sizes_by_key = sizes(bucket, parameters)
    large = sorted(key for key, size in sizes_by_key.items() if size >= most)
    print(f"{bucket}: {len(sizes_by_key)} objects, {len(large)} of them with at least {most} bytes")
    if not large:
        sys.exit(f"nothing to read: no object in {bucket} has at least max_bytes = {most} bytes")
    chosen = spread(large, int(parameters.get("objects", 8)))
    seconds = int(parameters.get("address_seconds", LASTS_SECONDS))
    objects = [{"key": key, "size": sizes_by_key[key], "url": presigned(bucket, key, seconds)} for key in chosen]
    for one in objects:
        print(f"{one['size']:>15,} {one['key']}")
    write(Path(os.environ["TROOP_SHARED"]) / "objects.json", objects)


def sizes(bucket: str, parameters: dict[str, Any]) -> dict[str, int]:
    """Returns sizes in bytes by key."""
    keys = parameters.get("keys")
    if keys:
        command = ["s3api", "head-object", "--bucket", bucket, "--output", "json", "--key"]
        return {str(key): int(json.loads(aws(*command, str(key)))["ContentLength"]) for key in keys}
    prefix = str(parameters.get("prefix", ""))
    command = ["s3api", "list-objects-v2", "--bucket", bucket, "--prefix", prefix, "--max-items", str(LISTED)]
    listed = json.loads(aws(*command, "--output", "json") or "{}")  # for an empty bucket the CLI may print nothing
    return {str(entry["Key"]): int(entry["Size"]) for entry in listed.get("Contents") or ()}


def spread(keys: list[str], most: int) -> list[str]:
    """Returns at most ``most`` keys, spread evenly: the same on every node."""
    count = max(1, min(most, len(keys)))
    return [keys[n * len(keys) // count] for n in range(count)]


if __name__ == "__main__":
    try:
        main()
    except CliError as failed:
        sys.exit(str(failed))
