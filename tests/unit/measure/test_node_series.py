"""Values over time of single nodes: what they are, and which nodes are kept."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.measure.build import START, histogram_of, summary
from troop.measure import merged_devices, node_series
from troop.measure.device_samples import DeviceSamples
from troop.measure.merge import Merger
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import SERIES, Samples, Summary
from troop.measure.windows import Windows, highest_in, index_of

BEGIN = START // 60 * 60
SECONDS = 120


def node(number: int, micros: int = 1000, rate: int = 10, cpu: int = 300, **changes: Any) -> Summary:
    """A node that has done ``rate`` operations in each second, each in ``micros``."""
    count = rate * SECONDS
    over_time = Windows(BEGIN, 1)
    for second in range(SECONDS if rate else 0):
        over_time.record(BEGIN + second, micros, rate)
    operation = Operation(
        histogram_of([micros] * count),
        per_second=PerSecond(BEGIN, [rate] * SECONDS, [1] * SECONDS),
        over_time=over_time,
    )
    levels = {"cpu_user": cpu, "cpu_system": 0, "cpu_steal": 0, "cpu_iowait": 600, "network_sent_bytes": 5000}
    samples = Samples(BEGIN, 1, {name: [levels.get(name, 0)] * SECONDS for name in SERIES})
    disk = DeviceSamples(BEGIN, 2, {"sda": {"reads": [1] * (SECONDS // 2)}})
    samples = Samples(samples.start, 1, samples.series, disk)
    its: dict[str, Any] = {"measured_from": float(BEGIN), "measured_seconds": float(SECONDS), "samples": samples}
    return summary(number, operations={"read": operation} if rate else {}, **{**its, **changes})


def rows(*summaries: Summary) -> list[dict[str, Any]]:
    merger = Merger()
    for one in summaries:
        merger.add(one)
    series: list[dict[str, Any]] = merger.document()["roles"]["drivers"]["node_series"]
    return series


def test_a_node_has_its_own_rates_times_and_processors() -> None:
    slow, fast = rows(node(1, 1000), node(2, 9000, rate=20))
    assert (slow["node"], slow["rank"], fast["rank"]) == ("i-00000000000000002", 2, 1)
    assert (slow["from"], slow["step_seconds"]) == (BEGIN, 2)
    assert slow["count"] == [40] * 60
    assert slow["errors"] == [2] * 60
    assert set(slow["p99_micros"]) == {highest_in(index_of(9000))}
    assert fast["mean_micros"] == pytest.approx([1000] * 60, rel=1 / 16)
    assert set(slow["cpu"]) == {300}, "waiting for a disk is no work"
    assert set(slow["iowait"]) == {600}
    assert set(slow["network_sent_bytes"]) == {5000}
    assert "network_received_bytes" not in slow


@pytest.mark.parametrize("seconds", [1, 59, 61, 300, 601, 3600, 10 * 3600, 24 * 3600])
def test_a_node_has_at_most_sixty_whole_steps(seconds: int) -> None:
    empty = Summary("i", "drivers", 0, "m", "ok", 0.0, 1.0, measured_from=BEGIN + 0.7, measured_seconds=float(seconds))
    samples = Samples(BEGIN, 60, {name: [1] * (seconds // 60 + 1) for name in SERIES})
    (row,) = rows(Summary(**{**vars(empty), "samples": samples}))
    assert len(row["cpu"]) <= 62
    assert row["from"] % row["step_seconds"] == 0


def test_node_without_a_measured_time_has_no_series() -> None:
    assert rows(node(1, measured_from=None, measured_seconds=0.0)) == []


def test_node_without_times_of_an_operation_has_no_percentile() -> None:
    one = node(1)
    other = Operation(histogram_of([5] * 9), per_second=PerSecond(BEGIN, [9], [0]))
    uncounted = replace(other, per_second=PerSecond())
    (row,) = rows(replace(one, operations={**one.operations, "put": other}))
    assert (sum(row["count"]), "p99_micros" in row) == (10 * SECONDS + 9, False)
    (row,) = rows(replace(one, operations={**one.operations, "put": uncounted}))
    assert "count" not in row


NODES = st.lists(st.tuples(st.sampled_from((0, 10)), st.integers(1, 50), st.integers(0, 900)), min_size=1, max_size=30)


@settings(max_examples=25)
@given(NODES, st.randoms(use_true_random=False))
def test_slowest_of_too_many_nodes_stay_in_any_order_and_grouping(
    nodes: list[tuple[int, int, int]], dice: random.Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_series, "MOST_NODES", 6)
        patch.setattr(merged_devices, "MOST_NODE_SERIES", 6)
        every = [node(n, 1000 * micros, rate, cpu) for n, (rate, micros, cpu) in enumerate(nodes)]
        role = _merged(every).document()["roles"]["drivers"]
        series, devices = role["node_series"], role["devices"]["nodes"]
        shuffled = dice.sample(every, len(every))
        half = len(shuffled) // 2
        other = _merged(shuffled[:half])
        other.merge(_merged(shuffled[half:]))
        again = other.document()["roles"]["drivers"]
    assert (again["node_series"], again["devices"]["nodes"]) == (series, devices)
    assert len(series) == len(devices) == min(6, len(every))
    assert 0 in [one["rank"] for one in series], "the first by rank is there, too"
    with_times = [(micros, -n) for n, (rate, micros, _) in enumerate(nodes) if rate]
    without = [(cpu, -n) for n, (rate, _, cpu) in enumerate(nodes) if not rate]
    slowest = -max(without or with_times)[1]
    assert series[0]["rank"] == slowest
    assert slowest in [one["rank"] for one in devices]


def _merged(summaries: list[Summary]) -> Merger:
    merger = Merger()
    for one in summaries:
        merger.add(one)
    return merger
