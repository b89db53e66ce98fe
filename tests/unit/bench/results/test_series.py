"""What is told over time of one small phase: a warm-up of two seconds, three that are measured, and one after it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.report.runs import START, coarse
from troop.bench.results.series import partial_tools, series, use
from troop.bench.results.steps import SeriesRow
from troop.measure.summary import SERIES


def phase(**changes: Any) -> dict[str, Any]:
    slow, fast = [[coarse(50_000), 10]], [[coarse(1000), 10]]
    operation = {
        "histogram": {"max": 1000},
        "per_second": {"from": START - 2, "count": [5, 5, 10, 10, 10], "errors": [0, 0, 0, 1, 0]},
        "over_time": {"from": START - 2, "step_seconds": 1, "counts": [slow, slow, fast, [], fast]},
    }
    samples = {name: [0, 0, 100, 200, 300, 1000] for name in SERIES}
    role = {"operations": {"read": operation}, "nodes": {"i-1": {}}}
    role["samples"] = {"from": START - 2, "interval_seconds": 1, **samples}
    about = {"measured_from": float(START), "measured_seconds": 3.0, "warm_up_seconds": 2.0}
    return {"roles": {"drivers": role}, **about, **changes}


def named(rows: list[SeriesRow]) -> dict[str, SeriesRow]:
    return {one.name: one for one in rows}


def test_warm_up_is_before_zero_and_may_be_slower_than_the_measured_time() -> None:
    series_by_name = named(series(phase()))
    assert (series_by_name["per_second"].start, series_by_name["per_second"].values) == (-2, [5, 5, 10, 10, 10])
    assert series_by_name["errors_per_second"].values == [0, 0, 0, 1, 0]
    # The bucket of 50 ms reaches up to 51.199; of what was measured, nothing took longer than 1 ms.
    assert (series_by_name["p50_ms"].start, series_by_name["p50_ms"].values) == (-2, [51.199, 51.199, 1.0, None, 1.0])


def test_how_busy_nodes_were_is_of_the_measured_time_alone() -> None:
    (usage,) = use(phase())
    assert [usage[name] for name in ("user", "cpu", "disk_reads", "nodes")] == [20.0, 60.0, 200.0, 1]


def test_where_nobody_knows_when_it_was_measured_all_of_it_counts() -> None:
    whole = phase(measured_from=None)
    assert named(series(whole))["per_second"].start == 0
    assert use(whole)[0]["user"] == 26.667


@pytest.mark.parametrize(
    ("seconds", "count", "names"),
    [([5, 5, 10], 15, []), ([5, 10], 15, []), ([5, 9], 15, ["drivers read"]), ([], 15, []), ([0, 0], 0, [])],
    ids=["with a warm-up", "all", "of some nodes", "none at all", "nothing done"],
)
def test_throughput_over_time_is_held_against_what_was_counted(
    seconds: list[int], count: int, names: list[str]
) -> None:
    some = phase()
    operation = some["roles"]["drivers"]["operations"]["read"]
    operation["histogram"]["count"], operation["per_second"]["count"] = count, seconds
    assert partial_tools(some) == names


def test_no_errors_are_no_series() -> None:
    quiet = phase()
    quiet["roles"]["drivers"]["operations"]["read"]["per_second"]["errors"] = [0] * 5
    assert "errors_per_second" not in named(series(quiet))


def test_long_phases_have_longer_steps() -> None:
    long = phase(measured_seconds=1498.0)
    document = long["roles"]["drivers"]["operations"]["read"]
    document["per_second"] |= {"count": [7] * 1500, "errors": [0] * 1500}
    document["over_time"] |= {"counts": [[[coarse(1000), 1]]] * 300, "step_seconds": 5}
    series_by_name = named(series(long))
    assert (series_by_name["per_second"].step_seconds, series_by_name["per_second"].start) == (5, -5)
    assert len(series_by_name["per_second"].values) == 301
    assert set(series_by_name["per_second"].values) == {7.0}
    assert (series_by_name["p50_ms"].step_seconds, len(series_by_name["p50_ms"].values)) == (5, 300)


def test_a_step_has_times_of_the_warm_up_or_of_the_measured_time() -> None:
    """Steps of two seconds, of windows of one; a warm-up of three seconds, slow, and 397 that are measured."""
    long = phase(measured_seconds=397.0, warm_up_seconds=3.0)
    document = long["roles"]["drivers"]["operations"]["read"]
    slow, fast = [[coarse(50_000), 10]], [[coarse(1000), 10]]
    document["per_second"] |= {"from": START - 3, "count": [10] * 400, "errors": [0] * 400}
    document["over_time"] |= {"from": START - 3, "counts": [slow] * 3 + [fast] * 397}
    times = named(series(long))["p50_ms"]
    assert (times.start, times.step_seconds) == (-4, 2)
    assert times.values[:4] == [51.199, 51.199, 1.0, 1.0]


@pytest.mark.parametrize(
    ("begin", "start", "values"),
    [
        (-10, -10, [51.199, 1.023]),
        (-6, -5, [51.199, 1.023]),
        (-7, -5, [51.199, 1.023]),
        (-8, -10, [51.199, 1.023]),
        (-5, -5, [51.199, 1.0]),
    ],
)
def test_a_window_across_the_border_goes_where_most_of_it_lies(begin: int, start: int, values: list[float]) -> None:
    """Windows of five seconds, which begin at multiples of five since 1970, whenever the measured time does."""
    long = phase(measured_seconds=1498.0)
    document = long["roles"]["drivers"]["operations"]["read"]
    document["per_second"] |= {"from": START - 10, "count": [7] * 1500, "errors": [0] * 1500}
    counts = [[[coarse(50_000), 1]], [[coarse(1000), 1]]]
    document["over_time"] |= {"from": START + begin, "counts": counts, "step_seconds": 5}
    times = named(series(long))["p99_ms"]
    assert (times.start, times.step_seconds, times.values) == (start, 5, values)
