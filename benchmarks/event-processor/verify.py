"""Reads every value, and compares it with what the events must have left. Fails if any value is wrong.

The events follow from the seed, so the expected state does not depend on anything that the workers have stored. Only
the number of events comes from the store. It must be the number that the worker has acknowledged, or at most one batch
more if the worker ended between a commit and its acknowledgement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from shards import Shard, run, shards_of_this_node
from store import StoreError
from stream import Verdict, judge, replay


def check(part: Shard, send: Callable[[Any], None]) -> None:
    """Verifies the store of one worker. Sends its verdict and the number of its events."""
    store = part.open()
    committed, acknowledged = store.events(), part.acknowledged().events
    if committed < acknowledged:
        verdict = Verdict()
        verdict.reject("undone", f"{acknowledged:,} events were acknowledged, but the store has {committed:,}")
    elif committed > acknowledged + int(part.parameters["batch"]):
        verdict = Verdict()
        verdict.reject("unacknowledged", f"{acknowledged:,} events were acknowledged, but the store has {committed:,}")
    else:
        verdict = judge(replay(part.workload, committed), store.rows(), part.workload.value_bytes)
    store.close()
    send((verdict, committed))


def main() -> None:
    verified = events = 0
    damage: dict[str, int] = {}

    def report(part: Shard, judged: tuple[Verdict, int]) -> None:
        nonlocal verified, events
        verdict, committed = judged
        verified += verdict.verified
        events += committed
        for kind, count in verdict.damage.items():
            damage[kind] = damage.get(kind, 0) + count
        for example in verdict.examples:
            print(f"{part.name}: {example}", flush=True)

    run(check, shards_of_this_node(), report)
    print(f"{verified:,} values are as {events:,} events must have left them")
    if damage:
        sys.exit("the state is damaged: " + ", ".join(f"{count:,} {kind}" for kind, count in sorted(damage.items())))


if __name__ == "__main__":
    try:
        main()
    except (StoreError, ValueError) as refused:
        sys.exit(str(refused))
