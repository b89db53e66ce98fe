"""Compacts or repairs the table of this node's server while drivers send requests, again and again.

Parameter: ``maintenance``: none, compaction or repair. A repair covers the rows of this server's primary range.
Recorded under the same name: how long each compaction or repair took that ended in the measured time; and those that
failed, as errors of the kind ``failed``.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import server
from node import Phase
from server import RefusedError, SilentError

from troop.measure.operations import Operation, PerSecond

NONE, COMPACTION, REPAIR = "none", "compaction", "repair"
KEYSPACE, TABLE = "keyspace1", "standard1"
_OPTIONS = {"incremental": "false", "primaryRange": "true", "columnFamilies": TABLE}


class Maintenance:
    """Repeats a task on this node's server, from :meth:`start` to :meth:`stop`, in a thread of its own."""

    def __init__(self, phase: Phase) -> None:
        self._phase, self._task = phase, str(phase.parameters.get("maintenance", NONE))
        self._ended: list[tuple[float, float, str]] = []
        self._over = threading.Event()

    def start(self) -> None:
        if self._task != NONE:
            threading.Thread(target=self._repeat, daemon=True).start()

    def stop(self) -> dict[str, Operation]:
        """Returns the tasks that ended in the measured time, and prints them; the server continues the last one."""
        self._over.set()
        if self._task == NONE:
            return {}
        first = math.floor(self._phase.measured_from)
        length = math.ceil(self._phase.measured_from + self._phase.measured_seconds) - first
        result = Operation(per_second=PerSecond(first, [0] * length, [0] * length))
        for end, seconds, problem in list(self._ended):
            print(f"{self._task}: {seconds:.1f} s{problem}")
            second = min(max(int(end) - first, 0), length - 1)
            if not problem:
                result.times.record(round(seconds * 1e6))
                result.per_second.count[second] += 1
            else:
                result.errors["failed"] = result.errors.get("failed", 0) + 1
                result.per_second.errors[second] += 1
        return {self._task: result}

    def _repeat(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            try:
                if self._task == COMPACTION:
                    compact(self._phase)
                else:
                    repair(self._phase, self._over)
                problem = ""
            except (SilentError, RefusedError) as error:
                problem = f": {error}"
            seconds = time.monotonic() - began
            if not self._over.is_set():
                self._ended.append((time.time(), seconds, problem))  # no print: the script may end meanwhile
            self._over.wait(1)


def compact(phase: Phase) -> None:
    """Writes the rows in memory to disk, and merges all files of the table into one."""
    seconds = phase.measured_seconds + 60
    _call(phase, "forceKeyspaceFlush(java.lang.String,[Ljava.lang.String;)", [KEYSPACE, [TABLE]], seconds)
    operation = "forceKeyspaceCompaction(boolean,java.lang.String,[Ljava.lang.String;)"
    _call(phase, operation, [False, KEYSPACE, [TABLE]], seconds)


def repair(phase: Phase, over: threading.Event) -> None:
    """Repairs the server's primary range; returns early if ``over`` is set.

    Raises:
        RefusedError: the repair failed.
    """
    number = _call(phase, "repairAsync(java.lang.String,java.util.Map)", [KEYSPACE, _OPTIONS])
    while number and not over.wait(0.5):
        status, *messages = _call(phase, "getParentRepairStatus(int)", [number]) or ["IN_PROGRESS"]
        if status == "COMPLETED":
            return
        if status == "FAILED":
            raise RefusedError("; ".join(messages) or "the repair failed")


def _call(phase: Phase, operation: str, arguments: list[object], seconds: float = server.SECONDS) -> Any:
    question = {"type": "exec", "mbean": server.SERVICE, "operation": operation, "arguments": arguments}
    return server.ask(phase.address, [question], seconds)[0]
