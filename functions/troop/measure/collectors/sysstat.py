"""Node metrics of sysstat's JSON: ``sadf -j -- -u -b -r -n DEV``, and ``iostat -x -t -o JSON``.

Both tell rates a second over an interval, which become amounts of that interval. What they do not tell (iostat: memory
and network) stays None. The first report of iostat is of the time since boot, and is left out, unless it was run with
``-y``, which nothing in its JSON says. Moments are UTC unless they say otherwise, as nodes are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.json_elements import elements
from troop.measure.devices import INTERFACE, WHOLE_DISK
from troop.measure.histogram import HIGHEST
from troop.measure.summary import LONGEST_INTERVAL, MOST_SAMPLES, SERIES, Samples

KIB, MIB = 1024, 1024**2
BLOCK = 512
"""Bytes, in sysstat's ``bread`` and ``bwrtn``."""

_FORMATS = ("%Y-%m-%dT%H:%M:%S%z", "%m/%d/%y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%y %H:%M:%S")
"""Of iostat's moments: ISO, by S_TIME_FORMAT=ISO, and what the locale makes of it."""

Rates = dict[str, float]
"""By name of ``SERIES``: thousandths, bytes, or amounts a second."""


def read(path: Path, problems: Problems, *, without_boot: bool = False) -> Samples:
    """All intervals of the file; None for those that are not in it.

    Args:
        without_boot: it is of ``iostat -y``, so its first report counts: for as long as the second one.

    Raises:
        OSError: the file cannot be read.
        CollectorError: it has no interval that can be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    return samples(text, str(path), problems, without_boot=without_boot)


def samples(text: str, name: str, problems: Problems, *, without_boot: bool = False) -> Samples:
    """As :func:`read`, of a file's text."""
    if '"sysstat"' not in text[:1000]:
        raise CollectorError(f"{name}:1: it is no JSON of sysstat's: use sadf -j, or iostat -o JSON")
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
            why = f"it has no {error}" if isinstance(error, KeyError) else error
            problems.add(f"{name}:{line}: an interval cannot be read: {why}")
    for sentence in sorted(lacking):
        problems.add(f"{name}:1: {sentence}")
    if not taken:
        raise CollectorError(f"{name}:{text.count(chr(10)) + 1}: it has no interval that can be read" + _why(problems))
    return _in_line(taken, name)


def _checked(ended: int, seconds: int, rates: Rates) -> tuple[int, int, Rates]:
    if not 1 <= seconds <= LONGEST_INTERVAL or ended < seconds:
        raise ValueError(f"it took {seconds} s")
    for name, rate in rates.items():
        if not 0 <= rate * seconds <= HIGHEST:  # not a number is neither
            raise ValueError(f"{name} is {rate}")
    return ended, seconds, rates


def _why(problems: Problems) -> str:
    return f" ({problems.sentences[0]})" if problems.sentences else ""


def _in_line(taken: list[tuple[int, int, Rates]], name: str) -> Samples:
    """Each interval where its middle lies, for sadc wakes up a moment late at times; one that took as long as several
    others counts for as many.
    """
    interval = Counter(seconds for _, seconds, _ in taken).most_common(1)[0][0]
    phase = Counter(ended % interval for ended, seconds, _ in taken if seconds == interval).most_common(1)[0][0]
    begins = phase if 2 * phase < interval else phase - interval  # where most of them lies, as seen from 1970 on
    placed = [(*_place(ended - begins, seconds, interval), rates) for ended, seconds, rates in taken]
    first = min(begin for begin, _, _ in placed)
    length = max(end for _, end, _ in placed) - first
    if length > MOST_SAMPLES:
        raise CollectorError(f"{name}:1: it is of {length} intervals: at most {MOST_SAMPLES} are taken")
    series: dict[str, list[int | None]] = {key: [None] * length for key in SERIES}
    for begin, end, rates in placed:
        for at in range(begin - first, end - first):
            for key, rate in rates.items():
                series[key][at] = round(rate if key in _LEVELS else rate * interval)
    return Samples(first * interval, interval, series)


def _place(ended: int, seconds: int, interval: int) -> tuple[int, int]:
    """The numbers of the intervals that it fills, from 1970 on; the last one is outside."""
    several = max(1, (2 * seconds + interval) // (2 * interval))
    begin = (2 * ended - seconds - (several - 1) * interval) // (2 * interval)
    return begin, begin + several


_LEVELS = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_steal", "memory_used")


def _stamp(statistics: Mapping[str, Any]) -> tuple[int, int]:
    """When an interval of sadf's ended, and how long it took."""
    ended = datetime.strptime(f"{statistics['date']} {statistics['time']}", "%Y-%m-%d %H:%M:%S").replace(
        tzinfo=timezone.utc
    )
    seconds = int(statistics["interval"])
    if not statistics.get("utc", 1):
        raise ValueError("its moments are in local time: use sadf without -T")
    return int(ended.timestamp()), seconds


def _moment(statistics: Mapping[str, Any]) -> int:
    if "timestamp" not in statistics:
        raise ValueError("it has no timestamp: run iostat with -t, and S_TIME_FORMAT=ISO in its environment")
    for how in _FORMATS:
        try:
            moment = datetime.strptime(statistics["timestamp"], how)  # noqa: DTZ007 - UTC unless it says otherwise
        except ValueError:
            continue
        return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp())
    raise ValueError(
        f"its timestamp is {statistics['timestamp']!r}: run iostat with S_TIME_FORMAT=ISO in its environment"
    )


def _sadf(statistics: Mapping[str, Any]) -> Rates:
    rates: Rates = {}
    for key in ("cpu-load", "cpu-load-all"):
        for cpu in statistics.get(key, ()):
            if str(cpu["cpu"]) in ("all", "-1"):
                rates.update(_cpu(cpu))
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
    """
    Args:
        lacking: gets a sentence for what a report does not tell, and might.
    """
    rates = _cpu(statistics["avg-cpu"]) if "avg-cpu" in statistics else {}
    disks = _disks(statistics.get("disk", ()), "disk_device")
    if not disks:
        return rates
    for key, names in _IOSTAT.items():
        if unit := next((name for name in names if name in disks[0]), None):
            rates[key] = names[unit] * sum(disk[unit] for disk in disks)
        elif "bytes" in key:
            lacking.add("it does not tell reads and writes of disks apart: run iostat without -s")
    return rates


_IOSTAT: Mapping[str, Mapping[str, int]] = {
    "disk_reads": {"r/s": 1},
    "disk_writes": {"w/s": 1},
    "disk_read_bytes": {"rkB/s": KIB, "kB_read/s": KIB, "rMB/s": MIB, "MB_read/s": MIB},
    "disk_write_bytes": {"wkB/s": KIB, "kB_wrtn/s": KIB, "wMB/s": MIB, "MB_wrtn/s": MIB},
}
"""What iostat calls them, with ``-x`` and without, and with ``-m``; and of how many that is a number."""


def _disks(disks: Any, key: str) -> list[Mapping[str, Any]]:
    """Whole disks: neither partitions nor what lies on top of disks, which would count twice."""
    return [disk for disk in disks if WHOLE_DISK.fullmatch(disk[key])]


def _cpu(statistics: Mapping[str, Any]) -> Rates:
    """Thousandths; what guests use (-u ALL tells it apart) is user's, as in /proc."""
    user = sum(statistics.get(key, 0) for key in ("user", "usr", "nice", "guest", "gnice"))
    system = sum(statistics.get(key, 0) for key in ("system", "sys", "irq", "soft"))
    return {
        "cpu_user": 10 * user,
        "cpu_system": 10 * system,
        "cpu_iowait": 10 * statistics["iowait"],
        "cpu_steal": 10 * statistics["steal"],
    }
