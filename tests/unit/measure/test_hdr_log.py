"""Interval logs: held against another implementation on a real log, and against histograms of known values."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.measure.build import START, histogram_of
from troop.measure import hdr_log, operations
from troop.measure.hdr_log import Interval
from troop.measure.histogram import HIGHEST, Histogram

LOG = Path(__file__).parent / "logs" / "latte-0.29.0.hlog"
"""Written by latte; what stands beside it was read from it by the PyPI package hdrhistogram."""
DIGITS_BITS = {2: 7, 3: 10, 5: 17}
"""Digits -> bits of half of a histogram's finest buckets."""


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(LOG.with_suffix(".json").read_text())
    return document


def read(path: Path, tag: str | None = None) -> list[Interval]:
    problems: list[str] = []
    intervals = [one for one in hdr_log.read(path, problems) if tag in (None, one.tag)]
    assert problems == []
    return intervals


def written(values: dict[int, int], digits: int = 3, lowest: int = 1) -> str:
    """A histogram as logs have it. ``values``: counts by bucket."""
    counts, at = b"", 0
    for index, count in sorted(values.items()):
        if index > at:
            counts += _number(at - index)
        counts, at = counts + _number(count), index + 1
    body = struct.pack(">iiiiqqd", 0x1C849313, len(counts), 0, digits, lowest, 2**62, 1.0) + counts
    packed = zlib.compress(body)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode()


def _number(value: int) -> bytes:
    """ZigZag LEB128 of 64 bits in at most nine bytes."""
    rest, result = (value << 1) ^ (value >> 63), b""
    for _ in range(8):
        if rest < 0x80:
            return result + bytes([rest])
        result, rest = result + bytes([rest & 0x7F | 0x80]), rest >> 7
    return result + bytes([rest])


def bucket_of(value: int, bits: int) -> int:
    shift = max(value.bit_length() - bits - 1, 0)
    return (shift << bits) + (value >> shift)


def log_of(*lines: str, head: str = f"#[BaseTime: {START}.000 (seconds since epoch)]") -> list[str]:
    return [f"{line}\n" for line in (head, '"StartTimestamp","Interval_Length","Interval_Max","..."', *lines)]


def test_a_real_log_is_read_as_another_implementation_does(expected: dict[str, Any]) -> None:
    requests = read(LOG, "requests")
    began = requests[0].start
    rows = [
        {
            "start": round(one.start - began, 3),
            "seconds": one.seconds,
            "count": one.count,
            "min": one.counts[0][0],
            "max": one.counts[-1][1],
        }
        for one in requests
    ]
    assert rows == expected["intervals"]
    whole = hdr_log.operation(requests, began, 10).times
    assert whole.count == expected["count"]
    assert whole.mean() == pytest.approx(expected["mean"] / 1000, rel=0.0005)
    for percent, nanoseconds in expected["percentiles"].items():
        assert whole.percentile(float(percent)) == pytest.approx(nanoseconds / 1000, rel=0.0015)


def test_the_same_operations_stand_in_a_log_under_several_tags(expected: dict[str, Any]) -> None:
    everything = read(LOG)
    assert {one.tag for one in everything} == {"cycles", "requests"}
    assert sum(one.count for one in everything) == 2 * expected["count"]


@given(st.dictionaries(st.integers(0, 2**50), st.integers(1, 2**40), max_size=30), st.sampled_from(sorted(DIGITS_BITS)))
def test_every_bucket_and_count_is_decoded(values: dict[int, int], digits: int) -> None:
    bits = DIGITS_BITS[digits]
    buckets: dict[int, int] = {}
    for value, count in values.items():
        buckets[bucket_of(value, bits)] = buckets.get(bucket_of(value, bits), 0) + count
    ranges = list(hdr_log.decode(written(buckets, digits)))
    assert [count for _, _, count in ranges] == [buckets[index] for index in sorted(buckets)]
    assert [bucket_of(smallest, bits) for smallest, _, _ in ranges] == sorted(buckets)
    assert [bucket_of(largest, bits) for _, largest, _ in ranges] == sorted(buckets)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=50))
def test_values_are_those_recorded_to_a_thousandth_or_a_microsecond(nanoseconds: list[int]) -> None:
    buckets: dict[int, int] = {}
    for value in nanoseconds:
        buckets[bucket_of(value, 10)] = buckets.get(bucket_of(value, 10), 0) + 1
    counts = tuple(hdr_log.decode(written(buckets)))
    times = hdr_log.operation([Interval(None, START, 1, counts)], START, 1).times
    true = histogram_of([round(value / 1000) for value in nanoseconds])
    assert times.count == true.count
    for one, other in [(times.min, true.min), (times.max, true.max), (times.mean(), true.mean())]:
        assert one == pytest.approx(other, rel=0.001, abs=1)


def test_values_are_rounded_to_the_nearest_microsecond() -> None:
    counts = tuple(hdr_log.decode(written({1499: 1, 1500: 2})))
    times = hdr_log.operation([Interval(None, START, 1, counts)], START, 1).times
    assert (times.count, times.min, times.max, times.sum) == (3, 1, 2, 5)


def test_the_largest_counts_take_nine_bytes() -> None:
    assert list(hdr_log.decode(written({5: 2**62, 6: 1}))) == [(5, 5, 2**62), (6, 6, 1)]


def test_the_largest_values_count() -> None:
    largest = HIGHEST * 1000
    counts = tuple(hdr_log.decode(written({bucket_of(largest, 10) - 1: 1})))
    assert hdr_log.operation([Interval(None, START, 1, counts)], START, 1).times.count == 1


def test_a_histogram_of_a_coarser_unit_is_read_in_it() -> None:
    """The lowest value that is told apart: 1,000 takes the bits of 512."""
    (bucket,) = hdr_log.decode(written({3: 5}, lowest=1000))
    assert bucket == (3 * 512, 4 * 512 - 1, 5)


@pytest.mark.parametrize(
    ("head", "start"),
    [
        (f"#[BaseTime: {START}.500 (seconds since epoch)]", "1.25"),
        (f"#[StartTime: {START}.500 (seconds since epoch), Mon Nov 23]", "1.25"),
        (f"#[StartTime: {START}.500 (seconds since epoch)]", f"{START}.500"),
        ("# a comment", f"{START}.500"),
    ],
)
def test_starts_count_from_the_log_s_base_or_from_1970(head: str, start: str) -> None:
    (one,) = hdr_log.intervals(log_of(f"{start},1.0,2.0,{written({1: 1})}", head=head), "x", [])
    assert one.start == START + 0.5 + (1.25 if start == "1.25" else 0)
    assert one.tag is None


def test_whole_intervals_count_whose_middle_is_in_the_measured_time() -> None:
    intervals = [Interval("t", START + n / 2 - 0.2, 0.5, ((7_000, 7_001, 10**n),)) for n in range(8)]
    operation = hdr_log.operation(intervals, START + 1, 2)
    assert operation.times.count == 100 + 1_000 + 10_000 + 100_000
    assert operation.per_second.document() == {"from": START + 1, "count": [1100, 110000], "errors": [0, 0]}
    assert operations.parse({"write": operation.document()}, "it")["write"].times == operation.times


@given(
    st.lists(st.tuples(st.floats(0.2, 30), st.integers(0, 50)), min_size=1, max_size=12),
    st.floats(0, 2),
    st.integers(0, 20),
)
def test_counts_of_an_interval_lie_in_all_of_its_seconds(
    lengths: list[tuple[float, int]], begin: float, warm_up: int
) -> None:
    intervals, at = [], START + begin
    for seconds, count in lengths:
        intervals.append(Interval(None, at, seconds, ((1000, 1000, count),) if count else ()))
        at += seconds
    operation = hdr_log.operation(intervals, START + warm_up, 60, warm_up_seconds=warm_up)
    until = START + warm_up + 60
    assert sum(operation.per_second.count) == sum(one.count for one in intervals if one.middle < until)
    assert sum(operation.per_second.count[warm_up:]) == operation.times.count


def test_throughput_of_long_intervals_is_as_steady_as_it_was() -> None:
    intervals = [Interval(None, START + 0.4 + 10 * n, 10.0, ((1000, 1000, 105),)) for n in range(6)]
    operation = hdr_log.operation(intervals, START, 60)
    assert set(operation.per_second.count) == {10, 11}
    assert sum(operation.per_second.count) == 630


def test_an_interval_of_the_warm_up_shows_over_time_alone() -> None:
    """Each in the step of its middle."""
    intervals = [Interval("t", START + n / 2 - 0.2, 0.5, ((7_000, 7_001, 10**n),)) for n in range(8)]
    operation = hdr_log.operation(intervals, START + 2, 1, warm_up_seconds=1)
    assert operation.times.count == 10_000 + 100_000
    assert operation.per_second.document() == {"from": START + 1, "count": [1100, 110_000], "errors": [0, 0]}
    over_time = {"from": START + 1, "step_seconds": 1, "counts": [[7, 1100], [7, 110_000]]}
    assert operation.document()["over_time"] == over_time


DAMAGED = {
    "1.0,1.0,2.0": "not 3 columns",
    "a,1.0,2.0,AAAA": "must be numbers",
    "1.0,nan,2.0,AAAA": "must be finite numbers",
    "1.0,-1,2.0,AAAA": "the length from 0",
    "1.0,1.0,2.0,****": "damaged",
    "1.0,1.0,2.0,AAAA": "damaged",
    "1.0,1.0,2.0,AAAAAAAAAAA=": "not in HdrHistogram's deflated encoding",
    f"1.0,1.0,2.0,{written({9: 9})[:-8]}": "incomplete",
    f"1.0,1.0,2.0,{written({9: 9}, digits=6)}": "another layout",
    f"1.0,1.0,2.0,{written({9: 9})[:-9]}\N{REPLACEMENT CHARACTER}{written({9: 9})[-8:]}": "damaged",
    f"1.0,1.0,2.0,{written({9: 2**62, 10: 1})}": "more than 2^53 values",
    f"1e999,1.0,2.0,{written({9: 9})}": "must be finite numbers",
    f"1.0,1.0,2.0,{written({70 << 10: 1})}": "too large",
    f"1.0,1.0,2.0,{written({bucket_of(2**63 - 1, 10): 1})}": "values from 2^53 microseconds, which is too large",
}


@pytest.mark.parametrize(("line", "message"), DAMAGED.items(), ids=DAMAGED.values())
def test_damaged_line_is_a_problem_with_its_number_and_hides_no_other(line: str, message: str) -> None:
    problems: list[str] = []
    good = f"Tag=a,1.0,1.0,2.0,{written({9: 9})}"
    intervals = list(hdr_log.intervals(log_of(good, line, good), "run.hlog", problems))
    assert [(one.tag, one.count) for one in intervals] == [("a", 9), ("a", 9)]
    (problem,) = problems
    assert problem.startswith("run.hlog:4: ")
    assert message in problem


@given(st.data())
def test_one_damaged_byte_costs_at_most_its_own_line(data: st.DataObject) -> None:
    content = LOG.read_bytes()
    at = data.draw(st.integers(content.index(b"Tag="), len(content) - 1).filter(lambda n: content[n] != ord("\n")))
    byte = data.draw(st.integers(0, 255).filter(lambda n: chr(n) not in "\n\r"))
    damaged = content[:at] + bytes([byte]) + content[at + 1 :]
    problems: list[str] = []
    lines = io.StringIO(damaged.decode(errors="replace"))
    assert len(list(hdr_log.intervals(lines, "a", problems))) >= len(read(LOG)) - 1
    assert len(problems) <= 1


def test_infinite_base_time_is_a_problem() -> None:
    head, problems = f"#[BaseTime: {'9' * 400} (seconds since epoch)]", list[str]()
    assert list(hdr_log.intervals(log_of(f"1.0,1.0,2.0,{written({9: 9})}", head=head), "a", problems)) == []
    assert "relative to the log's, is not finite" in problems[0]


def test_a_log_that_was_cut_off_says_so() -> None:
    text, problems = LOG.read_text(), list[str]()
    lines = text[: len(text) - 100].splitlines(keepends=True)
    intervals = list(hdr_log.intervals(lines, "run.hlog", problems))
    assert len(intervals) == len(read(LOG)) - 1
    assert problems[0].startswith(f"run.hlog:{len(lines)}: ")
    assert problems[0].endswith("; the last line of the log is incomplete")


@pytest.fixture
def phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    began = read(LOG)[0].start
    environment = {"MEASURED_FROM": f"{began + 0.9:.6f}", "MEASURED_SECONDS": "2", "RESULTS": str(tmp_path)}
    environment["WARM_UP_SECONDS"] = "0.5"
    for name, value in environment.items():
        monkeypatch.setenv(f"TROOP_{name}", value)
    return tmp_path


def result_of(phase: Path) -> operations.Operation:
    (file,) = phase.glob("operations-*.json")
    document = json.loads(file.read_text())
    file.unlink()
    assert document["format"] == "troop.operations/1"
    (operation,) = operations.parse(document["operations"], "it").values()
    return operation


def test_the_command_writes_what_the_agent_reads(phase: Path, expected: dict[str, Any]) -> None:
    assert hdr_log.main([str(LOG), "--tag", "requests", "--operation", "write"]) == 0
    operation = result_of(phase)
    middles = [(one["start"] + one["seconds"] / 2, one["count"]) for one in expected["intervals"]]
    assert operation.times.count == sum(count for middle, count in middles if 0.9 <= middle < 2.9)
    assert sum(operation.per_second.count) == sum(count for middle, count in middles if 0.4 <= middle < 2.9)
    assert sum(operation.per_second.count) > operation.times.count
    assert not operation.counts_failures, "a log has none"
    assert hdr_log.operation([], 0, 1).counts_failures, "a script that reads intervals may know failures"


def test_the_command_asks_for_a_tag_where_there_are_several(phase: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hdr_log.main([str(LOG), "--operation", "write"]) == 1
    assert "several tags (cycles, requests)" in capsys.readouterr().err
    assert list(phase.iterdir()) == []


def test_the_command_tells_of_a_tag_that_is_nowhere(phase: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hdr_log.main([str(LOG), "--tag", "reads", "--operation", "write"]) == 1
    assert "no interval has the tag reads; tags in the log: cycles, requests" in capsys.readouterr().err


def test_intervals_without_a_tag_can_be_chosen(phase: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = phase / "mixed.hlog"
    start = read(LOG)[0].start + 1
    log.write_text(f"Tag=A,{start},1.0,2.0,{written({9: 5})}\n{start},1.0,2.0,{written({9: 7})}\n")
    assert hdr_log.main([str(log), "--operation", "write"]) == 1
    assert "several tags ('' (no tag), A) would count twice: choose one" in capsys.readouterr().err
    assert hdr_log.main([str(log), "--operation", "write", "--tag", ""]) == 0
    assert result_of(phase).times.count == 7
    log.write_text(f"Tag=A,{start},1.0,2.0,{written({9: 5})}\n")
    assert hdr_log.main([str(log), "--operation", "write", "--tag", ""]) == 1
    assert "no interval has no tag; tags in the log: A" in capsys.readouterr().err


@pytest.mark.parametrize("byte", [0xE4, 0x80, 0x00, ord("*")])
def test_one_damaged_byte_ends_the_command_badly_and_loses_no_other_interval(
    phase: Path, byte: int, capsys: pytest.CaptureFixture[str]
) -> None:
    content = LOG.read_bytes()
    at = content.index(b"HISTF", content.index(b"Tag=requests")) + 40
    damaged = phase / "damaged.hlog"
    damaged.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
    assert hdr_log.main([str(damaged), "--tag", "requests", "--operation", "write"]) == 1
    line = content.count(b"\n", 0, at) + 1
    assert f"{damaged}:{line}: " in capsys.readouterr().err
    assert result_of(phase).times.count > 0


def test_an_empty_window_makes_an_empty_histogram() -> None:
    assert hdr_log.operation(read(LOG), START, 1).times == Histogram()


@pytest.fixture
def at_epoch(phase: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A phase whose measured time the small logs are in."""
    monkeypatch.setenv("TROOP_MEASURED_FROM", "1700000000")
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "100")
    return phase


def test_the_unit_of_a_log_can_be_stated(at_epoch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log of 2 ms in microseconds, as memtier and YCSB write."""
    log = str(LOG.with_name("microseconds.hlog"))
    assert hdr_log.main([log, "--operation", "get"]) == 0
    doubt = "half of the times are at most 2 us: if the values of the log are no nanoseconds, state --unit"
    assert doubt in capsys.readouterr().err
    result_of(at_epoch)
    for unit, micros in (("ns", 2), ("us", 2_000), ("ms", 2_000_000), ("s", 2_000_000_000)):
        assert hdr_log.main([log, "--operation", "get", "--unit", unit]) == 0
        assert capsys.readouterr().err == ""
        assert result_of(at_epoch).times.percentile(50) == pytest.approx(micros, rel=0.001)


def test_a_value_that_is_too_large_in_its_unit_is_refused(at_epoch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = at_epoch / "large.hlog"
    log.write_text(f"1700000010.0,1.0,2.0,{written({bucket_of(HIGHEST, 10): 1})}\n")
    assert hdr_log.main([str(log), "--operation", "get", "--unit", "s"]) == 1
    assert "more than 2^53 microseconds: check the unit" in capsys.readouterr().err


def test_a_log_of_hdrhistogramjs_is_read(at_epoch: Path) -> None:
    """Its writer stores the ratio of values to whole numbers as a whole number."""
    assert hdr_log.main([str(LOG.with_name("hdrhistogram-js-3.0.1.hlog")), "--operation", "get"]) == 0
    times = result_of(at_epoch).times
    assert (times.count, times.max) == (10_000, pytest.approx(50_000, rel=0.001))  # the log states the maximum, in ms


def test_low_precision_of_a_log_is_a_warning(at_epoch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hdr_log.main([str(LOG.with_name("one-digit.hlog")), "--operation", "get"]) == 0
    assert "the log keeps 1 significant digits: its times are exact to 10 %" in capsys.readouterr().err


def test_a_log_without_an_interval_in_the_measured_time_is_a_problem(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hdr_log.main([str(LOG.with_name("microseconds.hlog")), "--operation", "get"]) == 1
    assert "no interval is in the measured time" in capsys.readouterr().err


def first_version(counts: bytes, size: int) -> str:
    """A histogram in encoding V1, whose counts all have ``size`` bytes."""
    body = struct.pack(">iiiiqqd", 0x1C849301 | size << 4, len(counts), 0, 3, 1, 2**40, 1.0) + counts
    packed = zlib.compress(body)
    return base64.b64encode(struct.pack(">ii", 0x1C849302 | size << 4, len(packed)) + packed).decode()


@pytest.mark.parametrize(("size", "form"), [(2, "h"), (4, "i"), (8, "q")])
def test_the_first_version_of_the_encoding_is_read(size: int, form: str) -> None:
    """As YCSB writes it. A real log of YCSB is among the recipes."""
    counts = struct.pack(f">4{form}", 0, 5, 0, 7)
    assert list(hdr_log.decode(first_version(counts, size))) == [(1, 1, 5), (3, 3, 7)]
    for damaged, sentence in ((counts[:-1], "counts of"), (struct.pack(f">{form}", -1), "a count is negative")):
        with pytest.raises(hdr_log.HdrLogError, match=sentence):
            list(hdr_log.decode(first_version(damaged, size)))
