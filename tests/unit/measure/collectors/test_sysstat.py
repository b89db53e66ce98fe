"""sysstat's JSON, as 12.6 has written it, by sadf and by iostat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from troop.measure.collectors import sysstat
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.summary import OPTIONAL, SERIES, parse_samples, samples_document

DATA = Path(__file__).with_name("data")


def statistics(name: str) -> list[dict[str, Any]]:
    intervals: list[dict[str, Any]] = json.loads((DATA / name).read_text())["sysstat"]["hosts"][0]["statistics"]
    return intervals


def test_sadf_tells_all_that_a_node_samples() -> None:
    problems = Problems()
    samples = sysstat.read(DATA / "sadf-12.6.json", problems)
    assert problems.lines() == []
    intervals = statistics("sadf-12.6.json")
    assert (samples.start, samples.interval_seconds) == (1_795_297_524, 1)  # 21:45:25 ended the first
    again = parse_samples(samples_document(samples))
    assert again is not None
    assert samples_document(again) == samples_document(samples)
    assert {len(samples.series[name]) for name in SERIES} == {len(intervals)} == {5}
    last = intervals[-1]
    cards = [card for card in last["network"]["net-dev"] if card["iface"] == "eth0"]
    assert {name: values[-1] for name, values in samples.series.items() if name not in OPTIONAL} == {
        "cpu_user": round(10 * (last["cpu-load"][0]["user"] + last["cpu-load"][0]["nice"])),
        "cpu_system": round(10 * last["cpu-load"][0]["system"]),
        "cpu_iowait": round(10 * last["cpu-load"][0]["iowait"]),
        "cpu_steal": 0,
        "memory_used": last["memory"]["memused"] * 1024,
        "disk_reads": round(last["io"]["io-reads"]["rtps"]),
        "disk_writes": round(last["io"]["io-writes"]["wtps"]),
        "disk_read_bytes": round(512 * last["io"]["io-reads"]["bread"]),
        "disk_write_bytes": round(512 * last["io"]["io-writes"]["bwrtn"]),
        "network_received_bytes": round(1024 * cards[0]["rxkB"]),
        "network_sent_bytes": round(1024 * cards[0]["txkB"]),
    }
    assert samples.series["disk_writes"][-1], "there was something to see"


def test_kinds_of_cpu_time_are_put_together_as_those_of_proc() -> None:
    samples = sysstat.read(DATA / "sadf-12.6-all.json", Problems())
    first = statistics("sadf-12.6-all.json")[0]["cpu-load"][0]
    assert samples.series["cpu_user"][0] == round(10 * (first["usr"] + first["nice"]))
    assert samples.series["cpu_system"][0] == round(10 * first["sys"])
    assert samples.series["disk_reads"] == [None] * 5


def test_iostats_first_report_is_of_the_time_since_boot_and_left_out() -> None:
    problems = Problems()
    samples = sysstat.read(DATA / "iostat-12.6.json", problems)
    assert problems.lines() == []
    intervals = statistics("iostat-12.6.json")
    assert (samples.start, samples.interval_seconds) == (1_795_297_529, 1)  # 21:45:29 ended that of the boot
    assert samples.series["disk_reads"] == [round(one["disk"][0]["r/s"]) for one in intervals[1:]]
    assert samples.series["disk_read_bytes"] == [round(1024 * one["disk"][0]["rkB/s"]) for one in intervals[1:]]
    assert samples.series["cpu_iowait"] == [round(10 * one["avg-cpu"]["iowait"]) for one in intervals[1:]]
    assert samples.series["memory_used"] == samples.series["network_sent_bytes"] == [None] * 3


def test_iostats_devices_keep_wait_queue_size_and_utilization() -> None:
    devices = sysstat.read(DATA / "iostat-12.6.json", Problems()).devices
    assert devices is not None
    disk = statistics("iostat-12.6.json")[-1]["disk"][0]
    last = {name: values[-1] for name, values in devices.series["vda"].items()}
    assert (last["reads"], last["operations"]) == (round(disk["r/s"]), round(disk["r/s"] + disk["w/s"]))
    assert last["read_wait_micros"] == last["wait_micros"] == round(1000 * disk["r_await"] * disk["r/s"])
    assert last["read_bytes"] == pytest.approx(1024 * disk["rareq-sz"] * disk["r/s"], rel=0.001)
    assert (last["queue_millis"], last["busy_millis"]) == (1000 * disk["aqu-sz"], 10 * disk["util"])


def test_sadfs_devices_keep_what_sar_d_records() -> None:
    devices = sysstat.read(DATA / "sadf-12.6.json", Problems()).devices
    assert devices is not None
    place = [one["disk"][0]["tps"] for one in statistics("sadf-12.6.json")].index(412.0)
    disk = statistics("sadf-12.6.json")[place]["disk"][0]
    its = {name: values[place] for name, values in devices.series["vda"].items()}
    assert its == {
        "operations": 412,
        "read_bytes": round(1024 * disk["rkB"]),
        "write_bytes": round(1024 * disk["wkB"]),
        "wait_micros": round(1000 * 4.24 * 412),
        "queue_millis": 1740,
        "busy_millis": 276,
    }


def test_arrays_are_devices_and_their_bytes_are_not_added_to_those_of_disks() -> None:
    text = by_iostat(*[{"r/s": 4.0, "w/s": 1.0, "rkB/s": 16.0, "wkB/s": 4.0}] * 2)
    document = json.loads(text)
    for one in document["sysstat"]["hosts"][0]["statistics"]:
        one["disk"] += [{**one["disk"][0], "disk_device": name} for name in ("md0", "dm-1", "vda1", "loop3")]
    samples = sysstat.samples(json.dumps(document), "a.json", Problems())
    assert samples.series["disk_reads"] == [4]
    assert samples.devices is not None
    assert set(samples.devices.series) == {"vda", "md0", "dm-1"}


@pytest.mark.parametrize(
    ("older", "value"),
    [("await", "wait_micros"), ("avgqu-sz", "queue_millis"), ("kB/s", "bytes"), ("util", "busy_millis")],
)
def test_columns_of_other_versions_and_of_combined_reads_and_writes(older: str, value: str) -> None:
    samples = sysstat.samples(by_iostat({}, {"tps": 10.0, older: 2.0}), "a.json", Problems())
    assert samples.devices is not None
    expected = {"wait_micros": 20_000, "queue_millis": 2000, "bytes": 2048, "busy_millis": 20}[value]
    assert samples.devices.series["vda"][value] == [expected]


def test_the_busiest_core_is_known_where_sar_recorded_each() -> None:
    document = json.loads(every_ten_seconds((10, 10)))
    core = {"user": 1.0, "nice": 0.0, "system": 2.0, "iowait": 3.0, "steal": 0.5, "idle": 93.5}
    cores = [{"cpu": "all", **core}, {"cpu": "0", **core}, {"cpu": "1", **core, "user": 80.0, "idle": 14.5}]
    document["sysstat"]["hosts"][0]["statistics"][0]["cpu-load"] = cores
    samples = sysstat.samples(json.dumps(document), "a.json", Problems())
    assert samples.series["cpu_busiest"] == [825]


def by_iostat(*disks: dict[str, float], **cpu: float) -> str:
    """iostat's JSON of a report a second, each of one disk."""
    idle = {"user": 1.0, "nice": 0.0, "system": 0.0, "iowait": 0.0, "steal": 0.0, **cpu}
    intervals = [
        {"timestamp": f"2026-11-21T21:45:{n:02}+0000", "avg-cpu": idle, "disk": [{"disk_device": "vda", **disk}]}
        for n, disk in enumerate(disks)
    ]
    return json.dumps({"sysstat": {"hosts": [{"statistics": intervals}]}})


@pytest.mark.parametrize(
    ("names", "unit"),
    [
        (("rkB/s", "wkB/s"), 1024),
        (("kB_read/s", "kB_wrtn/s"), 1024),
        (("rMB/s", "wMB/s"), 1024**2),
        (("MB_read/s", "MB_wrtn/s"), 1024**2),
    ],
)
def test_iostat_tells_bytes_in_units_of_its_options(names: tuple[str, str], unit: int) -> None:
    problems = Problems()
    samples = sysstat.samples(by_iostat({}, dict(zip(names, (3.0, 0.5), strict=True))), "a.json", problems)
    assert problems.lines() == []
    assert (samples.series["disk_read_bytes"], samples.series["disk_write_bytes"]) == ([3 * unit], [unit // 2])


def test_report_without_separate_reads_is_one_problem_and_other_values_count() -> None:
    """As of iostat -x -s."""
    problems = Problems()
    samples = sysstat.samples(by_iostat(*[{"tps": 2.0, "kB/s": 9.0}] * 30), "a.json", problems)
    assert samples.series["cpu_user"] == [10] * 29
    assert samples.series["disk_read_bytes"] == [None] * 29
    (problem,) = problems.lines()
    assert problem == "a.json:1: the report does not separate reads and writes: run iostat without -s"


def test_first_report_counts_only_without_boot() -> None:
    """Of iostat -y; it took as long as the next one."""
    disks = [{"rkB/s": float(n), "wkB/s": 0.0, "r/s": float(n), "w/s": 0.0} for n in range(1, 4)]
    problems = Problems()
    samples = sysstat.samples(by_iostat(*disks), "a.json", problems, without_boot=True)
    assert (samples.start, samples.series["disk_reads"]) == (1_795_297_499, [1, 2, 3])
    assert sysstat.samples(by_iostat(*disks), "a.json", problems).series["disk_reads"] == [2, 3]
    assert problems.lines() == []
    with pytest.raises(CollectorError, match="no readable interval"):
        sysstat.samples(by_iostat(disks[0]), "a.json", problems, without_boot=True)


def every_ten_seconds(*ends: tuple[int, int]) -> str:
    """sadf's JSON of intervals that ended so many seconds after 12:00:00, and took so long; 2 reads a second in all."""
    intervals = [
        {
            "timestamp": {"date": "2026-11-21", "time": f"12:{end // 60:02}:{end % 60:02}", "utc": 1, "interval": took},
            "io": {"io-reads": {"rtps": 2.0, "bread": 8.0}, "io-writes": {"wtps": 0.5, "bwrtn": 0.0}},
        }
        for end, took in ends
    ]
    return json.dumps({"sysstat": {"hosts": [{"statistics": intervals}]}})


@pytest.mark.parametrize(
    ("ends", "start", "reads"),
    [
        ([(10, 10), (20, 10)], 0, [20, 20]),
        ([(17, 10), (27, 10)], 10, [20, 20]),
        ([(10, 10), (30, 10)], 0, [20, None, 20]),
        ([(10, 10), (30, 20), (40, 10)], 0, [20, 20, 20, 20]),
    ],
)
def test_rates_become_amounts_of_equal_intervals(
    ends: list[tuple[int, int]], start: int, reads: list[int | None]
) -> None:
    samples = sysstat.samples(every_ten_seconds(*ends), "a.json", Problems())
    assert samples.start - 1_795_262_400 == start
    assert samples.interval_seconds == 10
    assert samples.series["disk_reads"] == reads


@pytest.mark.parametrize("name", ["sadf-12.6.json", "iostat-12.6.json"])
def test_intervals_before_a_truncation_count(name: str) -> None:
    text = (DATA / name).read_text()
    cut = text[: text.rindex('"iowait"')]
    problems = Problems()
    samples = sysstat.samples(cut, "a.json", problems)
    assert len(samples.series["cpu_user"]) == len(sysstat.read(DATA / name, Problems()).series["cpu_user"]) - 1
    (problem,) = problems.lines()
    assert problem.startswith(f"a.json:{cut.count(chr(10)) + 1}: the JSON is cut off")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.json:1: not JSON of sysstat"),
        ("Linux 6.1 (vm)  11/21/26  _x86_64_\n", "a.json:1: not JSON of sysstat"),
        ('{"sysstat": {"hosts": []}}', "a.json:1: there is no readable interval"),
        ('{"sysstat": {"hosts": [{"statistics": [{"avg-cpu": {}}]}]}}', "run iostat with -t"),
        ('{"sysstat": {"hosts": [{"statistics": [{"timestamp": {}}]}]}}', "'date' is missing"),
    ],
)
def test_text_without_an_interval_is_refused(text: str, message: str) -> None:
    with pytest.raises(CollectorError, match=message):
        sysstat.samples(text, "a.json", Problems())


@pytest.mark.parametrize("phase", [0, 3, 5, 8])
def test_interval_a_second_shorter_or_longer_than_others_counts(phase: int) -> None:
    """sadc wakes up a moment late, and then in time again."""
    ends = ((10, 10), (20, 10), (29, 9), (40, 11), (50, 10), (61, 11), (70, 9), (80, 10))
    taken = [(1_000_000_000 + phase + end, seconds, {"memory_used": float(end)}) for end, seconds in ends]
    samples = sysstat._in_line(taken, "a.json")
    assert (samples.start - 1_000_000_000, samples.interval_seconds) == (10 if phase >= 5 else 0, 10)
    assert samples.series["memory_used"] == [10, 20, 29, 40, 50, 61, 70, 80]


def test_an_interval_as_long_as_several_fills_them() -> None:
    taken = [
        (1_000_000_000 + end, seconds, {"memory_used": float(end)})
        for end, seconds in ((10, 10), (20, 10), (51, 31), (60, 9))
    ]
    assert sysstat._in_line(taken, "a.json").series["memory_used"] == [10, 20, 51, 51, 51, 60]


def test_output_of_another_program_of_sysstat_has_nothing_to_read() -> None:
    report = {"timestamp": "2026-11-26T15:00:01+0000", "network-filesystem": [{"filesystem": "a", "rkB/s": 1.0}]}
    later = {**report, "timestamp": "2026-11-26T15:00:02+0000"}
    text = json.dumps({"sysstat": {"hosts": [{"statistics": [report, later]}]}})
    with pytest.raises(CollectorError, match="the intervals have no metric of processors, disks, memory or network"):
        sysstat.samples(text, "a.json", Problems())
