"""Recording: what ends in the measured time counts, from all threads, and nothing else does."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.measure import operations
from troop.measure.histogram import HIGHEST, Histogram
from troop.measure.operations import MOST_FAILURES, Operation, PerSecond
from troop.measure.recorder import Recorder
from troop.measure.windows import Windows, step_for


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def recorder(
    folder: Path, clock: Clock, measured_from: float = 100.0, seconds: float = 3, warm_up: float = 0
) -> Recorder:
    return Recorder(folder, measured_from, seconds, clock, warm_up)


def written(counter: Recorder) -> dict[str, Operation]:
    return operations.parse(json.loads(counter.write().read_text())["operations"])


def test_the_warm_up_shows_over_time_and_nowhere_else(tmp_path: Path) -> None:
    """It is over, and the measured time begins, within a second."""
    clock = Clock(0)
    counter = recorder(tmp_path, clock, measured_from=100.5, seconds=2, warm_up=2)
    for now in (98.49, 98.5, 100.4, 100.5, 100.6, 102.4, 102.5):
        clock.now = now
        counter.ok("read", round(now) / 1_000_000, 100)
        counter.error("read", f"at-{now}")
    assert counter.totals("read") == (3, 3)
    read = written(counter)["read"]
    assert (read.times.count, read.bytes, sorted(read.errors)) == (3, 300, ["at-100.5", "at-100.6", "at-102.4"])
    assert read.per_second == PerSecond(98, [1, 0, 3, 0, 1], [1, 0, 3, 0, 1])
    assert read.over_time is not None
    assert read.over_time.start == 98
    assert [read.over_time.count(step) for step in range(5)] == [1, 0, 3, 0, 1]


def test_an_operation_of_the_warm_up_alone_has_no_totals(tmp_path: Path) -> None:
    counter = recorder(tmp_path, Clock(99), warm_up=2)
    counter.ok("connect", 0.001, 100)
    counter.error("connect", "timeout")
    connect = written(counter)["connect"]
    assert (connect.times.count, connect.bytes, connect.errors) == (0, 0, {})
    assert sum(connect.per_second.count) == sum(connect.per_second.errors) == 1


EVENTS = st.lists(
    st.tuples(
        st.one_of(st.floats(95, 108), st.floats(95, 1000)),  # the moment; they need not be in order
        st.sampled_from(["read", "write", "read", "snapshot"]),
        st.one_of(st.integers(-5, 2_000_000), st.sampled_from([HIGHEST, HIGHEST + 1, 10**15, 10**18])),  # microseconds
        st.integers(0, 1000),
        st.sampled_from([1, 1, 700]),
    ),
    max_size=20,
)


@given(EVENTS, st.floats(0, 5), st.integers(1, 800), st.booleans())
def test_recorder_counts_as_if_each_operation_were_counted_alone(
    events: list[tuple[float, str, int, int, int]], warm_up: float, seconds: int, is_open: bool
) -> None:
    """In whatever order threads come to count, however many come in a step, and whenever somebody looks."""
    clock = Clock(0)
    counter = recorder(Path(), clock, measured_from=100.25, seconds=seconds, warm_up=warm_up)
    step = step_for(seconds + warm_up)
    expected: dict[str, _Counted] = {}
    for now, name, micros, moved, times in events:
        clock.now = now
        in_phase = 100.25 - warm_up <= now < 100.25 + seconds
        measured = in_phase and now >= 100.25
        if name == "snapshot":
            assert counter.totals("read")[0] == (expected["read"].times.count if "read" in expected else 0)
            continue
        if in_phase:
            total = expected.setdefault(name, _Counted(Windows(int(100.25 - warm_up), step)))
        due = now - 0.001 if is_open and name == "read" else None
        service = max(0, round(micros / 1_000_000 * 1_000_000))
        if in_phase and service > HIGHEST:
            with pytest.raises(ValueError, match="cannot record"):
                counter.ok(name, micros / 1_000_000, moved, due)
            continue
        for _ in range(times):
            counter.ok(name, micros / 1_000_000, moved, due)
        if not in_phase:
            continue
        response = service if due is None else max(service, round((now - due) * 1_000_000))
        total.over_time.record(now, response, times)
        total.per_second[int(now)] += times
        if measured:
            total.times.record(response, times)
            total.bytes += times * moved
            if due is not None:
                total.service.record(service, times)
    recorded = operations.parse(counter.document()["operations"])
    assert recorded.keys() == expected.keys()
    for name, total in expected.items():
        one = recorded[name]
        assert one.times == total.times
        assert (one.over_time or total.over_time) == total.over_time
        assert (one.over_time is None) == (total.over_time.steps == 0)
        assert one.bytes == total.bytes
        assert (one.service or Histogram()) == total.service
        assert {
            n: count for n, count in enumerate(one.per_second.count, one.per_second.start) if count
        } == total.per_second


@dataclass
class _Counted:
    """What a success after the other was counted to."""

    over_time: Windows
    times: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    per_second: Counter[int] = field(default_factory=Counter)
    bytes: int = 0


@pytest.mark.parametrize(
    ("seconds", "moved", "error"),
    [
        (float("nan"), 0, ValueError),
        (float("inf"), 0, OverflowError),
        (1e12, 0, ValueError),
        ("1", 0, TypeError),
        (0.1, None, TypeError),
    ],
)
def test_the_caller_learns_of_what_cannot_be_counted_and_the_rest_counts(
    tmp_path: Path, seconds: Any, moved: Any, error: type[Exception]
) -> None:
    counter = recorder(tmp_path, Clock(101))
    counter.ok("read", 0.001, 1)
    with pytest.raises(error):
        counter.ok("read", seconds, moved)
    counter.ok("read", 0.001, 1)
    read = written(counter)["read"]
    assert (read.times.count, read.bytes, read.per_second.count) == (2, 2, [0, 2, 0])


def test_times_are_in_microseconds(tmp_path: Path) -> None:
    counter = recorder(tmp_path, Clock(100))
    counter.ok("read", 0.0015)
    counter.ok("read", -0.1)  # a clock that went back
    times = written(counter)["read"].times
    assert (times.min, times.max) == (0, 1500)


def test_no_thread_loses_a_count(tmp_path: Path) -> None:
    interval = sys.getswitchinterval()
    counter = recorder(tmp_path, Clock(101))

    def work() -> None:
        for _ in range(2000):
            counter.ok("read", 0.001, 1)
            counter.error("read", "reset")

    def read_totals() -> None:
        for _ in range(300):
            seen.append(counter.totals("read")[0])
            counter.recent(103)

    seen: list[int] = []
    threads = [threading.Thread(target=work) for _ in range(8)] + [threading.Thread(target=read_totals)]
    sys.setswitchinterval(1e-6)  # threads take turns as often as can be
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert counter.totals("read") == (16_000, 16_000)
    assert seen == sorted(seen)
    read = written(counter)["read"]
    assert (read.times.count, read.bytes, sum(read.per_second.errors)) == (16_000, 16_000, 16_000)


def test_a_missed_schedule_shows_as_response_time_and_not_as_service_time(tmp_path: Path) -> None:
    """One operation stalls for a second. Those that were due meanwhile take 1 ms each, and users waited for them."""
    clock = Clock(100.0)
    counter = recorder(tmp_path, clock)
    for n, seconds in enumerate([1.0, 0.001, 0.001, 0.001]):
        due = 100 + n * 0.25
        clock.now = max(clock.now, due) + seconds
        counter.ok("read", seconds, due=due)
    read = written(counter)["read"]
    assert read.timing == "response"
    assert read.service is not None
    assert (read.service.count, read.service.max, read.service.percentile(50)) == (4, 1_000_000, 1_000)
    assert read.times.count == 4
    assert read.times.percentile(50) == pytest.approx(502_000, rel=0.001)
    assert read.times.percentile(75) == pytest.approx(751_000, rel=0.001)
    assert read.over_time is not None
    assert read.over_time.buckets > 1


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(-1, 3)), max_size=20))
def test_no_response_is_faster_than_its_service(tmp_path_factory: pytest.TempPathFactory, each: list[Any]) -> None:
    """Also if an operation was sent before it was due."""
    clock = Clock(101.0)
    counter = recorder(tmp_path_factory.mktemp("results"), clock)
    for seconds, waited in each:
        counter.ok("read", seconds, due=clock.now - seconds - waited)
    for read in written(counter).values():
        service = read.service or Histogram()
        assert service.count == read.times.count == len(each)
        assert all((read.times.percentile(p) or 0) >= (service.percentile(p) or 0) for p in (1, 50, 99, 100))


def test_service_times_of_the_warm_up_do_not_count(tmp_path: Path) -> None:
    clock = Clock(95.0)
    counter = recorder(tmp_path, clock, warm_up=10)
    counter.ok("read", 0.5, due=94.0)
    clock.now = 101.0
    counter.ok("read", 0.25, due=100.0)
    read = written(counter)["read"]
    assert read.service is not None
    assert (read.service.count, read.times.count) == (1, 1)


def test_times_without_due_are_service_times(tmp_path: Path) -> None:
    clock = Clock(101.0)
    counter = recorder(tmp_path, clock)
    counter.ok("read", 0.5)
    counter.error("write", "timeout")
    its = written(counter)
    assert (its["read"].timing, its["read"].service) == ("service", None)
    assert its["write"].timing is None


@pytest.mark.parametrize("first", [None, 100.5])
def test_an_operation_is_due_always_or_never(tmp_path: Path, first: float | None) -> None:
    clock = Clock(101.0)
    counter = recorder(tmp_path, clock)
    counter.ok("read", 0.1, due=first)
    with pytest.raises(ValueError, match="cannot record 'read' with due and without: use two names"):
        counter.ok("read", 0.1, due=100.5 if first is None else None)
    assert written(counter)["read"].times.count == 1


def test_the_schedule_of_a_recorder_ends_with_the_measured_time_on_its_clock(tmp_path: Path) -> None:
    clock = Clock(102.5)
    its = iter(recorder(tmp_path, clock).schedule(per_second=4))
    assert next(its) == 102.5
    clock.now = 102.9
    assert next(its) == 102.75
    clock.now = 103.0
    assert list(its) == []


def stalled(counter: Recorder, clock: Clock, **its: Any) -> None:
    """4 operations a second of 10 ms each, until one lasts from 101.5 to beyond the end: 6 of 12 were due."""
    for due in counter.schedule(per_second=4):
        clock.now = 103.2 if due == 101.5 else due + 0.01
        if its.get("fails"):
            counter.error("read", "timeout", **({"due": due} if its["fails"] == "with due" else {}))
        else:
            counter.ok("read", 0.01, due=due)
        clock.now = max(clock.now, min(due + 0.25, 102.999))


@pytest.mark.parametrize("fails", [None, "alone", "with due"])
def test_operations_that_were_due_and_never_ended_are_errors(tmp_path: Path, fails: str | None) -> None:
    clock = Clock(100.0)
    counter = recorder(tmp_path, clock)
    stalled(counter, clock, fails=fails)
    for _ in range(2):
        read = written(counter)["read"]
        assert (read.times.count, read.errors.get("timeout", 0)) == ((0, 6) if fails else (6, 0))
        assert read.errors["unfinished"] == 6
        assert read.per_second.errors == ([4, 2, 6] if fails else [0, 0, 6])


def test_operations_that_are_under_way_at_the_end_are_no_errors(tmp_path: Path) -> None:
    """Two threads, and each operation takes 0.4 s."""
    clock = Clock(100.0)
    counter = recorder(tmp_path, clock)
    its = counter.schedule(per_second=4)
    under_way = [next(its)]
    for n in range(1, 12):
        clock.now = 100 + n / 4
        under_way.append(next(its))
        clock.now += 0.15
        counter.ok("read", 0.4, due=under_way.pop(0))
    clock.now = 103.1
    assert list(its) == []
    assert written(counter)["read"].errors == {}


def test_a_moment_that_no_thread_got_in_time_is_an_error(tmp_path: Path) -> None:
    """An operation without a name is counted apart, and a schedule that the script left has no end."""
    clock = Clock(100.0)
    counter = recorder(tmp_path, clock)
    next(counter.schedule(per_second=100))
    counter.error("connect", "refused")
    for due in counter.schedule(per_second=1):
        counter.ok("read", 0.01, due=due)
        clock.now = due + 1 if due < 101 else 103
    its = written(counter)
    assert (its["connect"].errors, its["read"].errors, its["unfinished"].errors) == (
        {"refused": 1},
        {},
        {"unfinished": 1},
    )


def test_a_closed_loop_has_no_unfinished_operations(tmp_path: Path) -> None:
    clock = Clock(100.0)
    counter = recorder(tmp_path, clock)
    counter.ok("read", 0.01)
    clock.now = 104.0
    counter.ok("read", 4.0)
    assert written(counter)["read"].errors == {}


def test_threads_of_a_pool_end_operations_of_another_thread(tmp_path: Path) -> None:
    clock = Clock(100.0)
    counter = recorder(tmp_path, clock)
    its = counter.schedule(per_second=4)
    dues = []
    for n in range(6):
        clock.now = 100 + n / 4
        dues.append(next(its))
    workers = [threading.Thread(target=counter.error, args=("read", "timeout")) for _ in dues[:2]]
    workers += [threading.Thread(target=counter.ok, args=("read", 0.01), kwargs={"due": due}) for due in dues[2:5]]
    for worker in workers:
        worker.start()
        worker.join()
    clock.now = 103.0
    assert list(its) == []
    read = written(counter)["read"]
    assert read.errors == {"timeout": 2, "unfinished": 4}, "those due before 102.25: others took 0.75 s, too"


def test_a_recorder_names_the_tool_that_measures(tmp_path: Path) -> None:
    counter = Recorder(tmp_path, 100.0, 3, Clock(101.0), tool="Locust")
    counter.ok("read", 0.1)
    assert written(counter)["read"].tools == {"Locust"}
    with pytest.raises(ValueError, match="tool is 'a b'"):
        Recorder(tmp_path, 100.0, 3, tool="a b")


def test_each_recorder_has_a_file_of_its_own_and_leaves_no_half_of_one(tmp_path: Path) -> None:
    for _ in range(2):
        with recorder(tmp_path, Clock(100)) as counter:
            counter.ok("read", 1)
    assert len(list(tmp_path.glob("operations*.json"))) == len(list(tmp_path.iterdir())) == 2


def test_operations_are_written_when_the_script_fails(tmp_path: Path) -> None:
    def script() -> None:
        with recorder(tmp_path, Clock(100)) as counter:
            counter.ok("read", 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        script()
    assert len(list(tmp_path.iterdir())) == 1


def test_kinds_of_errors_are_bounded(tmp_path: Path) -> None:
    counter = recorder(tmp_path, Clock(100))
    for number in range(1000):
        counter.error("read", f"kind-{number}")
    counter.error("read", "no name: it has spaces")
    errors = written(counter)["read"].errors
    assert len(errors) == MOST_FAILURES - 1  # one more is kept for unfinished operations
    assert sum(errors.values()) == 1001
    assert errors["other"] == 1001 - (MOST_FAILURES - 2)


def test_an_operation_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'a read'"):
        recorder(tmp_path, Clock(100)).ok("a read", 1)


def test_recorder_reads_its_phase_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    environment = {"RESULTS": tmp_path, "MEASURED_FROM": now + 1800, "MEASURED_SECONDS": 60, "WARM_UP_SECONDS": 3600}
    for name, value in environment.items():
        monkeypatch.setenv(f"TROOP_{name}", str(value))
    with Recorder.of_this_phase() as counter:
        counter.ok("read", 1)
    assert counter.totals("read") == (0, 0), "it is warming up"
    assert sum(written(counter)["read"].per_second.count) == 1
    assert len(list(tmp_path.iterdir())) == 1
