"""Runs a measured phase: drivers send the load, services count their steps, and servers compact if the point says so.

Parameter: ``compact``, whether each server merges all its files during the measured time, again and again.

Services record, apart for each node: ``cache-hit``, ``cache-miss``, ``cache-fill`` and ``cache-update`` of the cache,
``select`` and ``insert`` of Cassandra. Servers record ``compaction``: compactions, and the bytes they have read.
If a server, a service or a cache has died, the script ends with the code that makes the cell invalid.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import compaction
import drive
import serve
from stack import LOST, Phase, RefusedError, SilentError, this_phase

from troop.measure.separate import FORMAT
from troop.measure.whole_file import write_whole


def main() -> None:
    phase = this_phase()
    if phase.role == "drivers":
        drive.main()
        return
    read = {"servers": compacted, "service": steps}.get(phase.role)
    wait(phase, phase.measured_from)
    before = read(phase) if read else {}
    stop = threading.Event()
    compactions: list[str] = []
    compacting = threading.Thread(target=compact, args=(phase, stop, compactions), daemon=True)
    if phase.role == "servers" and phase.parameters["compact"]:
        compacting.start()
    wait(phase, phase.measured_from + phase.measured_seconds)
    after = read(phase) if read else {}
    stop.set()
    print("".join(compactions[:]), end="")
    rows = [row(name, old, new, phase.measured_seconds) for (name, old), new in zip(before.items(), after.values())]
    if rows:
        tool = {"servers": "cassandra", "service": drive.TOOL}[phase.role]
        document = {"format": FORMAT, "tool": tool, "rows": rows}
        write_whole(phase.results / f"separate-{os.getpid()}.json", document)
    print(json.dumps(rows))


def wait(phase: Phase, moment: float) -> None:
    """Waits until a moment, and ends the script if what runs on this node dies before."""
    while True:
        if problem := serve.has_ended(phase):
            print(problem)
            print(f"the {phase.role} on {phase.address} has died")
            sys.exit(LOST)
        if (left := moment - time.time()) <= 0:
            return
        time.sleep(min(left, 0.5))


def steps(phase: Phase) -> dict[str, dict[str, int]]:
    """Returns the counters of this node's service."""
    answer: dict[str, dict[str, int]] = _certainly(lambda: json.loads(serve.get(phase.address, "stats")))
    return answer


def compacted(phase: Phase) -> dict[str, dict[str, int]]:
    """Returns the counters of this node's server."""
    totals = _certainly(lambda: compaction.totals(phase.address))
    return {"compaction": {"count": totals["tasks"], "bytes": totals["bytes"]}}


def _certainly(ask: Callable[[], Any], tries: int = 20) -> Any:
    for number in range(tries):
        try:
            return ask()
        except (OSError, SilentError, RefusedError) as error:
            print(error)
            if number == tries - 1:
                sys.exit(LOST)
            time.sleep(0.5)


def row(name: str, before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> dict[str, Any]:
    """Returns the growth of counters as a row of separate results."""
    grown = {key: after[key] - before[key] for key in after}
    count = max(0, grown["count"])
    result: dict[str, Any] = {"operation": name, "count": count, "per_second": count / seconds}
    if grown.get("errors"):
        result["errors"] = {"failed": grown["errors"]}
    if count and "nanoseconds" in grown:
        result["mean_ms"] = grown["nanoseconds"] / count / 1e6
    if "bytes" in grown:
        result["bytes_per_second"] = grown["bytes"] / seconds
    return result


def compact(phase: Phase, stop: threading.Event, log: list[str]) -> None:
    """Merges the files of this node's server until the measured time is over.

    Args:
        log: gets a line for each time. A thread that prints while the script ends would abort it.
    """
    while not stop.is_set():
        began = time.monotonic()
        try:
            compaction.compact(phase.address, phase.measured_seconds)
        except (SilentError, RefusedError) as error:
            log.append(f"compaction: {error}\n")
        log.append(f"compaction: {time.monotonic() - began:.1f} s\n")
        stop.wait(1)


if __name__ == "__main__":
    main()
