"""Running summaries: what they count, how they add up, who writes them, and that results do not depend on them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE, eventually
from troop.measure import hdr_live, hdr_log, live, live_writer
from troop.measure.collectors import jtl, k6
from troop.measure.collectors.common import Problems
from troop.measure.collectors.window import Counted, Window
from troop.measure.live import Live, LiveError, LiveOperation, Recent, bounded, parse, recent, sum_of
from troop.measure.live_writer import LiveWriter
from troop.measure.phase_environment import Measured
from troop.measure.recorder import Recorder
from troop.measure.windows import BUCKETS, Windows, coarse

START = 1_000_000


def counted(seconds: int = 600) -> Counted:
    return Counted(Window(START, START + seconds))


def test_live_figures_count_the_operations_of_the_last_interval() -> None:
    totals = counted()
    for second, micros in ((14, 10_000), (15, 20_000), (29, 30_000), (30, 40_000)):
        totals.ok("read", START + second + 0.5, micros)
    totals.error("read", START + 20, "timeout", 3)
    totals.error("read", START + 31, "timeout")
    seconds, operations = recent(totals.operations, START + 30)
    (one,) = operations.values()
    assert seconds == 15
    assert (one.count, one.errors) == (2, 3)
    expected = Windows(START, 2)
    for micros in (10_000, 20_000, 30_000):  # steps of two seconds: the one from 14 is whole
        expected.record(START, micros)
    assert one.times == expected.buckets_within(START, 2)


def test_live_figures_have_totals_of_the_measured_time() -> None:
    totals = Counted(Window(START, START + 600, 30))
    for second, micros in ((-5, 1_000), (1, 10_000), (2, 10_001), (300, 20_000)):
        totals.ok("read", START + second + 0.5, micros)
    totals.error("read", START + 3, "timeout", 3)
    one = recent(totals.operations, START + 301).operations["read"]
    expected = Windows(START, 600)
    for micros in (10_000, 10_001, 20_000):
        expected.record(START, micros)
    assert (one.measured, one.failed) == (expected.buckets_within(START - START % 600, 1200), 3)


def test_a_recorder_tells_the_same_without_reading_all_times_again(tmp_path: Path) -> None:
    now = [float(START)]
    recorder = Recorder(tmp_path, START + 10, 600, clock=lambda: now[0], warm_up_seconds=10)
    for second in range(0, 45, 2):
        now[0] = START + second + 0.5
        recorder.ok("read", 0.001 * (second + 1))
        one = recorder.recent(START + second + 1).operations["read"]
        assert one.measured == coarse(recorder._settled()["read"].times)
    assert sum(one.measured.values()) == 18


def test_long_phases_have_times_of_their_last_whole_step() -> None:
    totals = counted(6 * 3600)
    totals.ok("read", START + 30, 5_000)
    totals.ok("read", START + 170, 9_000)
    step = totals.operations["read"].over_time
    assert step is not None
    until = (START // step.step_seconds + 2) * step.step_seconds + 7
    one = recent(totals.operations, until).operations["read"]
    assert sum(one.times.values()) == 1
    assert recent(totals.operations, until - step.step_seconds).operations["read"].times != one.times


def test_before_the_first_operation_there_is_nothing() -> None:
    assert recent({}, START) == (0, {})
    totals = counted()
    totals.ok("read", START + 100, 1)
    assert recent(totals.operations, START - 50) == (0, {"read": LiveOperation(measured={1: 1})})


@given(st.integers(1, 40), st.floats(0, 30), st.floats(0.5, 60), st.floats(0, 0.9), st.randoms(use_true_random=False))
def test_constant_load_has_its_rate_in_every_interval(
    rate: int, after: float, lasts: float, fraction: float, dice: random.Random
) -> None:
    """Neither the measured time nor the load begins with a whole second."""
    window = Window(START + fraction, START + fraction + after + lasts)
    totals, begin = Counted(window), window.start + after
    for n in range(int(lasts * rate)):
        if dice.random() < 0.7:
            totals.ok("read", begin + (n + 0.5) / rate, 1000)
        else:
            totals.error("write", begin + (n + 0.5) / rate, "timeout")
    for until in range(int(begin) + 2, int(window.end) + 1):
        seconds, operations = recent(totals.operations, until)
        number = sum(one.count + one.errors for one in operations.values())
        assert abs(number - rate * seconds) <= 1


NUMBERS = st.integers(0, 1000)
OPERATIONS = st.dictionaries(
    st.sampled_from([f"op{n}" for n in range(40)] + ["other"]),
    st.builds(
        LiveOperation, count=NUMBERS, errors=NUMBERS, times=st.dictionaries(st.integers(0, BUCKETS - 1), NUMBERS)
    ),
)


def totals_of(operations: dict[str, LiveOperation]) -> tuple[int, int, dict[int, int]]:
    total = LiveOperation()
    for one in operations.values():
        total.add(one)
    return total.count, total.errors, total.times


@given(OPERATIONS)
def test_bounding_loses_no_operation(operations: dict[str, LiveOperation]) -> None:
    fewer = bounded(operations)
    assert len(fewer) <= live.MOST_OPERATIONS
    assert totals_of(fewer) == totals_of(operations)
    listed = [one.count + one.errors for name, one in fewer.items() if name != "other"]
    left_out = [one.count + one.errors for name, one in operations.items() if name not in fewer]
    assert not left_out or min(listed) >= max(left_out)


@given(OPERATIONS, OPERATIONS)
def test_the_sum_counts_everything(mine: dict[str, LiveOperation], others: dict[str, LiveOperation]) -> None:
    both = LiveOperation(*totals_of(mine)[:2], dict(totals_of(mine)[2]))
    both.add(LiveOperation(*totals_of(others)))
    assert totals_of(sum_of(mine, others)) == (both.count, both.errors, both.times)


def blank(**fields: Any) -> Live:
    return Live(**{"node": "i-1", "role": "drivers", "phase": "measure", "until": START, "seconds": 15, **fields})


@given(OPERATIONS, st.none() | st.integers(0, 1000))
def test_a_document_is_read_as_it_was_written(operations: dict[str, LiveOperation], cpu: int | None) -> None:
    one = blank(measured_from=1.5, measured_seconds=60.0, cpu=cpu, operations=operations)
    assert parse(json.loads(json.dumps(one.document()))) == one


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "troop.live/2"}, "format"),
        ({"node": ""}, "node"),
        ({"until": True}, "until"),
        ({"until": -1}, "until"),
        ({"measured_from": float("nan")}, "measured_from"),
        ({"measured_seconds": "60"}, "measured_seconds"),
        ({"cpu": 1001}, "cpu"),
        ({"operations": []}, "operations"),
        ({"operations": {"a b": {}}}, "operations"),
        ({"operations": {"a": {"count": 1, "errors": 0, "times": [[1]]}}}, "times"),
        ({"operations": {"a": {"count": 1, "errors": 0, "times": [[BUCKETS, 1]]}}}, "bucket"),
        ({"operations": {"a": {"count": 1.0, "errors": 0, "times": []}}}, "count"),
        ({"operations": {"a": {"count": 1, "errors": 0, "times": [], "measured": {}}}}, "measured of a"),
        ({"operations": {"a": {"count": 1, "errors": 0, "times": [], "failed": -1}}}, "failed"),
    ],
)
def test_other_documents_are_refused(change: dict[str, Any], problem: str) -> None:
    document = blank(measured_from=0.0, measured_seconds=0.0).document()
    with pytest.raises(LiveError, match=problem):
        parse({**document, **change})


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_writer, "PAUSE_SECONDS", 0.05)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob(live.FILES))


def test_a_recorder_writes_running_summaries(soon: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setenv("TROOP_MEASURED_FROM", str(time.time()))
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "600")
    with Recorder.of_this_phase() as recorder:
        recorder.ok("read", 0.001)

        def summary() -> bool:
            written = [json.loads(path.read_text())["operations"].get("read", {}) for path in files(tmp_path)]
            return any(one.get("count") == 1 for one in written)

        eventually(summary)
    (path,) = files(tmp_path)
    assert recorder._live._over.is_set()
    assert path.name.startswith("live-")


def test_results_do_not_depend_on_running_summaries(tmp_path: Path) -> None:
    now = [float(START)]
    watched, alone = (Recorder(tmp_path, START, 60, clock=lambda: now[0], warm_up_seconds=10) for _ in range(2))
    for second in range(-10, 60):
        for part in range(4):
            now[0] = START + second + part / 4
            for one in (watched, alone):
                one.ok("read", 0.001 * (second + 20), 7)
                one.error("write", "timeout")
            watched.recent(int(now[0]))
    assert watched.document() == alone.document()


def test_nobody_writes_without_a_folder_and_an_error_ends_only_the_writing(
    soon: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: int) -> Recent:
        raise RuntimeError("dictionary changed size")

    with LiveWriter(None, fails), LiveWriter(tmp_path, fails):
        eventually(lambda: "no running summaries any more" in capsys.readouterr().err)
    assert files(tmp_path) == []


JTL = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes\n"


@pytest.mark.slow
def test_collectors_write_them_while_their_tool_runs(soon: None, tmp_path: Path) -> None:
    begin = int(time.time())
    window = Window(begin - 60, begin + 600)
    log = tmp_path / "samples.jtl"
    log.write_text(JTL + f"{begin * 1000},5,home,200,OK,t 1-1,true,10\n" * 3000)

    until = time.time() + PATIENCE

    def has_counted() -> bool:
        operations = [json.loads(path.read_text())["operations"] for path in files(tmp_path)]
        return time.time() > until or any(one["count"] for every in operations for one in every.values())

    totals = jtl.follow(log, has_counted, window, Problems(), results=tmp_path)
    assert totals.operations["home"].count == 3000
    assert files(tmp_path)

    def lines() -> Iterator[str]:
        yield "metric_name,timestamp,metric_value,error_code,method,name,status\n"
        yield f"http_req_duration,{begin * 1000},5.0,,GET,home,200\n"
        for path in files(tmp_path):
            path.unlink()
        eventually(has_counted)

    result = Counted(window)
    with result.live(tmp_path):
        k6.counted(lines(), "samples", window, Problems(), result)
    assert result.operations["home"].count == 1


LOG = Path(__file__).parent / "logs" / "latte-0.29.0.hlog"


@given(st.lists(st.integers(0, LOG.stat().st_size), max_size=6))
def test_a_log_that_grows_in_any_pieces_counts_as_the_whole_log(ends: list[int]) -> None:
    content = LOG.read_bytes()
    intervals = [one for one in hdr_log.read(LOG, []) if one.tag == "requests"]
    began, whole = intervals[0].start, hdr_log.operation(intervals, intervals[0].start, 60)
    with TemporaryDirectory() as folder:
        growing = Path(folder) / "measure.hlog"
        running = hdr_live.RunningLog(growing, {"requests": "write"}, Measured(began, 60.0, 0.0))
        assert running.recent(int(began)).operations["write"].count == 0  # the generator has written nothing
        for end in sorted(ends):
            growing.write_bytes(content[:end])
            running.recent(int(began))
        growing.write_bytes(content)
        looks = [int(began) + 15 * n for n in (1, 2, 3, 4)]
        counted = [running.recent(until).operations["write"] for until in looks]
        at_once = hdr_live.RunningLog(growing, {"requests": "write"}, Measured(began, 60.0, 0.0))
        assert [at_once.recent(until).operations["write"] for until in looks] == counted
    first = whole.per_second.count[0]  # it is no whole second
    assert sum(one.count for one in counted) == whole.count - first > 0
    assert sum(sum(one.times.values()) for one in counted) >= whole.count


def test_columns_of_a_growing_log_are_known_at_each_read(tmp_path: Path) -> None:
    content = LOG.parents[1].joinpath("collectors/data/memtier-2.3.1-get.hgrm").read_bytes()  # its intervals have ends
    log = tmp_path / "measure.hlog"
    running = hdr_live.RunningLog(log, {"": "get"}, Measured(1795715972.0, 60.0, 0.0))
    log.write_bytes(content[: content.index(b"\n1795715972") + 1])
    assert running.recent(1795715980).operations["get"].count == 0
    log.write_bytes(content)
    assert running.recent(1795715980).operations["get"].count > 0


def test_running_summaries_of_a_log_are_of_its_measured_time(soon: None, tmp_path: Path) -> None:
    (first, *_) = hdr_log.read(LOG, [])
    measured = Measured(time.time() - 5, 60.0, 0.0)
    log = tmp_path / "measure.hlog"
    moment = f"{time.time() - 4:.3f}"
    log.write_text(LOG.read_text().replace(f"{first.start:.3f}", moment))  # the same log, of now
    with hdr_live.while_writing(tmp_path, log, {"requests": "write"}, measured):
        eventually(
            lambda: any(json.loads(path.read_text())["operations"]["write"]["count"] for path in files(tmp_path))
        )
    with hdr_live.while_writing(tmp_path, log, {}, Measured(0.0, 0.0, 0.0)) as idle:
        assert idle._path is None
