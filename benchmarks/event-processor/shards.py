"""The workers of a node: one process with a store of its own for each part of the keys."""

from __future__ import annotations

import json
import mmap
import multiprocessing
import os
import sqlite3
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from store import Store, StoreError, install, open_store
from stream import DamageError, Workload

SETTINGS = "event-processor.json"
"""The file with the decisions of the phase ``load`` for later phases, in the shared folder."""
LAYOUT = "layout.json"
"""The folder for the stores, which the phase ``layout`` decides."""


@dataclass(frozen=True)
class Shard:
    """The part of one worker.

    Attributes:
        folder: of the node's stores.
        shared: the folder with the record of acknowledged events.
    """

    workload: Workload
    folder: Path
    shared: Path
    store: str
    parameters: dict[str, Any]

    @property
    def name(self) -> str:
        return f"worker-{self.workload.worker}"

    def open(self, is_new: bool = False) -> Store:
        """Opens the store, or creates it.

        Raises:
            StoreError: it does not exist.
        """
        return open_store(self.store, self.folder / self.name, self.parameters, is_new)

    def acknowledged(self) -> Acknowledged:
        """Opens the record of acknowledged events."""
        return Acknowledged(self.shared / f"{self.name}.acknowledged")


class Acknowledged:
    """The number of events that a worker has committed, outside of its store. It survives the worker's end."""

    _FORM = struct.Struct("<Q")

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(self._FORM.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self._FORM.size)

    @property
    def events(self) -> int:
        return int(self._FORM.unpack_from(self._memory)[0])

    @events.setter
    def events(self, count: int) -> None:
        self._FORM.pack_into(self._memory, 0, count)


def read_parameters() -> dict[str, Any]:
    """Returns the parameters of this phase."""
    read: dict[str, Any] = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    return read


def shards(parameters: dict[str, Any], keys: int, rank: int, folder: Path) -> list[Shard]:
    """Divides the keys of a node evenly over its workers.

    Args:
        keys: of all workers of the node.
        rank: of the node; no two workers of a cell have the same number.

    Raises:
        ValueError: a parameter is out of its range.
    """
    workers = int(parameters["workers"])
    if not 1 <= workers <= MOST_WORKERS:
        raise ValueError(f"workers is {workers}: must be from 1 to {MOST_WORKERS}")
    if int(parameters["batch"]) < 1:
        raise ValueError(f"batch is {parameters['batch']}: must be at least 1 event")
    shared = Path(os.environ["TROOP_SHARED"])
    return [
        Shard(
            Workload(
                seed=int(parameters["seed"]),
                worker=rank * workers + number,
                keys=keys * (number + 1) // workers - keys * number // workers,
                new_share=float(parameters["new_share"]),
                skew=float(parameters["skew"]),
                value_bytes=int(parameters["value_bytes"]),
            ),
            folder,
            shared,
            str(parameters["store"]),
            parameters,
        )
        for number in range(workers)
    ]


MOST_WORKERS = 256
"""The most workers of a node."""


def shards_of_this_node() -> list[Shard]:
    """Returns the shards that the phase ``load`` has filled.

    Raises:
        StoreError: there was no such phase, or the store's software is missing.
    """
    parameters, shared = read_parameters(), Path(os.environ["TROOP_SHARED"])
    settings = shared / SETTINGS
    if not settings.exists():
        raise StoreError("the stores are not filled: run load.py first")
    filled = json.loads(settings.read_text(encoding="utf-8"))
    install(str(parameters["store"]), Path(os.environ["TROOP_ARTIFACTS"]), shared)
    return shards(parameters, int(filled["keys"]), int(os.environ["TROOP_RANK"]), folder_of_stores(shared))


def folder_of_stores(shared: Path) -> Path:
    """Returns the folder that the phase ``layout`` has chosen.

    Raises:
        StoreError: there was no such phase.
    """
    note = shared / LAYOUT
    if not note.exists():
        raise StoreError("there is no folder for the stores: run layout.py first")
    return Path(json.loads(note.read_text(encoding="utf-8"))["folder"])


Task = Callable[[Shard, Callable[[Any], None]], None]
"""What a worker does; it may send reports."""


def run(task: Task, parts: Sequence[Shard], report: Callable[[Shard, Any], None]) -> None:
    """Runs a task for each shard in a process of its own, and passes on what they report.

    If a worker fails, the others end at once, and so does the script.

    Raises:
        SystemExit: a worker failed; its message is in the output.
    """
    workers: dict[int, tuple[multiprocessing.Process, Shard]] = {}
    pipes: dict[Connection, Shard] = {}
    for part in parts:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        worker = multiprocessing.Process(target=_work, args=(task, part, sender), name=part.name)
        worker.start()
        sender.close()
        workers[worker.sentinel] = worker, part
        pipes[receiver] = part
    while workers or pipes:
        for ready in wait([*workers, *pipes]):
            if isinstance(ready, Connection):
                try:
                    report(pipes[ready], ready.recv())
                except EOFError:
                    del pipes[ready]
            elif isinstance(ready, int):
                worker, part = workers.pop(ready)
                worker.join()
                if worker.exitcode:
                    for other, _ in workers.values():
                        other.terminate()
                    sys.exit(f"{part.name} {_end_of(worker.exitcode)}")


def _end_of(exit_code: int) -> str:
    return f"failed with exit code {exit_code}" if exit_code > 0 else f"was killed by signal {-exit_code}"


def _work(task: Task, part: Shard, sender: Connection) -> None:
    try:
        task(part, sender.send)
    except (DamageError, StoreError, ValueError, OSError, sqlite3.Error) as error:
        print(f"{part.name}: {error}", flush=True)
        sys.exit(1)
