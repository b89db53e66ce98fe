"""Measures how long merging the summaries of many drivers takes, and their sizes, for growing numbers of requests.

    python -m perf.merge [--drivers 60] [--seconds 600] [--operations 1] [--most 1e9] [--pairs 3]

Each driver's summary is like that of an agent: a histogram of its share of the requests, their times by step, counts
by second, and the node's samples. Request times are log-normal with a long tail, as those of services. For very many
requests, the counts of the buckets are computed, not drawn. "merge" is all that the workflow does with the uploaded
bytes: it parses, checks and adds them up, and creates the document and table of the results, on one core.

With Java and Maven, HdrHistogram's HistogramLogProcessor then reads a log with the same number of requests, drivers and
steps, in turn with a merge in a process of its own. Compare the ratio of the medians, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from perf import ROOT, jmeter
from tests.unit.measure.test_hdr_log import written
from troop.measure.histogram import Histogram, highest_in, index_of, lowest_in
from troop.measure.merge import Merger
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import LEVELS, SERIES, Clock, Samples, Summary, parse
from troop.measure.windows import Windows, step_for
from troop.shared.garbage import without_collections

VERSION = "2.1.12"
"""The version of HdrHistogram."""
START = 1_790_000_000
MEDIAN_US, SPREAD = 2_000.0, 0.9
"""Parameters of the times: half are below the median; 99 % are below eight times the median."""
DRAWN = 100_000
"""The largest number of requests of a driver for which each time is drawn."""
DIFFERENT = 4
"""Number of different steps of a driver."""


def times(requests: int, dice: Random) -> Histogram:
    """Draws a histogram of times."""
    result = Histogram()
    if requests <= DRAWN:
        for _ in range(requests):
            result.record(round(dice.lognormvariate(math.log(MEDIAN_US), SPREAD)))
        return result
    left = requests
    for index in range(index_of(60_000_000) + 1):
        low, high = lowest_in(index), highest_in(index) + 1
        expected = requests * (_below(high) - _below(low))
        # Counts vary around the expected value; rare buckets may be empty.
        count = int(expected + dice.random()) if expected < 50 else round(dice.gauss(expected, math.sqrt(expected)))
        if count := min(count, left):
            result.record(dice.randrange(low, high), count)
            left -= count
    if left:
        result.record(round(MEDIAN_US), left)
    return result


def over_time(requests: int, seconds: int, dice: Random) -> Windows:
    """Creates times by step from a few drawn histograms, which is enough to measure the cost."""
    result = Windows(START, step_for(seconds))
    share = requests * result.step_seconds / seconds
    some = [times(int(share + dice.random()), dice) for _ in range(DIFFERENT)]
    for second in range(0, seconds, result.step_seconds):
        result.take(START + second, dice.choice(some))
    return result


def _below(value: float) -> float:
    """Returns the share of all times below ``value``."""
    return 0.5 * (1 + math.erf(math.log(value / MEDIAN_US) / (SPREAD * math.sqrt(2)))) if value > 0 else 0.0


def summary(rank: int, requests: int, seconds: int, operations: int = 1) -> bytes:
    """Creates the summary of one driver in its uploaded form, with so many requests of each operation."""
    dice = Random(rank)
    series: dict[str, list[int | None]] = {
        name: [dice.randrange(1000 if name in LEVELS else 10**8) for _ in range(seconds + 30)] for name in SERIES
    }
    several = {}
    for number in range(operations):
        histogram = times(requests, dice)
        each, rest = divmod(histogram.count, seconds)
        counts, errors = [each + (n < rest) for n in range(seconds)], [int(n % 7 == 0) for n in range(seconds)]
        per_second, windows = PerSecond(START, counts, errors), over_time(requests, seconds, dice)
        several[f"read-{number}"] = Operation(histogram, {"timeout": 3}, per_second, 5000 * requests, windows)
    one = Summary(
        node=f"i-{rank:017x}",
        role="drivers",
        rank=rank,
        phase="measure",
        outcome="ok",
        started_at=START - 30.0,
        ended_at=START + seconds + 0.5,
        exit_code=0,
        clock=Clock(0.0012, 0.06),
        measured_from=float(START),
        measured_seconds=float(seconds),
        operations=several,
        samples=Samples(START - 30, 1, series),
    )
    return json.dumps(one.document(), separators=(",", ":")).encode()


def merge(uploaded: list[bytes]) -> tuple[float, float, dict[str, Any]]:
    """Merges summaries; returns elapsed seconds, processor seconds and the results."""
    began, processor = time.perf_counter(), time.process_time()
    merger = Merger()
    with without_collections():
        for body in uploaded:
            merger.add(parse(json.loads(body)))
        document = merger.document()
    json.dumps(document)
    return time.perf_counter() - began, time.process_time() - processor, document


def merge_here() -> None:
    """Merges the summaries in the working directory."""
    merge([path.read_bytes() for path in sorted(Path().glob("*.json"))])


def fetch() -> Path | None:
    """Downloads HdrHistogram from Maven Central, once; returns None if Java or Maven is missing."""
    jar = ROOT / ".build" / "tools" / f"HdrHistogram-{VERSION}.jar"
    if not shutil.which("java") or not (jar.exists() or shutil.which("mvn")):
        return None
    if not jar.exists():
        artifact = f"-Dartifact=org.hdrhistogram:HdrHistogram:{VERSION}"
        command = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={jar.parent}"]
        subprocess.run(command, check=True)
    return jar


def write_log(path: Path, drivers: int, requests: int, seconds: int) -> None:
    """Writes an interval log of HdrHistogram with an interval for each driver and step."""
    step = step_for(seconds)
    with path.open("w", encoding="ascii") as log:
        log.write(f'#[BaseTime: {START}.000 (seconds since epoch)]\n"StartTimestamp","Interval_Length",...\n')
        for rank in range(drivers):
            dice = Random(rank)
            each = [times(requests // drivers * step // seconds, dice) for _ in range(DIFFERENT)]
            packed = [(written(dict(one.counts)), one.max) for one in each]
            for second in range(0, seconds, step):
                text, most = dice.choice(packed)
                log.write(f"{second}.000,{step}.000,{most / 1e6:.3f},{text}\n")


def compare(drivers: int, requests: int, seconds: int, pairs: int) -> None:
    """Runs a merge and HistogramLogProcessor in turn, each in a process of its own, and prints their costs."""
    jar = fetch()
    if jar is None:
        print("HdrHistogram is not measured: install Java and Maven")
        return
    with tempfile.TemporaryDirectory(prefix="troop-merge-") as directory:
        folder = Path(directory)
        for rank in range(drivers):
            (folder / f"{rank}.json").write_bytes(summary(rank, requests // drivers, seconds))
        write_log(folder / "all.hlog", drivers, requests, seconds)
        code = "from perf.merge import merge_here; merge_here()"
        mine, theirs = [], []
        for _ in range(pairs):
            environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'functions'}"}
            mine.append(jmeter.run([sys.executable, "-c", code], folder, environment))
            java = ["java", "-Xmx2g", "-cp", str(jar), "org.HdrHistogram.HistogramLogProcessor"]
            theirs.append(jmeter.run([*java, "-i", "all.hlog", "-o", "figures"], folder, dict(os.environ)))
    print(f"\n{requests:,} requests of {drivers} drivers, medians of {pairs} alternating runs, one core")
    print(f"{'':<42}{'seconds':>8}{'CPU':>8}{'MiB':>9}")
    for name, each in (("Troop's merge, with Python's start", mine), ("HdrHistogram's HistogramLogProcessor", theirs)):
        print(f"{name:<42}{jmeter.middle(each)}")
    ratios = sorted(a.cpu / b.cpu for a, b in zip(mine, theirs, strict=True))
    print(f"{'':<42}ratio of CPU {median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drivers", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=600, help="measured seconds")
    parser.add_argument("--operations", type=int, default=1, help="operations, each with all requests")
    parser.add_argument("--most", type=float, default=1e9, help="largest number of requests of all drivers")
    parser.add_argument("--repeat", type=int, default=3, help="number of repetitions, of which the fastest counts")
    parser.add_argument("--pairs", type=int, default=3, help="number of runs beside HdrHistogram's; 0: none")
    options = parser.parse_args()
    print(f"{options.drivers} drivers, {options.seconds} s measured; seconds, KB")
    print(f"{'requests':>15}{'buckets':>9}{'a summary':>11}{'results':>9}{'merge':>8}{'CPU':>8}   p50 / p99 / max ms")
    requests = 1_000
    while requests <= options.most:
        share = [requests // options.drivers + (n < requests % options.drivers) for n in range(options.drivers)]
        uploaded = [summary(rank, count, options.seconds, options.operations) for rank, count in enumerate(share)]
        took, cpu_seconds, document = min((merge(uploaded) for _ in range(options.repeat)), key=lambda run: run[0])
        row = document["table"][0]
        assert row["count"] == requests * options.operations, "every request is counted"
        buckets = len(document["roles"]["drivers"]["operations"]["read-0"]["histogram"]["counts"])
        sizes = f"{max(map(len, uploaded)) / 1000:>11.0f}{len(json.dumps(document)) / 1000:>9.0f}"
        shown = f"{row['p50_ms']:.3g} / {row['p99_ms']:.3g} / {row['max_ms']:.3g}"
        print(f"{requests:>15,}{buckets:>9,}{sizes}{took:>8.3f}{cpu_seconds:>8.3f}   {shown}", flush=True)
        requests *= 10
    if options.pairs:
        compare(options.drivers, 100_000_000, options.seconds, options.pairs)


if __name__ == "__main__":
    main()
