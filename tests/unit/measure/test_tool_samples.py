"""Node metrics that a tool has told, in place of those that were sampled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from troop.measure import tool_samples
from troop.measure.device_samples import Device, DeviceSamples
from troop.measure.summary import SERIES, Samples
from troop.measure.tool_samples import replace_samples


def samples(start: int, interval: int, **series: list[int | None]) -> Samples:
    length = len(next(iter(series.values())))
    empty: list[int | None] = [None] * length
    return Samples(start, interval, {name: series.get(name, list(empty)) for name in SERIES})


SAMPLED = samples(1000, 1, cpu_user=[1, 2, 3, 4], disk_reads=[5, 6, 7, 8], memory_used=[9, 9, 9, 9])


def test_samples_of_the_tool_replace_sampled_values_where_it_has_any() -> None:
    overlay = replace_samples(SAMPLED, samples(1001, 1, cpu_user=[70, None, 90, 100, 110], disk_reads=[0, 1, 2, 3, 4]))
    assert (overlay.start, overlay.interval_seconds) == (1000, 1)
    assert overlay.series["cpu_user"] == [1, 70, 3, 90]
    assert overlay.series["disk_reads"] == [5, 0, 1, 2]
    assert overlay.series["memory_used"] == [9, 9, 9, 9]


def test_longer_intervals_are_split_and_amounts_keep_their_sum() -> None:
    overlay = replace_samples(SAMPLED, samples(1000, 4, cpu_user=[50], disk_reads=[10]))
    assert overlay.series["cpu_user"] == [50, 50, 50, 50]
    assert overlay.series["disk_reads"] == [2, 3, 2, 3]


def test_shorter_intervals_are_combined_where_all_of_them_have_values() -> None:
    sampled = samples(1000, 2, cpu_user=[1, 2], disk_reads=[3, 4])
    overlay = replace_samples(sampled, samples(1001, 1, cpu_user=[10, 20, 40], disk_reads=[1, 1, 1]))
    assert overlay.series["cpu_user"] == [1, 30]
    assert overlay.series["disk_reads"] == [3, 2]


def test_only_intervals_of_the_sampled_time_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[int] = []
    by_second = tool_samples._by_second

    def counting(values: list[int | None], interval: int, *, level: bool) -> list[int | None]:
        split.append(len(values) * interval)
        return by_second(values, interval, level=level)

    monkeypatch.setattr(tool_samples, "_by_second", counting)
    days = samples(0, 3600, cpu_user=[7] * 100)
    assert replace_samples(SAMPLED, days).series["cpu_user"] == [7, 7, 7, 7]
    assert max(split) == 3600


def test_another_time_changes_nothing() -> None:
    for start in (0, 990, 5000):
        assert replace_samples(SAMPLED, samples(start, 1, cpu_user=[70, 80])) == SAMPLED


def device_samples(start: int, interval: int, **reads: list[int | None]) -> DeviceSamples:
    return DeviceSamples(start, interval, {name: {"reads": values} for name, values in reads.items()})


def test_devices_of_a_tool_replace_sampled_devices_in_their_intervals() -> None:
    mine = replace(device_samples(1000, 2, sda=[1, 2], sdb=[3, 4]), devices={"sda": Device("ebs", "/dev/sdf", 9)})
    overlay = replace_samples(
        replace(SAMPLED, devices=mine),
        replace(samples(1001, 1, cpu_user=[1]), devices=device_samples(1001, 1, sda=[5, 10, 20], md0=[7, 8, 9])),
    ).devices
    assert overlay is not None
    assert (overlay.start, overlay.interval_seconds) == (1000, 2)
    assert {name: its["reads"] for name, its in overlay.series.items()} == {
        "sda": [1, 30],
        "sdb": [3, 4],
        "md0": [None, 17],
    }
    assert overlay.label("sda") == "/dev/sdf"


def test_devices_that_only_the_tool_knows_get_the_intervals_of_the_node() -> None:
    overlay = replace_samples(
        SAMPLED, replace(samples(1000, 4, cpu_user=[1]), devices=device_samples(1000, 4, sda=[8]))
    ).devices
    assert overlay == device_samples(1000, 1, sda=[2, 2, 2, 2])
