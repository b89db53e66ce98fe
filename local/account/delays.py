"""Transitions that take a while, as on AWS: an instance shuts down, a group notices a loss, a group is deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Delays:
    """Delays transitions by `seconds`, and carries them out under `lock`; while they are held, none of them."""

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
        """From now on no transition is carried out."""
        self._free.clear()

    def release(self) -> None:
        """Carries out those that are due, and all others in their time."""
        self._free.set()
