"""Reads the kernel's counters in /proc and computes the values of an interval. Pure except for :func:`read`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from troop.measure.device_samples import MOST_DEVICES
from troop.measure.devices import INTERFACE, STACKED_DEVICE, WHOLE_DISK
from troop.measure.summary import BUSIEST, EBS_EXCEEDED, NETWORK_EXCEEDED, SERIES

SECTOR = 512
"""Bytes; the same in every /proc/diskstats."""

Figures = dict[str, Optional[int]]
"""Values by name of :data:`~troop.measure.summary.SERIES`, or of those of a device; None: unknown."""

Counters = Mapping[str, Mapping[str, int]]
"""Counters by name of a series, of each network interface or volume."""


@dataclass(frozen=True)
class Reading:
    """Contents of files in /proc, and EC2's counters, at one moment; None for what could not be read.

    Attributes:
        network_exceeded: packets beyond an allowance, by network interface.
        ebs_exceeded: microseconds beyond a limit, by volume.
    """

    stat: str | None
    meminfo: str | None
    diskstats: str | None
    net_dev: str | None
    snmp: str | None = None
    network_exceeded: Counters | None = None
    ebs_exceeded: Counters | None = None


def read(proc: Path) -> Reading:
    stat, meminfo, diskstats, net_dev, snmp = (_text(proc / name) for name in _FILES)
    return Reading(stat, meminfo, diskstats, net_dev, snmp)


_FILES = ("stat", "meminfo", "diskstats", "net/dev", "net/snmp")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def figures(before: Reading, after: Reading) -> Figures:
    """Computes the values between two readings, with every name of ``SERIES``."""
    result: Figures = dict.fromkeys(SERIES)
    for part in (_cpu, _busiest, _memory, _disks, _network, _tcp, _network_exceeded, _ebs_exceeded):
        try:
            result.update(part(before, after))
        except (ValueError, IndexError, AttributeError, KeyError):  # missing (None), or not in the kernel's format
            continue
    return result


def _cpu(before: Reading, after: Reading) -> Figures:
    # user nice system idle iowait irq softirq steal; user includes the time of guests.
    spent = _increases(_jiffies(before.stat)[ALL_CORES], _jiffies(after.stat)[ALL_CORES])
    user, nice, system, idle, iowait, irq, softirq, steal = spent
    total = user + nice + system + idle + iowait + irq + softirq + steal
    if not total:
        raise ValueError("no CPU time between the readings")
    parts = {"user": user + nice, "system": system + irq + softirq, "iowait": iowait, "steal": steal}
    return {f"cpu_{name}": round(1000 * part / total) for name, part in parts.items()}


def _busiest(before: Reading, after: Reading) -> Figures:
    old, new = _jiffies(before.stat), _jiffies(after.stat)
    worked = []
    for name in new.keys() & old.keys() - {ALL_CORES}:
        spent = _increases(old[name], new[name])
        if total := sum(spent):
            worked.append(round(1000 * (total - spent[3] - spent[4]) / total))  # without idle and iowait
    return {BUSIEST: max(worked)}


ALL_CORES = "cpu"


def _jiffies(stat: str | None) -> dict[str, list[int]]:
    """Returns the jiffies by kind, for each processor and for all together."""
    fields = [line.split() for line in _lines(stat) if line.startswith("cpu")]
    return {f[0]: [int(field) for field in f[1:9]] for f in fields}


def _increases(before: list[int], after: list[int]) -> list[int]:
    return [max(0, b - a) for a, b in zip(before, after)]  # iowait may decrease


def _memory(_: Reading, after: Reading) -> Figures:
    kib = {line.split(":")[0]: int(line.split()[1]) for line in _lines(after.meminfo)}
    return {"memory_used": 1024 * (kib["MemTotal"] - kib["MemAvailable"])}


def _disks(before: Reading, after: Reading) -> Figures:
    reads, read, writes, written = _spent(_disk_counters(before.diskstats), _disk_counters(after.diskstats))
    return {
        "disk_reads": reads,
        "disk_read_bytes": SECTOR * read,
        "disk_writes": writes,
        "disk_write_bytes": SECTOR * written,
    }


def _disk_counters(diskstats: str | None) -> dict[str, list[int]]:
    """Returns reads, sectors read, writes and sectors written by disk."""
    fields = [line.split() for line in _lines(diskstats)]
    return {f[2]: [int(f[n]) for n in (3, 5, 7, 9)] for f in fields if WHOLE_DISK.fullmatch(f[2])}


def _network(before: Reading, after: Reading) -> Figures:
    received, sent = _spent(_interface_counters(before.net_dev), _interface_counters(after.net_dev))
    return {"network_received_bytes": received, "network_sent_bytes": sent}


def _interface_counters(net_dev: str | None) -> dict[str, list[int]]:
    """Returns bytes received and sent by interface."""
    named = [line.split(":", 1) for line in _lines(net_dev) if ":" in line]
    fields = {name.strip(): values.split() for name, values in named}
    return {name: [int(f[0]), int(f[8])] for name, f in fields.items() if INTERFACE.fullmatch(name)}


def _tcp(before: Reading, after: Reading) -> Figures:
    sent, again = _spent({"": _segments(before.snmp)}, {"": _segments(after.snmp)})
    return {"tcp_sent_segments": sent, "tcp_retransmits": again}


def _segments(snmp: str | None) -> list[int]:
    """Returns the TCP segments sent and sent again; the first of two lines names the values of the second."""
    names, values = (line.split() for line in _lines(snmp) if line.startswith("Tcp:"))
    counts = dict(zip(names, values))
    return [int(counts["OutSegs"]), int(counts["RetransSegs"])]


def _network_exceeded(before: Reading, after: Reading) -> Figures:
    return _counted(before.network_exceeded, after.network_exceeded, NETWORK_EXCEEDED)


def _ebs_exceeded(before: Reading, after: Reading) -> Figures:
    return _counted(before.ebs_exceeded, after.ebs_exceeded, EBS_EXCEEDED)


def _counted(before: Counters | None, after: Counters | None, names: tuple[str, ...]) -> Figures:
    """Returns the sums of the increases; a counter that no driver reports is left out."""
    if before is None or after is None:
        raise ValueError("missing")
    reported = [name for name in names if any(name in its for its in after.values())]
    old, new = ({one: [its.get(name, 0) for name in reported] for one, its in part.items()} for part in (before, after))
    return dict(zip(reported, _spent(old, new)))


def device_figures(before: str | None, after: str | None) -> dict[str, Figures]:
    """Computes the values of each disk, and of each device on top of disks, between two contents of diskstats.

    A counter that has decreased, because the kernel's milliseconds begin again at 2^32, is unknown for this interval.
    """
    old, new = _device_counters(before), _device_counters(after)
    return {name: _device_figures(old[name], new[name]) for name in list(new)[:MOST_DEVICES] if name in old}


def _device_counters(diskstats: str | None) -> dict[str, list[int]]:
    """Returns the eleven counters of each device; nothing if they cannot be read."""
    try:
        fields = [line.split() for line in _lines(diskstats)]
        return {
            f[2]: [int(field) for field in f[3:14]]
            for f in fields
            if len(f) >= 14 and (WHOLE_DISK.fullmatch(f[2]) or STACKED_DEVICE.fullmatch(f[2]))
        }
    except (ValueError, IndexError):
        return {}


def _device_figures(before: list[int], after: list[int]) -> Figures:
    spent = [b - a if b >= a else None for a, b in zip(before, after)]
    reads, _, read, reading, writes, _, written, writing, _, busy, queue = spent
    return {
        "operations": _sum(reads, writes),
        "reads": reads,
        "writes": writes,
        "read_bytes": _times(read, SECTOR),
        "write_bytes": _times(written, SECTOR),
        "wait_micros": _times(_sum(reading, writing), MICROS),
        "read_wait_micros": _times(reading, MICROS),
        "write_wait_micros": _times(writing, MICROS),
        "queue_millis": queue,
        "busy_millis": busy,
    }


MICROS = 1000
"""Per millisecond."""


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _spent(before: dict[str, list[int]], after: dict[str, list[int]]) -> list[int]:
    """Returns the sums of the increases of the counters that are in both readings.

    Raises:
        ValueError: a counter has decreased.
    """
    both = [(before[name], after[name]) for name in after if name in before]
    if any(b < a for old, new in both for a, b in zip(old, new)):
        raise ValueError("a counter has decreased")
    return [sum(column) for column in zip(*([b - a for a, b in zip(old, new)] for old, new in both))]


def _lines(text: str | None) -> list[str]:
    if text is None:
        raise ValueError("missing")
    return text.splitlines()
