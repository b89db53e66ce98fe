"""Measures what running summaries cost a node: the processor time of one, and how long it stops a recorder.

python -m perf.live                       an operation, four, and the most that a node can have
python -m perf.live --operations 4 --repeat 50
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

from agent.boot import Boot
from agent.live import LiveUpload, OwnObject
from tests.unit.agent.fake_account import REGION, FakeAccount
from troop.measure.live import INTERVAL_SECONDS, Live
from troop.measure.live_writer import document_of
from troop.measure.recorder import MOST_RECORDED, Recorder
from troop.measure.s3.addresses import address_of
from troop.measure.s3.credentials import Credentials, CredentialStore
from troop.measure.whole_file import write_whole

_START = 1_000_000
_TIMES = 4000
"""Times for each operation and step: so many that nearly all of their buckets have some."""


def _busy(results: Path, operations: int) -> Recorder:
    """Returns a recorder of ten minutes, with times from 0.1 to 100 ms in the last ones."""
    now, drawn = [float(_START)], random.Random(1)
    recorder = Recorder(results, _START, 600, clock=lambda: now[0])
    for second in range(580, 600, 2):
        now[0] = _START + second
        for number in range(operations):
            for _ in range(_TIMES // 10):
                recorder.ok(f"operation-{number}", 0.0001 * 1000 ** drawn.random())
    return recorder


def _cpu_ms(repeat: int, action: object) -> float:
    assert callable(action)
    spent = []
    for _ in range(repeat):
        before = time.thread_time()
        action()
        spent.append(1000 * (time.thread_time() - before))
    return statistics.median(spent)


def measure(operations: int, repeat: int) -> None:
    """Prints the medians of ``repeat`` running summaries with so many operations."""
    account = FakeAccount()
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder)
            recorder = _busy(results, operations)
            until = _START + 598
            keys = account.credentials
            credentials = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"])
            boot = Boot("results", REGION, "run", "c001", "drivers", "0" * 64, 2e9)
            stored = OwnObject(
                boot, address_of("results", REGION, account.url), "live", lambda: CredentialStore(lambda: credentials)
            )
            blank = Live("i-1", "drivers", "measure", 0, 0, float(_START), 600.0)
            upload = LiveUpload(blank, results, lambda _: (500, 20), stored.put, clock=lambda: float(until))
            stops = _cpu_ms(repeat, lambda: recorder.recent(until))
            writes = _cpu_ms(
                repeat, lambda: write_whole(results / "live-1-0.json", document_of(until, recorder.recent(until)))
            )
            uploads = _cpu_ms(repeat, upload.upload)
    finally:
        account.close()
    share = (writes + uploads) / (1000 * INTERVAL_SECONDS)
    print(
        f"{operations:>10} {stops:>10.2f} {writes:>10.2f} {uploads:>10.2f} {100 * share:>12.4f} %",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perf.live", description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, help="number of operations (default: 1, 4 and the most)")
    parser.add_argument("--repeat", type=int, default=100, help="summaries to measure (default 100)")
    chosen = parser.parse_args()
    assert threading.active_count() == 1
    print("Processor time in ms of one running summary; its share of one processor, once in 15 s")
    print("operations   stopped    written   uploaded      share")
    for operations in [chosen.operations] if chosen.operations else [1, 4, MOST_RECORDED]:
        measure(operations, chosen.repeat)


if __name__ == "__main__":
    main()
