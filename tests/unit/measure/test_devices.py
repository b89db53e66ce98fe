"""Devices and counters of nodes: what a summary holds of them, what their merge is, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.measure.build import START, sampled, summary
from troop.measure.device_samples import MOST_DEVICES, Device, DeviceSamples
from troop.measure.merge import Merger
from troop.measure.merged_devices import MOST_NODE_SERIES
from troop.measure.operations import Operation, Rate
from troop.measure.summary import OPTIONAL, Samples, Summary, SummaryError, parse, parse_samples, samples_document
from troop.measure.summary_size import encoded, fit_summary

VOLUME = Device("ebs", "/dev/sdf", 100 * 2**30)


def disk(name: str, label: str, start: int = START, **series: list[int | None]) -> DeviceSamples:
    return DeviceSamples(start, 2, {name: series}, {name: replace(VOLUME, label=label)})


def node(number: int, devices: DeviceSamples | None, **series: list[int | None]) -> Summary:
    return summary(number, samples=replace(sampled(**(series or {"disk_reads": [1]})), devices=devices))


def role_of(*summaries: Summary) -> dict[str, Any]:
    merger = Merger()
    for one in summaries:
        merger.add(one)
    role: dict[str, Any] = merger.document()["roles"]["drivers"]
    return role


def test_a_summary_of_an_earlier_version_has_neither_counters_nor_devices() -> None:
    document = samples_document(sampled(cpu_user=[1, 2]))
    for name in OPTIONAL:
        del document[name]
    samples = parse_samples(document)
    assert samples is not None
    assert samples.series["tcp_retransmits"] == samples.series["cpu_busiest"] == [None, None]
    assert samples.devices is None
    assert samples_document(samples) == document, "and it is written as it was"
    role = role_of(summary(1, samples=samples))
    assert set(role["samples"]) == {"from", "interval_seconds", *document.keys() - {"from", "interval_seconds"}}
    (line,) = role["nodes"].values()
    assert (line["totals"], line["devices"], role["devices"]) == ({}, {}, None)


def test_single_events_of_the_measured_time_count() -> None:
    """A mean per second would round them away; those of the warm-up are not of the measured time."""
    its = sampled(tcp_retransmits=[9, 0, 0, 1, 0, 0, 1], network_in_exceeded=[None] * 7)
    role = role_of(summary(1, samples=its, measured_from=START + 1.0))
    (line,) = role["nodes"].values()
    assert line["totals"]["tcp_retransmits"] == 2
    assert line["means"]["tcp_retransmits"] == 0
    assert "network_in_exceeded" not in line["totals"]
    assert line["interval_seconds"] == 1


def test_disk_with_another_name_on_each_node_is_one_by_its_label() -> None:
    one = node(1, disk("nvme1n1", "/dev/sdf", reads=[1, 2]))
    other = node(2, disk("nvme2n1", "/dev/sdf", start=START + 2, reads=[10, None]))
    role = role_of(one, other)
    assert role["devices"]["interval_seconds"] == 2
    assert role["devices"]["labels"] == {"/dev/sdf": {"from": START, "devices": 2, "reads": [1, 12, None]}}
    assert [(row["node"], row["device"], row["from"], row["reads"]) for row in role["devices"]["nodes"]] == [
        (one.node, "nvme1n1", START, [1, 2]),
        (other.node, "nvme2n1", START + 2, [10, None]),
    ]


def test_a_devices_totals_are_of_the_measured_time() -> None:
    its = disk("nvme1n1", "/dev/sdf", reads=[100, 10, 10, None], busy_millis=[2000, 500, 1500, 0])
    role = role_of(replace(node(1, its), measured_from=START + 2.0, measured_seconds=6.0))
    (line,) = role["nodes"].values()
    assert line["devices"] == {
        "nvme1n1": {
            "kind": "ebs",
            "label": "/dev/sdf",
            "size_bytes": 100 * 2**30,
            "seconds": 6,
            "reads": 20,
            "busy_millis": 2000,
        }
    }


def test_a_wrong_clock_moves_devices_too() -> None:
    its = node(1, disk("sda", "sda", start=START + 10, reads=[1]))
    assert its.clock is not None
    wrong = replace(its, clock=replace(its.clock, offset_seconds=10.0))
    assert role_of(wrong)["devices"]["labels"]["sda"]["from"] == START


def test_first_nodes_by_rank_have_devices_and_the_sum_has_all() -> None:
    nodes = [node(n, disk("sda", "sda", reads=[1, 1])) for n in range(3 * MOST_NODE_SERIES)]
    role = role_of(*reversed(nodes))
    assert [row["rank"] for row in role["devices"]["nodes"]] == list(range(MOST_NODE_SERIES))
    assert role["devices"]["labels"]["sda"]["reads"] == [len(nodes)] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"devices": []}, "must be an object with devices"),
        ({"from": START + 1}, "multiple of interval_seconds"),
        ({"from": -2}, "must be from 0"),
        ({"interval_seconds": True}, "multiple of interval_seconds"),
        ({"devices": {"../etc": {}}}, "must match"),
        ({"devices": {"sda": 5}}, "must be an object"),
        ({"devices": {"sda": {"kind": "tape", "label": "a"}}}, "kind must be one of"),
        ({"devices": {"sda": {"kind": "", "label": "<script>"}}}, "label must match"),
        ({"devices": {"sda": {"kind": "", "label": "a", "size_bytes": -1}}}, "size_bytes must be"),
        ({"devices": {"sda": {"kind": "", "label": "a", "reads": [1.5]}}}, "whole numbers"),
        ({"devices": {"sda": {"kind": "", "label": "a", "reads": [1], "writes": []}}}, "the same length"),
        ({"devices": {f"sd{n}": {} for n in range(MOST_DEVICES + 1)}}, "the limit is 40"),
    ],
)
def test_devices_of_a_node_are_checked(change: dict[str, Any], message: str) -> None:
    document = summary(1, samples=replace(sampled(cpu_user=[1]), devices=disk("sda", "sda", reads=[1]))).document()
    document["samples"]["devices"] |= change
    with pytest.raises(SummaryError, match=message):
        parse(document)


def test_a_summary_that_is_too_large_loses_its_devices_first() -> None:
    devices = DeviceSamples(START, 2, {f"sd{n}": {"reads": [9] * 500} for n in range(20)})
    large = summary(1, samples=Samples(START, 1, sampled(cpu_user=[1]).series, devices))
    size = len(encoded(large.document()))
    whole, omissions = fit_summary(large, target=size)
    assert (whole, omissions) == (large, [])
    small, omissions = fit_summary(large, target=size - 1)
    assert small.samples is not None
    assert (small.samples.devices, small.outcome) == (None, "ok")
    assert omissions == ["samples of 20 devices are left out, because the summary is too large"]


# ------------------------------------------------------------------ rates without times


def test_rates_of_nodes_add_up_and_their_mean_is_derived() -> None:
    merger = Merger()
    for number, (rate, threads) in enumerate(((1000, 4), (3000, 8))):
        operation = Operation(rate=Rate(rate * 1000, rate * 4096, threads, 10 * rate))
        merger.add(summary(number, operations={"random-readers": operation}))
    (row,) = merger.table()
    assert (row["count"], row["per_second"], row["bytes_per_second"]) == (40_000, 4000, 4000 * 4096)
    assert (row["mean_ms"], row["mean_derived"], row["p99_ms"], row["max_ms"]) == (3, True, None, None)


def test_a_rate_without_threads_or_counts_on_one_node_has_neither_in_all() -> None:
    both = Rate(1000, 10, 4, 100).plus(Rate(2000, 20))
    assert both == Rate(3000, 30, 0, 0)
    assert both.mean_ms is None


def test_a_measured_mean_is_not_derived() -> None:
    operation = Operation()
    operation.times.record(1500, 2)
    merger = Merger()
    merger.add(summary(1, operations={"read": operation}))
    (row,) = merger.table()
    assert row["mean_ms"] == 1.5
    assert not row.get("mean_derived")
