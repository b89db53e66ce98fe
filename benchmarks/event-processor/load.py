"""Fills the stores with the state of all keys, several times the node's memory.

Parameters: ``state_times_memory``, the size of the state in units of the node's memory, or ``keys`` of the node if it
is not 0; ``value_bytes``; ``cold``, whether the kernel forgets its cached pages at the end; ``workers``, ``store``,
``seed`` and the stream's parameters.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shards import SETTINGS, Shard, folder_of_stores, read_parameters, run, shards
from store import StoreError, install
from stream import initial

SPARE = 1.35
"""The space that the stores need in all, in units of the values: pages, logs and new keys."""
REPORT_SECONDS = 15.0


def memory_bytes() -> int:
    """Returns the memory of the node in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def key_count(parameters: dict[str, Any], memory: int) -> int:
    """Returns the number of keys of the node.

    Args:
        memory: of the node, in bytes.

    Raises:
        ValueError: neither ``keys`` nor ``state_times_memory`` is above 0.
    """
    keys, times = int(parameters["keys"]), float(parameters["state_times_memory"])
    if keys < 0 or times < 0 or not keys + times:
        raise ValueError(f"keys is {keys} and state_times_memory {times}: one of them must be above 0")
    return keys or int(memory * times / int(parameters["value_bytes"]))


def fill(part: Shard, send: Callable[[Any], None]) -> None:
    """Fills the store of one worker, and sends the number of values so far."""
    store = part.open(is_new=True)
    reported_at = time.monotonic()
    for count in store.load(initial(part.workload)):
        if time.monotonic() >= reported_at + REPORT_SECONDS / 3:
            reported_at = time.monotonic()
            send(count)
    store.close()
    send(part.workload.keys)


def drop_caches() -> None:
    """Lets the kernel forget its cached pages, so that the measurement begins cold."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")
    except OSError as error:
        print(f"the kernel holds cached pages, so the first minutes are too fast: {error}")


def main() -> None:
    parameters, shared = read_parameters(), Path(os.environ["TROOP_SHARED"])
    install(str(parameters["store"]), Path(os.environ["TROOP_ARTIFACTS"]), shared)
    memory = memory_bytes()
    keys = key_count(parameters, memory)
    folder = folder_of_stores(shared)
    parts = shards(parameters, keys, int(os.environ["TROOP_RANK"]), folder)
    state = keys * int(parameters["value_bytes"])
    free, due = shutil.disk_usage(folder).free, int(state * SPARE)
    if free < due:
        sys.exit(
            f"{folder} has {free:,} bytes free, and a state of {state:,} bytes needs {due:,}: use a larger volume, or "
            "a smaller state_times_memory"
        )
    print(f"{keys:,} keys, {state:,} bytes: {state / memory:.2f} times the memory; {len(parts)} workers in {folder}")
    for part in parts:
        part.acknowledged().events = 0
    began = reported_at = time.monotonic()
    filled: dict[str, int] = {}

    def report(part: Shard, count: int) -> None:
        nonlocal reported_at
        filled[part.name] = count
        if time.monotonic() >= reported_at + REPORT_SECONDS:
            reported_at = time.monotonic()
            print(f"filled {100 * sum(filled.values()) / keys:.1f} % after {reported_at - began:.0f} s", flush=True)

    run(fill, parts, report)
    print(f"filled {sum(filled.values()):,} keys in {time.monotonic() - began:.1f} s")
    if parameters["cold"]:
        drop_caches()
    (shared / SETTINGS).write_text(json.dumps({"keys": keys}), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (StoreError, ValueError) as refused:
        sys.exit(str(refused))
