"""Recording: what ends in the measured time counts, from all threads, and nothing else does."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import pytest

from troop.measure import operations
from troop.measure.operations import MOST_NAMES, Operation
from troop.measure.recorder import Recorder


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def recorder(folder: Path, clock: Clock, measured_from: float = 100.0, seconds: float = 3) -> Recorder:
    return Recorder(folder, measured_from, seconds, clock)


def written(made: Recorder) -> dict[str, Operation]:
    return operations.parse(json.loads(made.write().read_text())["operations"])


def test_the_warm_up_and_what_comes_after_do_not_count(tmp_path: Path) -> None:
    clock = Clock(0)
    made = recorder(tmp_path, clock)
    for now in (50, 99.999, 100, 101.5, 102.999, 103, 500):
        clock.now = now
        made.ok("read", 0.010, 100)
        made.error("read", "timeout")
    read = written(made)["read"]
    assert (read.times.count, read.bytes, read.errors) == (3, 300, {"timeout": 3})
    assert (read.per_second.start, read.per_second.count, read.per_second.errors) == (100, [1, 1, 1], [1, 1, 1])


def test_seconds_are_the_clocks_even_when_measuring_starts_between_two(tmp_path: Path) -> None:
    clock = Clock(101.2)
    made = recorder(tmp_path, clock, measured_from=100.5, seconds=2)
    made.ok("read", 0.001)
    clock.now = 102.4
    made.ok("read", 0.001)
    per_second = written(made)["read"].per_second
    assert (per_second.start, per_second.count) == (100, [0, 1, 1])


def test_times_are_in_microseconds(tmp_path: Path) -> None:
    made = recorder(tmp_path, Clock(100))
    made.ok("read", 0.0015)
    made.ok("read", -0.1)  # a clock that went back
    times = written(made)["read"].times
    assert (times.min, times.max) == (0, 1500)


def test_no_thread_loses_a_count(tmp_path: Path) -> None:
    interval = sys.getswitchinterval()
    made = recorder(tmp_path, Clock(101))

    def work() -> None:
        for _ in range(2000):
            made.ok("read", 0.001, 1)
            made.error("read", "reset")

    threads = [threading.Thread(target=work) for _ in range(8)]
    sys.setswitchinterval(1e-6)  # threads take turns as often as can be
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert made.totals("read") == (16_000, 16_000)
    read = written(made)["read"]
    assert (read.times.count, read.bytes, sum(read.per_second.errors)) == (16_000, 16_000, 16_000)


def test_each_recorder_has_a_file_of_its_own_and_leaves_no_half_of_one(tmp_path: Path) -> None:
    for _ in range(2):
        with recorder(tmp_path, Clock(100)) as made:
            made.ok("read", 1)
    assert len(list(tmp_path.glob("operations*.json"))) == len(list(tmp_path.iterdir())) == 2


def test_it_is_written_when_the_script_fails(tmp_path: Path) -> None:
    def script() -> None:
        with recorder(tmp_path, Clock(100)) as made:
            made.ok("read", 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        script()
    assert len(list(tmp_path.iterdir())) == 1


def test_kinds_of_errors_are_bounded(tmp_path: Path) -> None:
    made = recorder(tmp_path, Clock(100))
    for number in range(1000):
        made.error("read", f"kind-{number}")
    made.error("read", "no name: it has spaces")
    errors = written(made)["read"].errors
    assert len(errors) == MOST_NAMES
    assert sum(errors.values()) == 1001
    assert errors["other"] == 1001 - (MOST_NAMES - 1)


def test_an_operation_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'a read'"):
        recorder(tmp_path, Clock(100)).ok("a read", 1)


def test_it_knows_its_phase_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    environment = {"TROOP_RESULTS": tmp_path, "TROOP_MEASURED_FROM": now - 1, "TROOP_MEASURED_SECONDS": 3600}
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value))
    with Recorder.of_this_phase() as made:
        made.ok("read", 1)
    assert made.totals("read") == (1, 0)
    assert len(list(tmp_path.iterdir())) == 1
