"""Controls the compaction of this node's server, and waits for it: as a script, until nothing is left to compact.

Parameter: ``settle_seconds``, the limit.
"""

from __future__ import annotations

import sys
import time

import stack
from stack import RefusedError, SilentError, server, this_phase

METRICS = "org.apache.cassandra.metrics:type=Compaction,name="
CALM = 3
"""Answers without pending compactions, one after another, after which a server is settled."""


def main() -> None:
    phase = this_phase()
    process, until = server.started(phase), time.monotonic() + float(phase.parameters["settle_seconds"])
    flush(phase.address)
    calm = 0
    while calm < CALM:
        if not process.is_alive:
            print(server.log_tail(phase))
            sys.exit("Cassandra has ended: see the end of its log above")
        if time.monotonic() > until:
            sys.exit(f"{pending(phase.address)} compactions are still pending: increase settle_seconds")
        calm = calm + 1 if pending(phase.address) == 0 else 0
        time.sleep(1)
    print(f"settled: {totals(phase.address)}")


def flush(address: str) -> None:
    """Writes all rows in memory to disk."""
    operation = "forceKeyspaceFlush(java.lang.String,[Ljava.lang.String;)"
    _call(address, operation, [stack.KEYSPACE, [stack.TABLE]], 600)


def compact(address: str, seconds: float) -> None:
    """Merges all files of the table into one, and returns when that is done.

    Raises:
        SilentError: it takes longer than ``seconds``. The server continues.
        RefusedError: the server refused it.
    """
    operation = "forceKeyspaceCompaction(boolean,java.lang.String,[Ljava.lang.String;)"
    _call(address, operation, [False, stack.KEYSPACE, [stack.TABLE]], seconds)


def _call(address: str, operation: str, arguments: list[object], seconds: float) -> None:
    question = {"type": "exec", "mbean": server.SERVICE, "operation": operation, "arguments": arguments}
    server.ask(address, [question], seconds)


def pending(address: str) -> int:
    """Returns the number of compactions that a server still has to do; 1 if it does not answer."""
    try:
        (value,) = server.ask(address, [server.attributes(f"{METRICS}PendingTasks", "Value")])
    except (SilentError, RefusedError) as error:
        print(error)
        return 1
    return int(value["Value"])


def totals(address: str) -> dict[str, int]:
    """Returns the compactions and the bytes that a server has compacted since its start."""
    tasks, moved = server.ask(
        address, [server.attributes(f"{METRICS}CompletedTasks", "Value"), server.count(f"{METRICS}BytesCompacted")]
    )
    return {"tasks": int(tasks["Value"]), "bytes": int(moved)}


if __name__ == "__main__":
    main()
