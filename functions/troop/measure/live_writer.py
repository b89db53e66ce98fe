"""Writes the running summary of a script's process for the agent, in a thread."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

from troop.measure.live import FORMAT, INTERVAL_SECONDS, Recent, operations_document
from troop.measure.whole_file import write_whole

PAUSE_SECONDS: float = INTERVAL_SECONDS

_numbers = itertools.count()

Recently = Callable[[int], Recent]
"""Returns what operations did in the interval to a second, seconds since 1970."""


class LiveWriter:
    """Writes a running summary at each full interval, until the end of its ``with`` block.

    A measurement without running summaries is better than none, so an error only ends the writing.

    Args:
        results: the phase's folder; None to write nothing.
        recent: what to write; called in the thread.
        clock: seconds since 1970.
        late_seconds: how late operations are known. A collector learns of them when its tool writes.
    """

    def __init__(
        self,
        results: Path | None,
        recent: Recently,
        clock: Callable[[], float] = time.time,
        late_seconds: int = 0,
        interval: float | None = None,
    ) -> None:
        self._recent, self._clock, self._late = recent, clock, late_seconds
        self._interval = interval or PAUSE_SECONDS
        self._path = results / f"live-{os.getpid()}-{next(_numbers)}.json" if results else None
        self._over = threading.Event()

    def __enter__(self) -> LiveWriter:
        if self._path is not None:
            threading.Thread(target=self._write_all, args=(self._path,), name="live", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _write_all(self, path: Path) -> None:
        try:
            while not self._over.wait(self._interval - self._clock() % self._interval):
                until = int(self._clock()) - self._late
                write_whole(path, document_of(until, self._recent(until)))
        except Exception as error:  # noqa: BLE001
            sys.stderr.write(f"no running summaries any more: {error!r}\n")


def document_of(until: int, recent: Recent) -> dict[str, Any]:
    """Returns the document of a process, which the agent completes with facts about the node."""
    return {
        "format": FORMAT,
        "until": until,
        "seconds": recent.seconds,
        "operations": operations_document(recent.operations),
    }
