"""Measures what a script's recorder costs for each operation, beside HdrHistogram's extension in C.

    python -m perf.recorder [--operations 200000] [--rounds 5] [--threads 1 8 50]

The table shows processor time. HdrHistogram takes part if its Python package ``hdrhistogram`` is installed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from statistics import median

from troop.measure.recorder import Recorder

_DRAWN = random.Random(1)
TIMES = [_DRAWN.lognormvariate(-6.2, 0.9) for _ in range(4096)]
"""Seconds, around two milliseconds."""

Operations = Callable[[int], None]


def _nanoseconds(several: Operations, operations: int, rounds: int, threads: int = 1) -> float:
    """Returns the processor time of an operation; the median of all rounds."""
    each = []
    for _ in range(rounds):
        started = [threading.Thread(target=several, args=(operations // threads,)) for _ in range(threads)]
        before = time.process_time()
        for one in started:
            one.start()
        for one in started:
            one.join()
        each.append(1e9 * (time.process_time() - before) / operations)
    return median(each)


def _loop(number: int) -> None:
    for at in range(number):
        TIMES[at & 4095]


def _recorder_operations(recorder: Recorder, is_open: bool) -> Operations:
    def several(number: int) -> None:
        ok, due = recorder.ok, recorder.now() if is_open else None
        for at in range(number):
            ok("read", TIMES[at & 4095], 1000, due)

    return several


def _hdr_histogram_operations() -> Operations | None:
    try:
        record = import_module("hdrh.histogram").HdrHistogram(1, 3_600_000_000, 3).record_value
    except ImportError:
        return None

    def several(number: int) -> None:
        for at in range(number):
            record(int(TIMES[at & 4095] * 1_000_000))

    return several


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8, 50])
    chosen = parser.parse_args()
    rest = _nanoseconds(_loop, chosen.operations, chosen.rounds)

    def show(title: str, several: Operations, threads: int = 1) -> None:
        spent = _nanoseconds(several, chosen.operations, chosen.rounds, threads) - rest
        print(f"{title:32} {threads:7} {spent:14,.0f}", flush=True)

    print(f"{'':32} {'threads':>7} {'ns an operation':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for threads in chosen.threads:
            show("Recorder.ok", _recorder_operations(Recorder(folder, time.time() - 1, 3600), is_open=False), threads)
        show("Recorder.ok with due", _recorder_operations(Recorder(folder, time.time() - 1, 3600), is_open=True))
    if peer := _hdr_histogram_operations():
        show("HdrHistogram, record_value", peer)


if __name__ == "__main__":
    main()
