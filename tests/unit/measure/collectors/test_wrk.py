"""wrk: what it printed, against what a reader sees in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from troop.measure.collectors import wrk
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.separate import Separate

DATA = Path(__file__).with_name("data")
TEXT = (DATA / "wrk-4.1.0.txt").read_text()
TIMEOUTS = (DATA / "wrk-4.1.0-timeouts.txt").read_text()


def rows(text: str) -> tuple[list[Separate], list[str]]:
    problems = Problems()
    return wrk.rows(text, "a.txt", "home", problems), problems.lines()


def test_a_run_is_one_row_of_its_own() -> None:
    problems = Problems()
    assert wrk.read(DATA / "wrk-4.1.0.txt", "home", problems) == [
        Separate(
            "wrk",
            "home",
            count=282_619,
            per_second=134_615.03,
            bytes_per_second=19.64 * 1024 * 1024,
            mean_ms=0.07955,
            max_ms=5.49,
            percentiles={"50": 0.019, "75": 0.023, "90": 0.025, "99": 2.42},
            timing="service",
        )
    ]
    assert problems.lines() == []


def test_answers_that_failed_or_came_late_are_no_successes() -> None:
    (missing,) = wrk.read(DATA / "wrk-4.1.0-not-found.txt", "home", Problems())
    assert (missing.count, missing.per_second, missing.errors) == (0, 0.0, {"status": 122_878})
    assert (missing.mean_ms, missing.max_ms, missing.percentiles) == (None, None, {})
    (late,) = wrk.read(DATA / "wrk-4.1.0-timeouts.txt", "home", Problems())
    assert (late.count, late.errors) == (28 - 12, {"read": 7, "timeout": 12})
    assert late.per_second == pytest.approx(16 / 28 * 5.57, abs=0.001)
    assert late.bytes_per_second == 244.99


def test_wrk2_prints_the_same_with_more_digits() -> None:
    """wrk2 is not to be had as a package: its two differing lines are put into wrk's real output."""
    text = TEXT.replace("Latency Distribution", "Latency Distribution (HdrHistogram - Recorded Latency)")
    text = text.replace("     99%    2.42ms", "  99.000%    2.42ms\n  99.900%    1.05s\n 100.000%    1.20m")
    (row,), _ = rows(text)
    assert row.percentiles["99"] == 2.42
    assert row.percentiles["99.9"] == 1050.0
    assert row.percentiles["100"] == 72_000.0
    assert row.timing == "response"


@pytest.mark.parametrize("recorded", [True, False])
def test_wrk2_prints_service_times_apart_and_they_replace_no_response_times(recorded: bool) -> None:
    printed = "  Latency Distribution\n     50%   19.00us\n     75%   23.00us\n     90%   25.00us\n     99%    2.42ms\n"
    assert printed in TEXT
    response = "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    3.00ms\n 99.000%   70.00ms\n\n"
    service = "  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into"
    service += " account))\n 50.000%    1.00ms\n 99.000%    2.00ms\n\n"
    (one, other), _ = rows(TEXT.replace(printed, response * recorded + service))
    assert (one.timing, one.percentiles) == ("response", {"50": 3.0, "99": 70.0} if recorded else {})
    assert one.mean_ms == 0.07955
    assert (other.timing, other.percentiles) == ("service", {"50": 1.0, "99": 2.0})
    assert (other.operation, other.count, other.per_second) == ("home", one.count, None)


def test_the_rate_is_wrks_own_which_knows_its_time_better() -> None:
    """It prints the time in two digits after the point, of minutes and hours, too."""
    text = TIMEOUTS.replace("in 5.03s", "in 1.01m")
    for own_rate, rate in ((5.57, 16 / 28 * 5.57), (0.46, 16 / 28 * 0.46), (0.0, 16 / 60.6)):
        (row,), _ = rows(text.replace("5.57", f"{own_rate:.2f}"))
        assert row.per_second == pytest.approx(rate, abs=0.001)


@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("  1 threads and 4 connections", "  1 threads and 4 connections\n  Thread calibration: mean lat.: 5.3ms"),
        ("Latency Distribution", "Latency Distribution (HdrHistogram - Recorded Latency)"),
    ],
)
def test_timeouts_of_wrk2_are_not_among_its_requests(line: str, by: str) -> None:
    (row,), _ = rows(TIMEOUTS.replace(line, by))
    assert (row.count, row.errors) == (28, {"read": 7, "timeout": 12})


def test_several_runs_in_one_file_are_a_row_each() -> None:
    runs, _ = rows(f"{TEXT}a script says this\n{TIMEOUTS}")
    assert [row.count for row in runs] == [282_619, 16]


def test_truncated_run_is_a_problem_and_earlier_runs_count() -> None:
    (row,), (problem,) = rows(TEXT + TEXT[: TEXT.index("Requests/sec")])
    assert row.count == 282_619
    assert problem == "a.txt:24: wrk's output is incomplete; missing: Requests/sec, Transfer/sec"


def test_line_that_is_not_of_wrk_is_a_problem_with_its_number() -> None:
    runs, problems = rows(TEXT.replace("19.64MB", "a lot"))
    assert runs == []
    assert problems[0] == "a.txt:13: not a line of wrk: 'Transfer/sec:     a lot'"


@pytest.mark.parametrize("text", ["", "unable to connect to 127.0.0.1:8799 Connection refused\n"])
def test_text_without_a_run_is_refused(text: str) -> None:
    with pytest.raises(CollectorError, match=r"a\.txt:1: there is no run of wrk"):
        rows(text)


def test_a_column_of_a_percentile_is_no_maximum() -> None:
    """As some versions of wrk2 print it: Thread Stats Avg Stdev 99% +/- Stdev."""
    text = (DATA / "wrk2-99-column.txt").read_text()
    (row,), problems = rows(text)
    assert (row.mean_ms, row.max_ms, row.percentiles["99"]) == (29.4, 13_020.0, 26.9)
    (row,), more = rows(text.replace("100.000%   13.02s \n", ""))
    assert row.max_ms is None
    assert problems + more == []


def test_results_of_several_addresses_are_a_row_each() -> None:
    text = (DATA / "wrk2-two-addresses.txt").read_text()
    (one, other), problems = rows(text)
    assert problems == []
    assert (one.count, one.mean_ms, one.max_ms, one.percentiles["99"]) == (3000, 1.0, 5.0, 3.0)
    assert (other.count, other.mean_ms, other.max_ms, other.percentiles["99"]) == (6000, 100.0, 500.0, 300.0)
    (row,), problems = rows(text[: text.rindex("-----\nTest Results @")])
    assert row == one
    assert problems == [
        "a.txt:3: wrk's output is incomplete; missing: latencies, the number of requests, Requests/sec, Transfer/sec"
    ]


@pytest.mark.parametrize(("old", "new"), [("79.55us", "79.55ms"), ("2.42ms", "2.42s")])
def test_maximum_that_other_figures_contradict_is_a_problem_and_left_out(old: str, new: str) -> None:
    assert old in TEXT
    (row,), problems = rows(TEXT.replace(old, new))
    assert (row.count, row.max_ms) == (282_619, None)
    assert "the maximum of 5.49 ms is less than the mean or a percentile" in problems[0]
