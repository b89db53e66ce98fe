"""Sampling: /proc as Amazon Linux has it, made into one interval's figures; what cannot be told is left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent import proc
from agent.proc import Reading, figures
from agent.sampler import MOST, Sampler, Series, interval_for
from troop.measure.summary import MOST_SAMPLES, SERIES

STAT = "cpu  {user} {nice} {system} 1000 {iowait} 0 10 {steal} 99 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5\n"
MEMORY = "MemTotal:        8000000 kB\nMemFree:          100000 kB\nMemAvailable:    6000000 kB\nBuffers: 5 kB\n"
DISKS = """ 259       0 nvme0n1 {reads} 7 {read} 9 {writes} 7 {written} 9 0 1 1 0 0 0 0 0 0
 259       1 nvme0n1p1 {reads} 7 {read} 9 {writes} 7 {written} 9 0 1 1 0 0 0 0 0 0
 259       2 nvme1n1 10 7 80 9 20 7 160 9 0 1 1 0 0 0 0 0 0
   7       0 loop0 {reads} 0 {read} 0 {writes} 0 {written} 0 0 0 0
 253       0 dm-0 {reads} 0 {read} 0 {writes} 0 {written} 0 0 0 0
"""
NETWORK = """Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier
    lo: 9999999    100    0    0    0     0          0         0  9999999    100    0    0    0     0       0
  ens5: {received}    100    0    0    0     0          0         0  {sent}    100    0    0    0     0       0
"""
DISK_FIGURES = {"disk_reads", "disk_read_bytes", "disk_writes", "disk_write_bytes"}
NOTHING = {"user": 100, "nice": 5, "system": 50, "iowait": 20, "steal": 0} | {"received": 0, "sent": 0}
NOTHING |= {"reads": 10, "read": 100, "writes": 5, "written": 50}


def reading(**changes: int) -> Reading:
    values = NOTHING | changes
    return Reading(STAT.format(**values), MEMORY, DISKS.format(**values), NETWORK.format(**values))


BEFORE = reading()


def test_figures_of_a_second() -> None:
    cpu = {"user": 140, "nice": 25, "system": 70, "iowait": 30, "steal": 10}
    after = reading(**cpu, reads=13, read=108, writes=9, written=82, received=1500, sent=700)
    assert figures(BEFORE, after) == {
        "cpu_user": 600,
        "cpu_system": 200,
        "cpu_iowait": 100,
        "cpu_steal": 100,
        "memory_used": 2_000_000 * 1024,
        "disk_reads": 3,
        "disk_read_bytes": 8 * 512,
        "disk_writes": 4,
        "disk_write_bytes": 32 * 512,
        "network_received_bytes": 1500,
        "network_sent_bytes": 700,
    }


@pytest.mark.parametrize(
    ("broken", "untold"),
    [
        ({"stat": None}, {"cpu_user", "cpu_system", "cpu_iowait", "cpu_steal"}),
        ({"stat": ""}, {"cpu_user", "cpu_system", "cpu_iowait", "cpu_steal"}),
        ({"meminfo": "MemTotal: 5 kB\n"}, {"memory_used"}),
        ({"diskstats": None}, DISK_FIGURES),
        (
            {"diskstats": "   7 0 loop0 1 2 3 4 5 6 7 8\n"},
            DISK_FIGURES,
        ),
        ({"diskstats": "rubbish"}, DISK_FIGURES),
        ({"net_dev": "no colon"}, {"network_received_bytes", "network_sent_bytes"}),
    ],
)
def test_what_cannot_be_read_is_not_told_and_the_rest_is(broken: dict[str, str | None], untold: set[str]) -> None:
    sample = figures(BEFORE, replace(reading(user=160, received=5), **broken))
    assert {name for name, value in sample.items() if value is None} == untold
    assert set(sample) == set(SERIES)


def test_a_counter_that_went_back_tells_nothing() -> None:
    sample = figures(reading(received=500), reading(user=101, received=400))
    assert sample["network_received_bytes"] is None


def test_a_disk_that_was_attached_meanwhile_counts_from_then_on() -> None:
    before = replace(BEFORE, diskstats=str(BEFORE.diskstats).replace("nvme1n1", "other"))
    assert figures(before, reading(reads=14, user=101))["disk_reads"] == 4


def test_it_reads_this_machine(tmp_path: Path) -> None:
    assert proc.read(tmp_path) == Reading(None, None, None, None)
    here = proc.read(Path("/proc"))
    assert figures(here, here)["memory_used"]


# ------------------------------------------------------------------ over time


def test_samples_begin_at_the_first_reading() -> None:
    series = Series(1)
    for at in (100.01, 101.0, 102.3):
        series.add(at, reading(user=100 + int(at)))
    samples = series.samples()
    assert samples is not None
    assert (samples.start, samples.interval_seconds, len(samples.series["cpu_user"])) == (100, 1, 2)


def test_what_was_missed_is_not_told() -> None:
    series = Series(2)
    for at, received in ((100.1, 0), (102.1, 10), (108.2, 1000), (110.0, 1007)):
        series.add(at, reading(received=received, user=int(at)))
    samples = series.samples()
    assert samples is not None
    assert samples.start == 100
    assert samples.series["network_received_bytes"] == [10, None, None, None, 7]


def test_a_clock_that_is_set_back_is_waited_for_and_one_that_jumps_ahead_makes_no_endless_list() -> None:
    series = Series(1)
    for at in (100.0, 101.0, 50.0, 101.5, 102.0):
        series.add(at, reading(user=int(at)))
    samples = series.samples()
    assert samples is not None
    assert len(samples.series["cpu_user"]) == 2
    series.add(10**9, reading())
    later = series.samples()
    assert later is not None
    assert len(later.series["cpu_user"]) == MOST < MOST_SAMPLES


def test_one_reading_is_no_sample() -> None:
    series = Series(1)
    assert series.samples() is None
    series.add(100, BEFORE)
    assert series.samples() is None


@pytest.mark.parametrize(("timeout", "interval"), [(5, 1), (10_800, 1), (10_801, 2), (86_400, 8)])
def test_long_phases_are_sampled_less_often(timeout: float, interval: int) -> None:
    assert interval_for(timeout) == interval


def test_a_sampler_samples_until_it_is_stopped(tmp_path: Path) -> None:
    now = iter(n / 10 for n in range(9_990, 100_000, 5))
    sampler = Sampler(1, tmp_path, lambda: next(now))
    sampler._over.wait = lambda seconds: sampler._over.is_set()  # type: ignore[method-assign, assignment, misc]
    sampler.start()
    while sampler._series.samples() is None:
        pass
    assert sampler.stop() is not None
