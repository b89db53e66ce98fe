"""Counts what this process does, for the agent's reports."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Callable

from troop.work.errors import say
from troop.work.work_folder import Counts, WorkFolder


class Counters:
    """The counts of this process, from any number of threads. The first failure to store them is only reported."""

    def __init__(self, folder: WorkFolder, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock
        self._lock = threading.RLock()
        self._has_failed = False
        self._counts = Counts(done=folder.earlier())
        self._store()

    def ask(self) -> None:
        """Counts a request for a task that begins."""
        with self._lock:
            self._counts = replace(self._counts, receiving=self._counts.receiving + 1)
            self._store()

    def answer(self, sent_at: float, has_task: bool, is_empty: bool) -> None:
        """Counts the end of a request.

        Args:
            sent_at: when it began, in seconds since 1970.
            is_empty: whether the queue has answered that there is no task.
        """
        with self._lock:
            counts, idle_since = self._counts, self._counts.idle_since
            held = counts.held + has_task
            if held:
                idle_since = None
            elif is_empty and idle_since is None:
                idle_since = sent_at
            self._counts = replace(counts, receiving=counts.receiving - 1, held=held, idle_since=idle_since)
            self._store()

    def release(self, *, is_done: bool) -> None:
        """Counts a task that is no longer in hand."""
        with self._lock:
            counts = self._counts
            self._counts = replace(counts, held=counts.held - 1, done=counts.done + is_done)
            self._store()

    def now(self) -> float:
        """Returns the time in seconds since 1970."""
        return self._clock()

    def _store(self) -> None:
        try:
            self._folder.store(self._counts)
        except OSError as error:
            if not self._has_failed:
                say(f"cannot count for the agent: {error}")
            self._has_failed = True
