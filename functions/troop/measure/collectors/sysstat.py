"""Reads node metrics from sysstat's JSON: ``sadf -j -- -u -b -r -n DEV``, and ``iostat -x -t -o JSON``.

Both report rates per second over an interval, which are converted to amounts. Missing metrics (iostat: memory and
network) stay None. Values of each disk, and of each device on top of disks, are kept beside the totals. iostat's first
report covers the time since boot and is left out, except with ``-y``, which the JSON does not show. Times are UTC, as
on nodes, unless they state another zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Union

from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.json_elements import elements
from troop.measure.device_samples import DEVICE_SERIES, MOST_DEVICES, DeviceSamples
from troop.measure.devices import INTERFACE, STACKED_DEVICE, WHOLE_DISK
from troop.measure.histogram import HIGHEST
from troop.measure.summary import BUSIEST, LEVELS, LONGEST_INTERVAL, MOST_SAMPLES, SERIES, Samples, busy

KIB, MIB = 1024, 1024**2
BLOCK = 512
"""Bytes in a block of sysstat's ``bread`` and ``bwrtn``."""

_FORMATS = ("%Y-%m-%dT%H:%M:%S%z", "%m/%d/%y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%y %H:%M:%S")
"""iostat's time formats: ISO, with S_TIME_FORMAT=ISO, and those of locales."""

Key = Union[str, tuple[str, str]]
"""A name of ``SERIES``, or a device and a name of ``DEVICE_SERIES``."""

Rates = dict[Key, float]
"""Rates by key: thousandths, bytes, or amounts per second."""

MICROS = 1000
"""Microseconds per millisecond."""


def read(path: Path, problems: Problems, *, without_boot: bool = False) -> Samples:
    """Reads all intervals of the file; None for intervals that are missing.

    Args:
        without_boot: the file is from ``iostat -y``: its first report counts, and is as long as the second.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file has no readable interval.
    """
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return samples(text, str(path), problems, without_boot=without_boot)


def samples(text: str, name: str, problems: Problems, *, without_boot: bool = False) -> Samples:
    """Reads samples from a file's text, as :func:`read` does."""
    if '"sysstat"' not in text[:1000]:
        raise CollectorError(f"{name}:1: not JSON of sysstat: use sadf -j or iostat -o JSON")
    taken: list[tuple[int, int, Rates]] = []  # end, seconds, rates
    before: int | None = None
    first: tuple[int, Rates] | None = None
    lacking: set[str] = set()
    for line, statistics in elements(text, "statistics", name, problems):
        try:
            if "avg-cpu" in statistics or "timestamp" not in statistics or isinstance(statistics["timestamp"], str):
                ended = _moment(statistics)
                if before is not None and ended > before:
                    if first is not None:
                        taken.append(_checked(first[0], ended - before, first[1]))
                        first = None
                    taken.append(_checked(ended, ended - before, _iostat(statistics, lacking)))
                elif before is None and without_boot:
                    first = ended, _iostat(statistics, lacking)
                before = ended
            else:
                ended, seconds = _stamp(statistics["timestamp"])
                taken.append(_checked(ended, seconds, _sadf(statistics)))
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else error
            problems.add(f"{name}:{line}: cannot read an interval: {why}")
    for sentence in sorted(lacking):
        problems.add(f"{name}:1: {sentence}")
    if not taken:
        raise CollectorError(f"{name}:{text.count(chr(10)) + 1}: there is no readable interval" + _why(problems))
    if not any(rates for _, _, rates in taken):
        raise CollectorError(
            f"{name}:1: the intervals have no metric of processors, disks, memory or network interfaces"
        )
    return _in_line(taken, name)


def _checked(ended: int, seconds: int, rates: Rates) -> tuple[int, int, Rates]:
    if not 1 <= seconds <= LONGEST_INTERVAL or ended < seconds:
        raise ValueError(f"an interval of {seconds} s is out of range")
    for name, rate in rates.items():
        if not 0 <= rate * seconds <= HIGHEST:  # false for NaN
            raise ValueError(f"{name} is {rate}, which is out of range")
    return ended, seconds, rates


def _why(problems: Problems) -> str:
    return f" ({problems.sentences[0]})" if problems.sentences else ""


def _in_line(taken: Sequence[tuple[int, int, Mapping[Any, float]]], name: str) -> Samples:
    """Aligns the intervals: each goes where its middle is, because sadc sometimes wakes up late. One that is as long as
    several others fills as many places.
    """
    interval = Counter(seconds for _, seconds, _ in taken).most_common(1)[0][0]
    phase = Counter(ended % interval for ended, seconds, _ in taken if seconds == interval).most_common(1)[0][0]
    begins = phase if 2 * phase < interval else phase - interval  # the usual offset of intervals since 1970
    placed = [(*_place(ended - begins, seconds, interval), rates) for ended, seconds, rates in taken]
    first = min(begin for begin, _, _ in placed)
    length = max(end for _, end, _ in placed) - first
    if length > MOST_SAMPLES:
        raise CollectorError(f"{name}:1: there are {length} intervals; the limit is {MOST_SAMPLES}")
    series: dict[Key, list[int | None]] = {key: [None] * length for key in SERIES}
    for begin, end, rates in placed:
        for at in range(begin - first, end - first):
            for key, rate in rates.items():
                series.setdefault(key, [None] * length)[at] = round(rate if key in LEVELS else rate * interval)
    node_values = {key: series[key] for key in SERIES}
    return Samples(first * interval, interval, node_values, _devices_in(series, first * interval, interval))


def _devices_in(series: Mapping[Key, list[int | None]], start: int, interval: int) -> DeviceSamples | None:
    device_values: dict[str, dict[str, list[int | None]]] = {}
    for key, values in series.items():
        if isinstance(key, tuple) and (key[0] in device_values or len(device_values) < MOST_DEVICES):
            device_values.setdefault(key[0], {})[key[1]] = values
    return DeviceSamples(start, interval, device_values) if device_values else None


def _place(ended: int, seconds: int, interval: int) -> tuple[int, int]:
    """Returns the numbers of the intervals to fill, counted from 1970; the last one is excluded."""
    several = max(1, (2 * seconds + interval) // (2 * interval))
    begin = (2 * ended - seconds - (several - 1) * interval) // (2 * interval)
    return begin, begin + several


def _stamp(statistics: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the end and the length of an interval of sadf."""
    ended = datetime.strptime(f"{statistics['date']} {statistics['time']}", "%Y-%m-%d %H:%M:%S").replace(
        tzinfo=timezone.utc
    )
    seconds = int(statistics["interval"])
    if not statistics.get("utc", 1):
        raise ValueError("the times are local: use sadf without -T")
    return int(ended.timestamp()), seconds


def _moment(statistics: Mapping[str, Any]) -> int:
    if "timestamp" not in statistics:
        raise ValueError("the timestamp is missing: run iostat with -t and the environment variable S_TIME_FORMAT=ISO")
    for how in _FORMATS:
        try:
            moment = datetime.strptime(statistics["timestamp"], how)  # noqa: DTZ007 - UTC unless it states a zone
        except ValueError:
            continue
        return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp())
    raise ValueError(
        f"unknown timestamp {statistics['timestamp']!r}: run iostat with the environment variable S_TIME_FORMAT=ISO"
    )


def _sadf(statistics: Mapping[str, Any]) -> Rates:
    rates: Rates = {}
    for key in ("cpu-load", "cpu-load-all"):
        cores = []
        for cpu in statistics.get(key, ()):
            if str(cpu["cpu"]) in ("all", "-1"):
                rates.update(_cpu(cpu))
            else:
                cores.append(busy(_cpu(cpu)) or 0.0)
        if cores:  # sar was started with -P ALL
            rates[BUSIEST] = max(cores)
    for disk in statistics.get("disk", ()):
        rates.update(_device(disk, "disk-device"))
    if io := statistics.get("io"):
        rates["disk_reads"], rates["disk_writes"] = io["io-reads"]["rtps"], io["io-writes"]["wtps"]
        rates["disk_read_bytes"] = io["io-reads"]["bread"] * BLOCK
        rates["disk_write_bytes"] = io["io-writes"]["bwrtn"] * BLOCK
    elif disks := _disks(statistics.get("disk", ()), "disk-device"):
        rates["disk_read_bytes"] = sum(disk["rkB"] for disk in disks) * KIB
        rates["disk_write_bytes"] = sum(disk["wkB"] for disk in disks) * KIB
    if "memused" in statistics.get("memory", {}):
        rates["memory_used"] = statistics["memory"]["memused"] * KIB
    if cards := [
        card for card in statistics.get("network", {}).get("net-dev", ()) if INTERFACE.fullmatch(card["iface"])
    ]:
        rates["network_received_bytes"] = sum(card["rxkB"] for card in cards) * KIB
        rates["network_sent_bytes"] = sum(card["txkB"] for card in cards) * KIB
    return rates


def _iostat(statistics: Mapping[str, Any], lacking: set[str]) -> Rates:
    """Returns the rates of a report.

    Args:
        lacking: receives a sentence for each value that the report could contain but does not.
    """
    rates: Rates = {}
    if "avg-cpu" in statistics:
        rates.update(_cpu(statistics["avg-cpu"]))
    for disk in statistics.get("disk", ()):
        rates.update(_device(disk, "disk_device"))
    disks = _disks(statistics.get("disk", ()), "disk_device")
    if not disks:
        return rates
    for key, names in _IOSTAT.items():
        if unit := next((name for name in names if name in disks[0]), None):
            rates[key] = names[unit] * sum(disk[unit] for disk in disks)
        elif "bytes" in key:
            lacking.add("the report does not separate reads and writes: run iostat without -s")
    return rates


_IOSTAT: Mapping[str, Mapping[str, int]] = {
    "disk_reads": {"r/s": 1},
    "disk_writes": {"w/s": 1},
    "disk_read_bytes": {"rkB/s": KIB, "kB_read/s": KIB, "rMB/s": MIB, "MB_read/s": MIB},
    "disk_write_bytes": {"wkB/s": KIB, "kB_wrtn/s": KIB, "wMB/s": MIB, "MB_wrtn/s": MIB},
}
"""iostat's names with and without ``-x`` and with ``-m``, and the unit of each."""


def _disks(disks: Any, key: str) -> list[Mapping[str, Any]]:
    """Returns the whole disks, without partitions and devices on top of disks, which would count twice."""
    return [disk for disk in disks if WHOLE_DISK.fullmatch(disk[key])]


def _device(disk: Mapping[str, Any], key: str) -> Rates:
    """Returns the rates of one disk, or of one device on top of disks, from iostat or sadf; nothing of a partition."""
    name = disk[key]
    if not (WHOLE_DISK.fullmatch(name) or STACKED_DEVICE.fullmatch(name)):
        return {}
    values: dict[str, float] = {}
    for series, names in _DEVICE.items():
        if column := next((column for column in names if column in disk), None):
            values[series] = names[column] * disk[column]
    if "operations" not in values and "reads" in values and "writes" in values:
        values["operations"] = values["reads"] + values["writes"]
    # Waits are means per operation. Weighted by the operations, they add up over time.
    for series, wait, operations in _WAITS:
        if wait in disk and operations in values:
            values[series] = disk[wait] * MICROS * values[operations]
    if "wait_micros" not in values and "read_wait_micros" in values and "write_wait_micros" in values:
        values["wait_micros"] = values["read_wait_micros"] + values["write_wait_micros"]
    return {(name, series): values[series] for series in DEVICE_SERIES if series in values}


_PER_SECOND = 1000
"""Milliseconds per second."""

_DEVICE: Mapping[str, Mapping[str, float]] = {
    "operations": {"tps": 1},
    "reads": {"r/s": 1},
    "writes": {"w/s": 1},
    "read_bytes": {**_IOSTAT["disk_read_bytes"], "rkB": KIB, "rd_sec": BLOCK},
    "write_bytes": {**_IOSTAT["disk_write_bytes"], "wkB": KIB, "wr_sec": BLOCK},
    "bytes": {"kB/s": KIB, "MB/s": MIB},
    "queue_millis": {"aqu-sz": _PER_SECOND, "avgqu-sz": _PER_SECOND},
    "busy_millis": {"util": _PER_SECOND / 100, "util-percent": _PER_SECOND / 100},
}
"""The columns of iostat and sadf, in several versions, and the unit of each. Request sizes follow from bytes and
operations.
"""

_WAITS = (
    ("wait_micros", "await", "operations"),
    ("read_wait_micros", "r_await", "reads"),
    ("write_wait_micros", "w_await", "writes"),
)
"""The column with the mean wait in milliseconds, and the operations that it is the mean of."""


def _cpu(statistics: Mapping[str, Any]) -> dict[str, float]:
    """Returns thousandths; guest time (separate with -u ALL) belongs to user, as in /proc."""
    user = sum(statistics.get(key, 0) for key in ("user", "usr", "nice", "guest", "gnice"))
    system = sum(statistics.get(key, 0) for key in ("system", "sys", "irq", "soft"))
    return {
        "cpu_user": 10 * user,
        "cpu_system": 10 * system,
        "cpu_iowait": 10 * statistics["iowait"],
        "cpu_steal": 10 * statistics["steal"],
    }
