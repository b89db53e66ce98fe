"""Sampling: /proc as Amazon Linux has it, made into one interval's figures; what cannot be told is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import proc
from agent.proc import Reading, device_figures, figures
from agent.sampler import MOST, Sampler, Series, interval_for
from troop.measure.device_samples import MOST_DEVICE_SAMPLES
from troop.measure.summary import MOST_SAMPLES, OPTIONAL, SERIES, samples_document
from troop.measure.summary_size import TARGET_BYTES

STAT = (
    "cpu  {user} {nice} {system} 1000 {iowait} 0 10 {steal} 99 0\n"
    "cpu0 {one} 1 1 1 1 1 1 1 0 0\ncpu1 {two} 1 1 {idle} {waited} 1 1 1 0 0\nintr 5\n"
)
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
SNMP = """Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs InErrs
Tcp: 1 -1 {segments} {again} 0
"""
DISK_FIGURES = {"disk_reads", "disk_read_bytes", "disk_writes", "disk_write_bytes"}
NOTHING = {"user": 100, "nice": 5, "system": 50, "iowait": 20, "steal": 0} | {"received": 0, "sent": 0}
NOTHING |= {"reads": 10, "read": 100, "writes": 5, "written": 50, "segments": 900, "again": 7}
NOTHING |= {"one": 10, "two": 10, "idle": 10, "waited": 10}


def reading(**changes: int) -> Reading:
    values = NOTHING | changes
    texts = (text.format(**values) for text in (STAT, DISKS, NETWORK, SNMP))
    stat, disks, network, snmp = texts
    return Reading(stat, MEMORY, disks, network, snmp)


BEFORE = reading()


def test_figures_of_a_second() -> None:
    cpu = {"user": 140, "nice": 25, "system": 70, "iowait": 30, "steal": 10}
    after = reading(**cpu, reads=13, read=108, writes=9, written=82, received=1500, sent=700)
    assert {name: value for name, value in figures(BEFORE, after).items() if name not in OPTIONAL} == {
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
def test_unreadable_file_leaves_only_its_figures_out(broken: dict[str, Any], untold: set[str]) -> None:
    sample = figures(BEFORE, replace(reading(user=160, received=5), **broken))
    assert {name for name, value in sample.items() if value is None} - OPTIONAL == untold
    assert set(sample) == set(SERIES)


def test_a_counter_that_went_back_tells_nothing() -> None:
    sample = figures(reading(received=500), reading(user=101, received=400))
    assert sample["network_received_bytes"] is None


def test_a_disk_that_was_attached_meanwhile_counts_from_then_on() -> None:
    before = replace(BEFORE, diskstats=str(BEFORE.diskstats).replace("nvme1n1", "other"))
    assert figures(before, reading(reads=14, user=101))["disk_reads"] == 4


def test_readings_come_from_this_machine(tmp_path: Path) -> None:
    assert proc.read(tmp_path) == Reading(None, None, None, None)
    here = proc.read(Path("/proc"))
    assert figures(here, here)["memory_used"]


def test_busiest_core_is_the_one_that_worked_most_without_disk_waits() -> None:
    """Of two cores, one works for 30 of 40 jiffies; the other waits for 60 of 70 and works for 10."""
    after = reading(one=10, two=40, idle=15, waited=15)
    assert figures(BEFORE, after)["cpu_busiest"] == 750
    waits = figures(reading(), reading(two=20, waited=70))
    assert waits["cpu_busiest"] == round(1000 * 10 / 70)


def test_a_core_that_went_offline_is_not_the_busiest() -> None:
    after = reading(two=40)
    one_core = replace(after, stat=str(after.stat).replace("cpu1", "other"))
    assert figures(BEFORE, one_core)["cpu_busiest"] is None  # cpu0 spent no time at all
    assert figures(BEFORE, after)["cpu_busiest"] == 1000


def test_retransmits_are_counted_beside_the_segments() -> None:
    sample = figures(BEFORE, reading(segments=1900, again=12))
    assert (sample["tcp_sent_segments"], sample["tcp_retransmits"]) == (1000, 5)


def test_counters_of_ec2_are_summed_over_interfaces_and_volumes_and_missing_ones_stay_unknown() -> None:
    none_yet = {"network_in_exceeded": 5, "packet_rate_exceeded": 0}
    before = replace(
        BEFORE,
        network_exceeded={"ens5": none_yet, "ens6": none_yet},
        ebs_exceeded={"nvme0n1": {"volume_iops_exceeded": 100}, "nvme1n1": {"volume_iops_exceeded": 900}},
    )
    after = replace(
        reading(),
        network_exceeded={
            "ens5": none_yet | {"network_in_exceeded": 25},
            "ens6": none_yet | {"network_in_exceeded": 6},
        },
        ebs_exceeded={"nvme0n1": {"volume_iops_exceeded": 400}, "nvme9n1": {"volume_iops_exceeded": 9_999}},
    )
    sample = figures(before, after)
    assert (sample["network_in_exceeded"], sample["packet_rate_exceeded"], sample["conntrack_exceeded"]) == (
        21,
        0,
        None,
    )
    assert sample["volume_iops_exceeded"] == 300, "a volume that was attached meanwhile counts from then on"
    assert figures(BEFORE, after)["network_in_exceeded"] is None


def device(name: str, *counters: int) -> str:
    return f" 259 0 {name} {' '.join(map(str, counters))}\n"


def test_devices_have_waits_queue_and_busy_time_and_arrays_are_devices_of_their_own() -> None:
    quiet = (100, 0, 800, 50, 10, 0, 80, 20, 0, 300, 400)
    busy = (160, 9, 1280, 110, 50, 9, 400, 60, 3, 900, 1600)
    names = ("nvme1n1", "md127", "dm-0")
    before = "".join(device(name, *quiet) for name in (*names, "nvme1n1p1", "loop0", "zram0"))
    after = "".join(device(name, *busy) for name in (*names, "nvme1n1p1", "loop0", "zram0", "sdb"))
    device_values = device_figures(before, after)
    assert set(device_values) == set(names), "no partition, and none that appeared meanwhile"
    assert device_values["md127"] == {
        "operations": 100,
        "reads": 60,
        "writes": 40,
        "read_bytes": 480 * 512,
        "write_bytes": 320 * 512,
        "wait_micros": 100_000,
        "read_wait_micros": 60_000,
        "write_wait_micros": 40_000,
        "queue_millis": 1200,
        "busy_millis": 600,
    }


def test_a_counter_that_began_again_is_unknown_and_the_others_are_not() -> None:
    """The kernel's milliseconds begin again at 2^32, which the queue of a busy disk reaches within hours."""
    before = device("sda", 1, 0, 8, 4_294_967_290, 1, 0, 8, 5, 0, 10, 4_294_967_295)
    after = device("sda", 3, 0, 24, 20, 1, 0, 8, 5, 0, 30, 99)
    its = device_figures(before, after)["sda"]
    assert (its["reads"], its["busy_millis"]) == (2, 20)
    assert (its["read_wait_micros"], its["wait_micros"], its["queue_millis"]) == (None, None, None)


def test_bytes_of_a_disk_and_its_array_count_once_for_the_node() -> None:
    """The totals of the node are those of the whole disks."""
    before = device("nvme1n1", *[0] * 11) + device("md0", *[0] * 11)
    after = device("nvme1n1", 4, 0, 64, 1, 0, 0, 0, 0, 0, 1, 1) + device("md0", 4, 0, 64, 1, 0, 0, 0, 0, 0, 1, 1)
    sample = figures(replace(BEFORE, diskstats=before), replace(reading(), diskstats=after))
    assert (sample["disk_reads"], sample["disk_read_bytes"]) == (4, 64 * 512)


@pytest.mark.parametrize("damaged", [None, "", "rubbish", " 259 0 sda 1 x 3 4 5 6 7 8 9 10 11\n", " 259 0 sda 1 2\n"])
def test_devices_that_cannot_be_read_have_no_samples(damaged: str | None) -> None:
    assert device_figures(damaged, device("sda", *range(11))) == {}


# ------------------------------------------------------------------ over time


def test_samples_begin_at_the_first_reading() -> None:
    series = Series(1)
    for at in (100.01, 101.0, 102.3):
        series.add(at, reading(user=100 + int(at)))
    samples = series.samples()
    assert samples is not None
    assert (samples.start, samples.interval_seconds, len(samples.series["cpu_user"])) == (100, 1, 2)


def test_missed_samples_stay_empty() -> None:
    series = Series(2)
    for at, received in ((100.1, 0), (102.1, 10), (108.2, 1000), (110.0, 1007)):
        series.add(at, reading(received=received, user=int(at)))
    samples = series.samples()
    assert samples is not None
    assert samples.start == 100
    assert samples.series["network_received_bytes"] == [10, None, None, None, 7]


def test_clock_set_back_adds_no_samples_and_a_jump_ahead_has_a_limit() -> None:
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


def disk_reading(reads: int) -> Reading:
    return replace(BEFORE, diskstats=device("sda", reads, 0, 8 * reads, 0, 0, 0, 0, 0, 0, 0, 0))


def test_devices_are_sampled_less_often_than_the_node_and_lose_nothing() -> None:
    series = Series(1, 4)
    for at in range(98, 110):
        series.add(at + 0.1, disk_reading(at))
    samples = series.samples()
    assert samples is not None
    assert samples.devices is not None
    assert len(samples.series["disk_reads"]) == 11
    # From 98 on, which lies in the interval from 96: its sum is of what was seen.
    assert (samples.devices.start, samples.devices.interval_seconds) == (96, 4)
    assert samples.devices.series["sda"]["reads"] == [2, 4, 4]
    assert samples.devices.label("sda") == "sda"


def test_a_device_that_was_added_in_the_phase_has_no_values_before() -> None:
    series = Series(1)
    for at in range(5):
        md = device("md0", at, *[0] * 10) if at >= 2 else ""
        series.add(at, replace(BEFORE, diskstats=device("sda", *[0] * 11) + md))
    samples = series.samples()
    assert samples is not None
    assert samples.devices is not None
    assert samples.devices.series["md0"]["reads"] == [None, None, 1, 1]


def test_a_long_phase_of_many_disks_stays_small() -> None:
    """The day's limit of a phase, on the largest storage instance, is less than half of what a summary may hold."""
    interval = interval_for(86_400, MOST_DEVICE_SAMPLES)
    assert interval == 64
    series = Series(8, interval)
    for number in range(2000):
        disks = "".join(device(f"nvme{n}n1", *[number * 99_999] * 11) for n in range(27))
        series.add(number * interval, replace(BEFORE, diskstats=disks))
    samples = series.samples()
    assert samples is not None
    assert samples.devices is not None
    assert samples.devices.length == MOST_DEVICE_SAMPLES
    assert len(json.dumps(samples_document(samples), separators=(",", ":"))) < TARGET_BYTES / 2


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
