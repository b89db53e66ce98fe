"""Measures an operation in an open loop: operations are due at a fixed rate, however slow the earlier ones are.

Replace `operate`, and name what it does in OPERATION. Nodes have Python 3.9 and its standard library.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from troop.measure.phase_environment import Phase
from troop.measure.recorder import Recorder

OPERATION = "store"


def operate(file: int, content: bytes) -> int:
    """Stores the content until it is durable, and returns the number of bytes."""
    moved = os.pwrite(file, content, 0)
    os.fsync(file)
    return moved


def work(recorder: Recorder, schedule: Iterator[float], content: bytes) -> None:
    """Does the operations that are due. A time begins when its operation was due, not when it was sent."""
    with tempfile.TemporaryFile(dir=".") as file:
        for due in schedule:
            started = time.perf_counter()
            try:
                moved = operate(file.fileno(), content)
            except OSError as error:
                recorder.error(OPERATION, type(error).__name__, due=due)
            else:
                recorder.ok(OPERATION, time.perf_counter() - started, moved, due=due)


def main() -> None:
    parameters = Phase.of_script().parameters
    threads, content = parameters["threads"], os.urandom(parameters["bytes"])
    with ThreadPoolExecutor(threads) as pool, Recorder.of_this_phase() as recorder:
        schedule = recorder.schedule(parameters["rate"])
        for worker in [pool.submit(work, recorder, schedule, content) for _ in range(threads)]:
            worker.result()


if __name__ == "__main__":
    main()
