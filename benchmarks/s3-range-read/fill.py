"""Creates objects to read in the cell's own part of the results bucket, for users without a bucket, and deletes them.

As the script of a phase, it deletes the objects of this node.

Parameters: ``fill_objects``, the number of objects of all nodes together, 0 for none; ``fill_kib``, the size of each.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from s3 import MOST_DELETED, Bucket, Listed, S3Error

from troop.measure.s3.credentials import CredentialsError, CredentialStore

THREADS = 16
MOST_OBJECTS, MOST_KIB = 1_000_000, 1 << 20


class FillError(Exception):
    """Objects cannot be created; the message says why."""


def count_of(parameters: Mapping[str, Any]) -> int:
    """Returns the number of objects to create; 0 if the parameters ask for none."""
    return int(parameters.get("fill_objects", 0))


def place() -> tuple[str, str]:
    """Returns the bucket in which a cell creates objects, and the beginning of their keys.

    Raises:
        FillError: the benchmark may not create objects.
    """
    bucket, _, prefix = os.environ.get("TROOP_DATA", "").partition("s3://")[2].partition("/")
    if not bucket or not prefix.endswith("/"):
        raise FillError("fill_objects needs own_data: true in the file, as --size own-data has it")
    return bucket, prefix


def bucket_of(parameters: Mapping[str, Any]) -> str:
    """Returns the name of the bucket to read."""
    return place()[0] if count_of(parameters) else str(parameters["bucket"])


def objects(parameters: Mapping[str, Any]) -> Iterator[Listed]:
    """Yields all objects, of all nodes. Their keys are known, so nobody needs to list them.

    Raises:
        FillError: a parameter is invalid.
    """
    count, kib, (_, prefix) = count_of(parameters), int(parameters.get("fill_kib", 64)), place()
    if not (0 < count <= MOST_OBJECTS and 0 < kib <= MOST_KIB):
        raise FillError(f"fill_objects is {count} and fill_kib is {kib}: at most {MOST_OBJECTS} and {MOST_KIB}")
    return (Listed(f"{prefix}{n:07d}", kib << 10) for n in range(count))


def share() -> tuple[int, int]:
    """Returns the number of this node, from 0, and the number of nodes that create objects."""
    roster = json.loads(Path(os.environ["TROOP_ROSTER"]).read_text(encoding="utf-8"))["nodes"]
    return int(os.environ["TROOP_RANK"]), sum(one["role"] == os.environ["TROOP_ROLE"] for one in roster)


def create(parameters: Mapping[str, Any], credentials: CredentialStore) -> int:
    """Creates the objects of this node, and returns their number. If it fails, it deletes them.

    Raises:
        FillError, S3Error: they could not be created.
    """
    name, prefix = place()
    rank, nodes = share()
    own = list(objects(parameters))[rank::nodes]
    probe = f"{prefix}probe-{rank}"
    one = Bucket(name, credentials)
    one.put(probe, b"")
    remove(name, credentials, [probe])  # before there is anything that could not be deleted
    body = os.urandom(own[0].size) if own else b""

    try:
        _put(name, credentials, own, body)
    except BaseException:
        remove(name, credentials, [each.key for each in own])
        raise
    return len(own)


def remove(name: str, credentials: CredentialStore, keys: Sequence[str]) -> None:
    """Deletes objects. Objects that do not exist are no error.

    Raises:
        S3Error: some could not be deleted.
    """
    bucket = Bucket(name, credentials)
    for begin in range(0, len(keys), MOST_DELETED):
        refused = bucket.delete(keys[begin : begin + MOST_DELETED])
        if refused:
            key, code = next(iter(refused.items()))
            raise S3Error(f"{name}: S3 did not delete {len(refused)} objects, such as {key!r}: {code}", code=code)


def _put(name: str, credentials: CredentialStore, own: Sequence[Listed], body: bytes) -> None:
    """Writes the same body to all objects, in several threads; raises the first error."""
    errors: list[BaseException] = []

    def run(part: Sequence[Listed]) -> None:
        bucket = Bucket(name, credentials)
        try:
            for each in part:
                if errors:
                    break
                bucket.put(each.key, body)
        except (S3Error, CredentialsError, OSError) as error:
            errors.append(error)
        finally:
            bucket.close()

    threads = [threading.Thread(target=run, args=(own[n::THREADS],)) for n in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if errors:
        raise errors[0]


def main() -> None:
    parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    if not count_of(parameters):
        print("nothing to delete: fill_objects is 0")
        return
    (rank, nodes), (name, prefix) = share(), place()
    keys = [one.key for one in objects(parameters)][rank::nodes]
    try:
        remove(name, CredentialStore(), keys)
    except (CredentialsError, S3Error) as error:
        # The measurement is complete. A failed phase would cost its results.
        print(f"{error}. Of s3://{name}/{prefix}, up to {len(keys):,} objects are left, which the teardown deletes")
        return
    print(f"deleted {len(keys):,} objects of s3://{name}/{prefix}")


if __name__ == "__main__":
    try:
        main()
    except FillError as failed:
        sys.exit(str(failed))
