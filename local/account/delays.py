"""Delays transitions as on AWS: shutdowns of instances, the notice of a loss, deletions of groups."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Delays:
    """A scheduler that runs transitions after `seconds`, under `lock`, and not while they are held."""

    def __init__(self, seconds: float, lock: threading.RLock) -> None:
        self._seconds, self._lock = seconds, lock
        self._free = threading.Event()
        self._free.set()

    def later(self, transition: Callable[[], None]) -> None:
        def run() -> None:
            self._free.wait()
            with self._lock:
                transition()

        timer = threading.Timer(self._seconds, run)
        timer.daemon = True
        timer.start()

    def hold(self) -> None:
        """Suspends all transitions."""
        self._free.clear()

    def release(self) -> None:
        """Resumes transitions: runs due ones at once, and others on time."""
        self._free.set()
