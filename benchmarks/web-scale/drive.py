"""Drives the load with JMeter, or without Java by threads of this script. Both make the same visits.

Parameters: ``driver``, jmeter or python; ``threads`` of each driver, five of six browsers; ``rate``, requests per
second of each driver, 0 for no limit; ``heap_mib`` of JMeter; ``timeout_ms`` of a request.

Recorded by kind of client and request, such as ``browser:book``. Errors have the status as their kind: 500 for the data
tier, 503 for the authentication service, 502 and 504 from nginx for the web tier.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import tiers
import visit
import visits
from node import Phase

SLACK = 2.0
"""Seconds of load after the measured time."""
ENDING = 60.0
"""Seconds in which JMeter must end after that."""
A_THREAD = 50
"""Visits of a thread in the file of visits, which then begins again."""
SAVED = {
    "output_format": "csv",
    "print_field_names": "true",
    "timestamp_format": "ms",
    "response_message": "true",
    "thread_name": "true",
    "autoflush": "false",
}
"""JMeter's properties of the log that the collector needs."""
UNSAVED = (
    "data_type",
    "assertion_results_failure_message",
    "sent_bytes",
    "thread_counts",
    "url",
    "latency",
    "connect_time",
)
"""Columns that nothing reads; without them the log is half as long."""


def main() -> None:
    phase = Phase.of_script()
    seconds = phase.measured_from + phase.measured_seconds + SLACK - time.time()
    if phase.parameters["driver"] == "python":
        visit.load(phase)
    elif phase.parameters["driver"] == "jmeter":
        run(phase, seconds)
    else:
        sys.exit(f"driver is {phase.parameters['driver']!r}: must be jmeter or python")


def run(phase: Phase, seconds: float) -> None:
    """Runs JMeter, and counts the samples of its log meanwhile."""
    here = Path.cwd()
    log = here / "samples.jtl"
    write_plan(phase.files / "plan.jmx", here / "plan.jmx", with_rate=bool(phase.parameters["rate"]))
    write_visits(phase, here / "visits.csv")
    with (here / "jmeter.txt").open("wb") as output:
        jmeter = subprocess.Popen(
            command(phase, here, seconds), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        reads = [sys.executable, "-m", "troop.measure.collectors", "jtl", str(log), "--while", str(jmeter.pid)]
        collector = subprocess.Popen(["nice", *reads], stdin=subprocess.DEVNULL)  # the load comes first
        try:
            code = jmeter.wait(seconds + ENDING)
        except subprocess.TimeoutExpired:
            jmeter.kill()
            sys.exit(f"JMeter did not end within {ENDING:.0f} s after the load")
        finally:
            keep_logs(here, phase.results)
    print((here / "jmeter.txt").read_text(encoding="utf-8", errors="replace")[-4000:])
    if code:
        collector.kill()
        sys.exit(f"JMeter failed with exit code {code}, see jmeter.log among the files of the results")
    if problem := uncovered(log, phase.measured_from):
        collector.kill()
        sys.exit(problem)
    sys.exit(collector.wait())


def command(phase: Phase, folder: Path, seconds: float) -> Sequence[str]:
    browsers, mobiles = visits.divided(int(phase.parameters["threads"]))
    rates = visits.shares(float(phase.parameters["rate"]))
    properties = {
        "browser.threads": str(browsers),
        "mobile.threads": str(mobiles),
        "browser.rate": f"{rates[0]:.6f}",
        "mobile.rate": f"{rates[1]:.6f}",
        "ramp": str(round(min(phase.warm_up_seconds / 2, 60))),
        "seconds": str(round(seconds)),
        "timeout_ms": str(phase.parameters["timeout_ms"]),
        "visits": str(folder / "visits.csv"),
        "jmeterengine.nongui.port": "0",
        "sampleresult.timestamp.start": "true",
        "summariser.interval": "60",
        **{f"jmeter.save.saveservice.{name}": value for name, value in SAVED.items()},
        **{f"jmeter.save.saveservice.{name}": "false" for name in UNSAVED},
    }
    heap = int(phase.parameters["heap_mib"]) or max(256, tiers.memory_mib() // 2)
    return [
        *("java", f"-Xms{heap}m", f"-Xmx{heap}m", "-Djava.awt.headless=true"),
        *("-jar", str(phase.jmeter / "bin" / "ApacheJMeter.jar"), "-n", "-t", str(folder / "plan.jmx")),
        *("-l", str(folder / "samples.jtl"), "-j", str(folder / "jmeter.log")),
        *(f"-J{name}={value}" for name, value in properties.items()),
    ]


def write_plan(source: Path, target: Path, *, with_rate: bool) -> None:
    """Copies the plan; without a rate, without its timers."""
    tree = ElementTree.parse(source)
    if not with_rate:
        for parent in tree.iter("hashTree"):
            for timer in parent.findall("PreciseThroughputTimer"):
                position = list(parent).index(timer)
                del parent[position : position + 2]  # with the tree of its children
    tree.write(target, encoding="UTF-8", xml_declaration=True)


def write_visits(phase: Phase, target: Path) -> None:
    """Writes the visits of this driver, a line each. Threads take the next line for each visit."""
    parameters, drivers = phase.parameters, len(phase.nodes["drivers"])
    numbers = {name: int(parameters[name]) for name in ("customers", "days")}
    count = A_THREAD * int(parameters["threads"])
    with target.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        for one in visits.plan(phase.rank, drivers, tiers.endpoints(phase, "proxies"), numbers, count):
            rows.writerow([one.user, one.password, *one.proxy.split(":"), one.origin, one.target, one.day, one.back])


def uncovered(log: Path, measured_from: float) -> str | None:
    """Returns the problem if the load began after the start of the measured time."""
    with log.open(encoding="utf-8") as lines:
        first = next(csv.DictReader(lines), None)
    if first is None:
        return "JMeter sent no request: see jmeter.log among the files of the results"
    late = int(first["timeStamp"]) / 1000 - measured_from
    return f"the load began {late:.1f} s after the start of the measured time: increase warm_up" if late > 0 else None


def keep_logs(folder: Path, results: Path) -> None:
    for name in ("jmeter.log", "jmeter.txt"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, results / name)


if __name__ == "__main__":
    main()
