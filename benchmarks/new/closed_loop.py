"""Measures an operation in a closed loop: each thread begins the next one when its last has ended.

Replace `operate`, and name what it does in OPERATION. Nodes have Python 3.9 and its standard library.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from troop.measure.phase_environment import Phase
from troop.measure.recorder import Recorder

OPERATION = "store"


def operate(file: int, content: bytes) -> int:
    """Stores the content until it is durable, and returns the number of bytes."""
    moved = os.pwrite(file, content, 0)
    os.fsync(file)
    return moved


def work(recorder: Recorder, content: bytes) -> None:
    """Repeats the operation until the measured time is over."""
    with tempfile.TemporaryFile(dir=".") as file:
        while recorder.now() < recorder.measured_until:
            started = time.perf_counter()
            try:
                moved = operate(file.fileno(), content)
            except OSError as error:
                recorder.error(OPERATION, type(error).__name__)
            else:
                recorder.ok(OPERATION, time.perf_counter() - started, moved)


def main() -> None:
    parameters = Phase.of_script().parameters
    threads, content = parameters["threads"], os.urandom(parameters["bytes"])
    with ThreadPoolExecutor(threads) as pool, Recorder.of_this_phase() as recorder:
        for worker in [pool.submit(work, recorder, content) for _ in range(threads)]:
            worker.result()


if __name__ == "__main__":
    main()
