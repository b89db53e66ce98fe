"""Reads volumes whole, so that EBS has loaded all data of their snapshots before the first phase."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.errors import AgentError
from agent.log import say

BLOCK = 1 << 20
"""Bytes of one read."""
THREADS = 32
"""Reads at a time. The first read of a block waits for S3, so that many at a time are faster."""
SHOWN_EVERY = 60.0
"""Seconds between two lines of the log."""


class _Reading:
    """Reads all blocks of some files with several threads, until one fails or the reading is stopped."""

    def __init__(self, files: Mapping[str, int]) -> None:
        self._files = files
        self._sizes = {device: os.lseek(file, 0, os.SEEK_END) for device, file in files.items()}
        self.total, self.done = sum(self._sizes.values()), 0
        self.problem: str | None = None
        self._blocks, self._lock, self._stopped = self._all_blocks(), threading.Lock(), False

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        """Reads blocks until none is left. Called in each thread."""
        while not self._stopped:
            with self._lock:
                block = next(self._blocks, None)
            if block is None:
                return
            device, offset = block
            try:
                length = self._read(device, offset, min(BLOCK, self._sizes[device] - offset))
            except OSError as error:
                self.problem = self.problem or f"cannot read {device} at byte {offset}: {error}"
                self.stop()
                return
            with self._lock:
                self.done += length

    def _all_blocks(self) -> Iterator[tuple[str, int]]:
        """Yields blocks of all files in turn, because each volume has a throughput of its own."""
        for offset in range(0, max(self._sizes.values()), BLOCK):
            for device, size in self._sizes.items():
                if offset < size:
                    yield device, offset

    def _read(self, device: str, offset: int, length: int) -> int:
        done = 0
        while done < length:
            read = len(os.pread(self._files[device], length - done, offset + done))
            if not read:
                raise OSError(f"it ends after {offset + done} bytes, not after {self._sizes[device]}")
            done += read
        return done


def read_whole(paths: Mapping[str, Path], threads: int = THREADS, shown_every: float = SHOWN_EVERY) -> None:
    """Reads files whole; logs the progress. Has no time limit: the fleet's boot timeout ends the wait for the node.

    When the last file descriptor of a device is closed, the kernel drops its cached blocks. Phases begin without them.

    Args:
        paths: by the name of the device.

    Raises:
        AgentError: a block cannot be read.
    """
    files: dict[str, int] = {}
    started, names = time.monotonic(), ", ".join(paths)
    try:
        for device, path in paths.items():
            files[device] = os.open(path, os.O_RDONLY)
        reading = _Reading(files)
    except OSError as error:
        _close(files)
        raise AgentError(f"cannot read {names}: {error}") from None
    workers = [threading.Thread(target=reading.run, name="reader", daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        shown = started
        for worker in workers:
            while worker.is_alive():
                worker.join(0.5)
                if time.monotonic() - shown >= shown_every:
                    shown = time.monotonic()
                    say(f"has read {reading.done >> 20} of {reading.total >> 20} MiB of {names}")
    finally:
        reading.stop()
        for worker in workers:
            if worker.is_alive():
                worker.join()
        _close(files)
    if reading.problem:
        raise AgentError(reading.problem)
    say(f"has read {reading.total >> 20} MiB of {names} in {time.monotonic() - started:.0f} s")


def _close(files: Mapping[str, int]) -> None:
    for file in files.values():
        os.close(file)
