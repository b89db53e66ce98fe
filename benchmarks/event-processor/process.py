"""Processes events as fast as it can, until the measured time is over.

Parameters: ``batch``, the events of a transaction; ``durable``, whether a commit waits for the disk; those of the
stores and of the stream.

Recorded as ``event``: the time from the read of a key's state to the end of the commit that contains the new state. So
it has the wait for the rest of its batch, because before that the event is not safe.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from shards import Shard, run, shards_of_this_node
from store import StoreError
from stream import DamageError, Stream, decode, encode, first_digest, next_digest

from troop.measure.recorder import Recorder

OPERATION = "event"


def work(part: Shard, send: Callable[[Any], None]) -> None:
    """Processes the events of one worker, from where its store ends. Sends the number of events it committed.

    Raises:
        DamageError: a value is not there, or is not what a worker has written.
    """
    store, acknowledged = part.open(), part.acknowledged()
    stream, batch, size = Stream(part.workload), int(part.parameters["batch"]), part.workload.value_bytes
    first = store.events()
    stream.skip(first)
    clock = time.perf_counter
    with Recorder.of_this_phase() as recorder:
        while recorder.now() < recorder.measured_until:
            number, known = stream.position, stream.keys
            states: dict[int, tuple[int, int]] = {}
            started: list[float] = []
            for key in stream.take(batch):
                started.append(clock())
                state = states.get(key)
                if state is None:
                    value = store.read(key)
                    if value is None and key < known:
                        raise DamageError(f"key {key} has no value")
                    state = (0, first_digest(key)) if value is None else decode(key, value)
                states[key] = state[0] + 1, next_digest(state[1], number)
                number += 1
            values = {key: encode(key, count, digest, size) for key, (count, digest) in states.items()}
            store.commit(values, stream.position)
            acknowledged.events = stream.position
            ended = clock()
            for moment in started:
                recorder.ok(OPERATION, ended - moment, size)
    store.close()
    send(stream.position - first)


def main() -> None:
    parts = shards_of_this_node()
    committed: dict[str, int] = {}

    def report(part: Shard, events: int) -> None:
        committed[part.name] = events

    run(work, parts, report)
    print(f"{len(parts)} workers committed {sum(committed.values()):,} events, with the warm-up")
    if not all(committed.values()):
        sys.exit("some worker committed nothing before the measured time was over")


if __name__ == "__main__":
    try:
        main()
    except (StoreError, ValueError) as refused:
        sys.exit(str(refused))
