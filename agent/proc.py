"""Reads the kernel's counters in /proc and computes the values of an interval. Pure except for :func:`read`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from troop.measure.devices import INTERFACE, WHOLE_DISK
from troop.measure.summary import SERIES

SECTOR = 512
"""Bytes; the same in every /proc/diskstats."""

Figures = dict[str, Optional[int]]
"""Values by name of :data:`~troop.measure.summary.SERIES`; None: unknown."""


@dataclass(frozen=True)
class Reading:
    """Contents of files in /proc at one moment; None for a file that could not be read."""

    stat: str | None
    meminfo: str | None
    diskstats: str | None
    net_dev: str | None


def read(proc: Path) -> Reading:
    return Reading(*(_text(proc / name) for name in ("stat", "meminfo", "diskstats", "net/dev")))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def figures(before: Reading, after: Reading) -> Figures:
    """Computes the values between two readings, with every name of ``SERIES``."""
    result: Figures = dict.fromkeys(SERIES)
    for part in (_cpu, _memory, _disks, _network):
        try:
            result.update(part(before, after))
        except (ValueError, IndexError, AttributeError, KeyError):  # missing (None), or not in the kernel's format
            continue
    return result


def _cpu(before: Reading, after: Reading) -> Figures:
    # user nice system idle iowait irq softirq steal; user includes the time of guests.
    spent = [max(0, b - a) for a, b in zip(_jiffies(before.stat), _jiffies(after.stat))]  # iowait may decrease
    user, nice, system, _, iowait, irq, softirq, steal = spent
    total = sum(spent)
    if not total:
        raise ValueError("no CPU time between the readings")
    parts = {"user": user + nice, "system": system + irq + softirq, "iowait": iowait, "steal": steal}
    return {f"cpu_{name}": round(1000 * part / total) for name, part in parts.items()}


def _jiffies(stat: str | None) -> list[int]:
    return [int(field) for field in _lines(stat)[0].split()[1:9]]


def _memory(_: Reading, after: Reading) -> Figures:
    kib = {line.split(":")[0]: int(line.split()[1]) for line in _lines(after.meminfo)}
    return {"memory_used": 1024 * (kib["MemTotal"] - kib["MemAvailable"])}


def _disks(before: Reading, after: Reading) -> Figures:
    reads, read, writes, written = _spent(_of_disks(before.diskstats), _of_disks(after.diskstats))
    return {
        "disk_reads": reads,
        "disk_read_bytes": SECTOR * read,
        "disk_writes": writes,
        "disk_write_bytes": SECTOR * written,
    }


def _of_disks(diskstats: str | None) -> dict[str, list[int]]:
    """Returns reads, sectors read, writes and sectors written by disk."""
    fields = [line.split() for line in _lines(diskstats)]
    return {f[2]: [int(f[n]) for n in (3, 5, 7, 9)] for f in fields if WHOLE_DISK.fullmatch(f[2])}


def _network(before: Reading, after: Reading) -> Figures:
    received, sent = _spent(_of_interfaces(before.net_dev), _of_interfaces(after.net_dev))
    return {"network_received_bytes": received, "network_sent_bytes": sent}


def _of_interfaces(net_dev: str | None) -> dict[str, list[int]]:
    """Returns bytes received and sent by interface."""
    named = [line.split(":", 1) for line in _lines(net_dev) if ":" in line]
    fields = {name.strip(): values.split() for name, values in named}
    return {name: [int(f[0]), int(f[8])] for name, f in fields.items() if INTERFACE.fullmatch(name)}


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
