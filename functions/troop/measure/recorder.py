"""What a script records its operations with, from any number of threads; each process has a recorder of its own.

    with Recorder.of_this_phase() as recorder:
        started = time.perf_counter()
        body = read(...)
        recorder.ok("read", time.perf_counter() - started, len(body))

On leaving, it writes ``operations-<process>-<number>.json`` where the agent looks for it.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any, Callable

from troop.measure.operations import MOST_NAMES, NAME, Operation, Operations, PerSecond, document_of

FORMAT = "troop.operations/1"
OTHER = "other"
"""The kind of errors that come after the first :data:`~troop.measure.operations.MOST_NAMES` kinds."""

_numbers = itertools.count()


class Recorder:
    """Counts operations that end in the measured time; those before it, the warm-up, and after it are left out.

    Args:
        results: the folder to write to.
        measured_from: seconds since 1970.
        measured_seconds: how long from then on operations count.
        clock: seconds since 1970. The default reads the time of day once and goes on by the monotonic clock, for a
            clock that is set while measuring must not move operations.
    """

    def __init__(
        self,
        results: str | os.PathLike[str],
        measured_from: float,
        measured_seconds: float,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.measured_from, self.measured_until = measured_from, measured_from + measured_seconds
        self._path = Path(results) / f"operations-{os.getpid()}-{next(_numbers)}.json"
        self._first = math.floor(measured_from)
        self._seconds = math.ceil(self.measured_until) - self._first
        self._operations: Operations = {}
        self._lock = threading.Lock()
        self.now = clock or _steady_clock()

    @classmethod
    def of_this_phase(cls) -> Recorder:
        """As the agent says in the environment of the script that it runs."""
        env = os.environ
        return cls(env["TROOP_RESULTS"], float(env["TROOP_MEASURED_FROM"]), float(env["TROOP_MEASURED_SECONDS"]))

    def ok(self, operation: str, seconds: float, moved: int = 0) -> None:
        """An operation has ended just now; it took so many seconds and moved so many bytes."""
        now = self.now()
        if self.measured_from <= now < self.measured_until:
            with self._lock:
                found = self._operation(operation)
                found.times.record(max(0, round(seconds * 1_000_000)))
                found.per_second.count[int(now) - self._first] += 1
                found.bytes += moved

    def error(self, operation: str, kind: str) -> None:
        """An operation has failed just now. The kind is a short name that others share, such as ``timeout``."""
        now = self.now()
        if self.measured_from <= now < self.measured_until:
            with self._lock:
                found = self._operation(operation)
                if kind not in found.errors and (len(found.errors) >= MOST_NAMES - 1 or not NAME.fullmatch(kind)):
                    kind = OTHER
                found.errors[kind] = found.errors.get(kind, 0) + 1
                found.per_second.errors[int(now) - self._first] += 1

    def _operation(self, name: str) -> Operation:
        if name not in self._operations:
            if len(self._operations) >= MOST_NAMES or not NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be one more operation: at most {MOST_NAMES} names, {NAME.pattern}")
            empty = PerSecond(self._first, [0] * self._seconds, [0] * self._seconds)
            self._operations[name] = Operation(per_second=empty)
        return self._operations[name]

    def totals(self, operation: str) -> tuple[int, int]:
        """How many successes and how many errors so far."""
        with self._lock:
            found = self._operations.get(operation, Operation())
            return found.times.count, sum(found.errors.values())

    def document(self) -> dict[str, Any]:
        with self._lock:
            return {"format": FORMAT, "operations": document_of(self._operations)}

    def write(self) -> Path:
        """Writes the file, whole or not at all."""
        partial = self._path.with_suffix(".part")
        partial.write_text(json.dumps(self.document(), separators=(",", ":")), encoding="utf-8")
        return partial.replace(self._path)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.write()


def _steady_clock() -> Callable[[], float]:
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset
