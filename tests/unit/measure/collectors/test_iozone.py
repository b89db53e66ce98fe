"""iozone's throughput mode, as version 3.489 of Debian's package has printed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from troop.measure.collectors import iozone
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.operations import Rate

DATA = Path(__file__).with_name("data")


def rates(name: str, prefix: str = "") -> dict[str, Rate]:
    problems = Problems()
    operations = iozone.read(DATA / name, problems, prefix)
    assert problems.lines() == []
    return {name: one.rate for name, one in operations.items() if one.rate}


def test_a_test_is_an_operation_with_what_its_processes_saw() -> None:
    by_name = rates("iozone-3.489.txt")
    assert list(by_name) == [
        "initial-writers",
        "rewriters",
        "readers",
        "re-readers",
        "random-readers",
        "random-writers",
    ]
    writers = by_name["initial-writers"]
    assert writers.bytes_per_second == pytest.approx(338_281.18 * 1024, abs=1)
    assert writers.per_second == pytest.approx(338_281.18 / 64, abs=0.001)
    assert (writers.count, writers.threads) == (0, 3)


def test_the_mean_time_of_a_record_follows_from_processes_and_rate() -> None:
    """Three processes that never pause write 5,285.643 records a second: one takes 3/5,285.643 s."""
    assert rates("iozone-3.489.txt")["initial-writers"].mean_ms == pytest.approx(3000 / 5285.643)


def test_a_script_that_starts_iozone_twice_keeps_its_tests_apart() -> None:
    assert list(rates("iozone-3.489-ops.txt", "4k"))[-1] == "4k-random-writers"


def test_records_are_counted_where_iozone_tells_of_its_processes() -> None:
    rows = rates("iozone-3.489-ops.txt")
    assert {name: row.count for name, row in rows.items()} == {
        "initial-writers": 10 + 512,
        "rewriters": 512 + 509,
        "random-readers": 512 + 7,
        "random-writers": 512 + 416,
    }
    assert rows["rewriters"].per_second == 1_848_416.88
    assert rows["rewriters"].bytes_per_second == pytest.approx(1_848_416.88 * 4096, abs=1)


def test_tests_with_several_numbers_of_processes_are_separate() -> None:
    rows = rates("iozone-3.489-lu.txt")
    assert len(rows) == 8
    assert rows["1-readers"].bytes_per_second == pytest.approx(5_330_028.5 * 1024, abs=1)
    assert rows["2-readers"].bytes_per_second == pytest.approx(3_936_261.56 * 1024, abs=1)


@pytest.mark.parametrize("end", ["Avg throughput per process", "\tChild[1]"])
def test_truncated_test_is_a_problem_and_earlier_tests_count(end: str) -> None:
    text = (DATA / "iozone-3.489-ops.txt").read_text()
    problems = Problems()
    operations = iozone.operations(text[: text.index(end, text.index("2 rewriters"))], "a.txt", problems)
    assert list(operations) == ["initial-writers"]
    cut, incomplete = problems.lines()
    assert cut == "a.txt:38: the results of 2 rewriters are cut off"
    assert "iozone did not complete" in incomplete


def test_malformed_rate_is_a_problem_with_its_line() -> None:
    text = (DATA / "iozone-3.489.txt").read_text().replace("=  338281.18 kB/sec", "=  much", 1)
    problems = Problems()
    assert len(iozone.operations(text, "a.txt", problems)) == 5
    assert problems.lines() == [
        "a.txt:29: not a throughput: 'Children see throughput for  3 initial writers \\t=  much'"
    ]


@pytest.mark.parametrize("text", ["", "iozone: not by_name\n"])
def test_text_without_a_throughput_is_refused(text: str) -> None:
    with pytest.raises(CollectorError, match=r"a\.txt:1: there is no throughput"):
        iozone.operations(text, "a.txt", Problems())


def test_bytes_are_known_without_the_size_of_a_record() -> None:
    text = (DATA / "iozone-3.489.txt").read_text().replace("Record Size", "").replace("Each process writes", "")
    writers = iozone.operations(text, "a.txt", Problems())["initial-writers"].rate
    assert writers is not None
    assert (writers.bytes_per_second, writers.per_second) == (pytest.approx(338_281.18 * 1024, abs=1), 0)
    assert writers.mean_ms is None
