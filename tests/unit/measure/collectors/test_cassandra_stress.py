"""cassandra-stress. It is in no package registry, so it has not been run for these files: two are what an older and a
newer version printed for users who have published it; the one of several types is made by the format strings of its
source, and the log by the library that it writes its own with (HdrHistogram 2.1.12), called as its source does.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from troop.measure import hdr_log
from troop.measure.collectors import cassandra_stress
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.window import Window
from troop.measure.separate import Separate

DATA = Path(__file__).with_name("data")
LOG = DATA / "cassandra-stress.hlog"
LOG_BEGAN = 1_795_287_000
READS, WRITES = [200, 210, 220, 230], [300, 310, 320, 330]
"""By interval of a second, in the log as in the lines of several types."""
OLDER, NEWER, MIXED = ((DATA / f"cassandra-stress-{name}.txt").read_text() for name in ("older", "newer", "mixed"))


def runs(text: str) -> tuple[list[cassandra_stress.Run], list[str]]:
    problems = Problems()
    return cassandra_stress.runs(text, "a.txt", problems), problems.lines()


def rows(its: list[cassandra_stress.Run]) -> list[Separate]:
    problems = Problems()
    separate = cassandra_stress.rows(its, "a.txt", problems)
    assert problems.lines() == []
    return separate


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (
            "cassandra-stress-older.txt",
            {"count": 10_000, "per_second": 16_386.0, "mean_ms": 0.6, "max_ms": 25.7}
            | {"percentiles": {"50": 0.4, "95": 1.3, "99": 3.4, "99.9": 23.4}},
        ),
        (
            "cassandra-stress-newer.txt",
            {"count": 10_000, "per_second": 2_624.0, "mean_ms": 1.3, "max_ms": 21.7}
            | {"percentiles": {"50": 1.1, "95": 2.2, "99": 7.5, "99.9": 12.9}},
        ),
    ],
)
def test_a_summary_is_a_row_for_its_type(name: str, row: dict[str, object]) -> None:
    problems = Problems()
    (summary,) = cassandra_stress.rows(cassandra_stress.read(DATA / name, problems), name, problems)
    assert problems.lines() == []
    assert summary.document() == {
        "tool": "cassandra-stress",
        "operation": "WRITE",
        "errors": {},
        "bytes_per_second": None,
        **row,
    }


def test_several_types_are_rows_of_their_own_with_their_own_errors() -> None:
    its, problems = runs(MIXED)
    assert problems == []
    reads, writes = rows(its)
    assert (reads.operation, reads.count, reads.per_second, reads.errors) == ("READ", 860, 215.0, {})
    assert (writes.operation, writes.count, writes.errors) == ("WRITE", 1260 - 7, {"failed": 7})
    assert writes.per_second == pytest.approx((1260 - 7) / 4)
    assert (reads.percentiles["99"], writes.percentiles["99"], writes.max_ms) == (3.0, 3.4, 1006.2)


def test_rows_without_a_summary_come_from_the_intervals() -> None:
    its, problems = runs(MIXED[: MIXED.index("total,", MIXED.index("    930,"))])
    assert problems == ["a.txt:22: the summary is incomplete: rows are computed from the interval lines"]
    reads, writes = rows(its)
    assert (reads.count, reads.per_second, reads.mean_ms, reads.max_ms) == (630, 210.0, 1.0, 5.2)
    assert (writes.count, writes.errors, writes.percentiles) == (930 - 2, {"failed": 2}, {})


def test_damaged_line_is_a_problem_and_other_lines_count() -> None:
    its, problems = runs(NEWER.replace("    3495,     1.1,", "    3495,     ?.1,"))
    (row,) = rows(its)
    assert problems == ["a.txt:12: could not convert string to float: '?.1'"]
    assert row.count == 10_000


def test_a_decimal_comma_is_no_thousands_separator() -> None:
    """As Java prints in some locales: 2.624,5 and 1,3 are no numbers that can be told from others."""
    mean = next(line for line in NEWER.splitlines() if line.startswith("Latency mean"))
    (run,), problems = runs(NEWER.replace(mean, mean.replace("1.3", "1,3")))
    assert any("a.txt:" in line and "'1,3'" in line for line in problems)
    assert "latency mean" not in run.summary[cassandra_stress.TOTAL]


def test_runs_with_several_numbers_of_threads_are_separate() -> None:
    its, _ = runs(OLDER + NEWER)
    assert [(row.operation, row.count) for row in rows(its)] == [
        ("10-threads:WRITE", 10_000),
        ("4-threads:WRITE", 10_000),
    ]


@pytest.mark.parametrize("text", ["", "Unable to find any hosts\n"])
def test_text_without_intervals_is_refused(text: str) -> None:
    with pytest.raises(CollectorError, match=r"a\.txt:1: there are no interval lines of cassandra-stress"):
        runs(text)


def test_its_log_is_operations_by_type_with_the_errors_of_the_same_time() -> None:
    problems = Problems()
    runs = cassandra_stress.read(DATA / "cassandra-stress-mixed.txt", problems)
    window = Window(LOG_BEGAN + 2, LOG_BEGAN + 4, warm_up=2)
    operations = cassandra_stress.operations([LOG], runs, window, problems)
    assert problems.lines() == []
    assert set(operations) == {"READ", "WRITE"}
    assert operations["READ"].times.count == sum(READS[2:])
    assert operations["WRITE"].times.count == sum(WRITES[2:])
    assert operations["WRITE"].errors == {"failed": 5}
    assert operations["READ"].errors == {}
    per_second = operations["WRITE"].per_second
    assert (per_second.start, per_second.count, per_second.errors) == (LOG_BEGAN, WRITES, [0, 2, 0, 5])
    over_time = operations["WRITE"].over_time
    assert over_time is not None
    assert [over_time.count(step) for step in range(over_time.steps)] == WRITES
    # With a fixed rate it is the response times that count: those of the log are longer by at least 0.2 ms.
    assert operations["READ"].times.min >= 200


def test_one_interval_of_a_log_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day's log has hundreds of thousands."""
    alive: list[weakref.ref[hdr_log.Interval]] = []
    most = 0
    read = hdr_log.read

    def watched(path: Path, problems: list[str]) -> Iterator[hdr_log.Interval]:
        nonlocal most
        for interval in read(path, problems):
            alive.append(weakref.ref(interval))
            most = max(most, sum(one() is not None for one in alive))
            yield interval

    monkeypatch.setattr(hdr_log, "read", watched)
    window = Window(LOG_BEGAN, LOG_BEGAN + 4)
    cassandra_stress.operations([LOG], [], window, Problems())
    assert len(alive) >= 16
    assert most <= 3


def test_errors_of_a_longer_interval_lie_in_all_of_its_seconds() -> None:
    lines = [cassandra_stress.Interval(0, 1.0, 1.0, until, 8) for until in (4.0, 8.0)]
    run = cassandra_stress.Run(1, 4, intervals={cassandra_stress.TOTAL: lines, "WRITE": lines})
    operations = cassandra_stress.operations([LOG], [run], Window(LOG_BEGAN, LOG_BEGAN + 8), Problems())
    assert operations["WRITE"].per_second.errors == [2] * 8
    assert operations["WRITE"].errors == {"failed": 16}


def test_another_log_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "a.hlog"
    log.write_text(LOG.read_text().replace("-st,", "-x,").replace("-rt,", "-y,"))
    with pytest.raises(CollectorError, match=r"a\.hlog:1: there is no interval with a tag such as WRITE-st"):
        cassandra_stress.operations([log], [], Window(LOG_BEGAN, LOG_BEGAN + 4), Problems())


def test_types_may_stand_without_blanks_between_them() -> None:
    (run,), problems = runs(MIXED.replace("[READ: 860, WRITE: 1,260]", "[READ:860,WRITE:1,260]"))
    assert problems == []
    assert [run.summary[kind]["total partitions"] for kind in ("READ", "WRITE")] == [860, 1260]


def test_a_rate_at_a_real_server_has_response_and_service_times() -> None:
    """Output of ScyllaDB's cassandra-stress 3.19 with ``mixed`` and ``fixed=300/s`` at Cassandra 5.0.6."""
    problems = Problems()
    log, output = DATA / "cassandra-stress-rate.hlog", DATA / "cassandra-stress-rate.txt"
    (run,) = cassandra_stress.read(output, problems)
    first = next(hdr_log.read(log, []))
    operations = cassandra_stress.operations([log], [run], Window(first.start - 1, first.start + 9), problems)
    assert problems.lines() == []
    assert {kind: one.times.count for kind, one in operations.items()} == {"READ": 1111, "WRITE": 397}
    for kind, one in operations.items():
        assert one.timing == "response"
        assert one.service is not None
        assert one.service.count == one.times.count
        longest, median, service = one.times.max, one.times.percentile(50), one.service.percentile(50)
        assert longest == pytest.approx(1000 * (run.summary[kind]["latency max"] or 0), rel=0.002)
        assert median is not None
        assert service is not None
        assert service < median
        assert one.errors == {}


def test_columns_are_recognized_by_the_header() -> None:
    """Versions differ in the columns between the operations and the times."""
    changed = OLDER.replace(" op/s,", " op/s,  adj row/s,").replace("10000,   16386,", "10000,   16386,   7,")
    ((one,), _), ((other,), problems) = runs(OLDER), runs(changed)
    assert one.intervals["total"][0].max_ms == 25.7
    assert one.intervals == other.intervals
    assert problems == []


def test_lines_after_a_header_without_a_column_belong_to_no_run() -> None:
    damaged = OLDER.replace(" errors,", " failures,")
    with pytest.raises(CollectorError):
        runs(damaged)
    whole, _ = runs(OLDER)
    line = OLDER.count("\n") + 8
    assert runs(OLDER + damaged) == (whole, [f"a.txt:{line}: the header has no errors"])
    again, _ = runs(OLDER + damaged + OLDER)
    assert [run.intervals for run in again] == [whole[0].intervals] * 2
