"""Compares the agent's collector with JMeter's report generator, on a JMeter log of a million samples and one core.

    python -m perf.jmeter [--samples 1000000] [--pairs 3] [--jmeter-home DIR | --alone] [--growing]

Both read the same log, each in its own process on one core; the collector also has a limit of 256 MB of address space.
They run in turn, because shared processors change their speed: compare the ratio of the medians, not the seconds. There
are three logs: with five labels, with quoted labels that contain commas, quotes and line ends, and with 200 labels.
JMeter needs Java. It comes from the folder in --jmeter-home, or from Maven Central into .build/tools/jmeter. Without
JMeter, only the collector is measured.

Counts and errors must be equal. JMeter computes percentiles of successes and errors together, and interpolates between
the two samples next to a rank. It uses only the last 20,000 samples of a label, unless statistic_window is -1. So it
runs with both settings. Without a window, both tools are compared with the generated samples: the collector's
percentiles must equal those of all successes to a thousandth, JMeter's those of all samples by its own formula.

--growing measures instead what a phase waits for after JMeter's end. A writer appends the log at a steady rate, to its
end; the collector reads it meanwhile, or after it. Both must have the same results.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import median

from perf import ROOT
from troop.measure.operations import Operations, document_of, parse

VERSION = "5.6.3"
HOME = ROOT / ".build" / "tools" / "jmeter"
PARTS = ("ApacheJMeter", *(f"ApacheJMeter_{part}" for part in ("core", "components", "functions", "http", "java")))
CONFIG = "ApacheJMeter_config"

START = 1_790_000_000
"""The time of the first sample."""
SAMPLES_A_SECOND = 2_000
THREADS = 200
ERRORS = 0.001
LABELS = ("list", "login", "search", "book", "log out")
QUOTED = tuple(f'{label}, ""{label}"",\n{n}' for n, label in enumerate(LABELS))
MANY = tuple(f"GET /page/{n}" for n in range(200))
VARIANTS = {"5 labels": LABELS, "5 labels in quotes": QUOTED, "200 labels": MANY}
MOST_BYTES = 256 << 20
"""Address space of the collector, including Python."""
PERCENTS = {"medianResTime": 50.0, "pct1ResTime": 90.0, "pct2ResTime": 95.0, "pct3ResTime": 99.0}
"""Percentiles by their names in JMeter."""

HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)


@dataclass
class Truth:
    """The generated milliseconds of one label: of all samples and of successes, both ascending."""

    samples: list[int]
    good: list[int]


@dataclass(frozen=True)
class Cost:
    """Resources of a process: elapsed seconds, processor seconds, and peak memory in bytes."""

    seconds: float
    cpu: float
    peak: int

    def __str__(self) -> str:
        return f"{self.seconds:>8.1f}{self.cpu:>8.1f}{self.peak / (1 << 20):>9.0f}"


def generate(path: Path, samples: int, labels: Sequence[str] = LABELS, seed: int = 1) -> dict[str, Truth]:
    """Writes a log in JMeter's default format. Times are log-normal; one percent are ten times longer. A thread sends
    when it is free: samples of one thread never overlap.
    """
    dice = Random(seed)
    free: dict[int, int] = {}
    truth = {label: Truth([], []) for label in labels}
    fields = {label: f'"{label}"' if '"' in label else label for label in labels}
    with path.open("w", encoding="ascii") as log:
        log.write(f"{HEADER}\n")
        for number in range(samples):
            label = labels[number % len(labels)]
            took = int(dice.lognormvariate(3.2, 0.9)) * (10 if dice.random() < 0.01 else 1)
            good = dice.random() >= ERRORS
            stamp = 1000 * START + number * 1000 // SAMPLES_A_SECOND
            status = "200,OK" if good else "500,Internal Server Error"
            thread = number % THREADS
            stamp = max(stamp, free.get(thread, 0))
            free[thread] = stamp + took
            log.write(
                f"{stamp},{took},{fields[label]},{status},users 1-{thread},text,{str(good).lower()},,"
                f"{1000 + took},120,{THREADS},{THREADS},http://127.0.0.1/{number % 11},{took},0,0\n"
            )
            truth[label].samples.append(took)
            if good:
                truth[label].good.append(took)
    for one in truth.values():
        one.samples.sort()
        one.good.sort()
    return truth


def run(command: list[str], folder: Path, environment: dict[str, str], address_space: int | None = None) -> Cost:
    """Runs a command in a folder, on one core.

    Raises:
        SystemExit: the command failed; with the end of its output.
    """

    def confine() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        if address_space:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, preexec_fn=confine
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{command[0]} ended with {process.returncode}: {output.read()[-2000:]}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def collect(log: Path, seconds: int, folder: Path) -> tuple[Cost, Operations]:
    """Runs the collector as the script of a phase does."""
    results = folder / "results"
    results.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "functions"),
        "TROOP_RESULTS": str(results),
        "TROOP_MEASURED_FROM": str(START),
        "TROOP_MEASURED_SECONDS": str(seconds),
        "TROOP_WARM_UP_SECONDS": "0",
    }
    command = [
        sys.executable,
        "-S",
        "-m",
        "troop.measure.collectors",
        "jtl",
        str(log),
    ]  # -S: only the standard library
    cost = run(command, folder, environment, MOST_BYTES)
    (written,) = results.glob("operations-*.json")
    return cost, parse(json.loads(written.read_bytes())["operations"])


def growing(log: Path, seconds: int, rate: int, folder: Path) -> None:
    """Prints how long after the writer's end the collector has its results: reading meanwhile, and reading then."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "functions"),
        "TROOP_MEASURED_FROM": str(START),
        "TROOP_MEASURED_SECONDS": str(seconds),
        "TROOP_WARM_UP_SECONDS": "0",
    }
    command = [sys.executable, "-S", "-m", "troop.measure.collectors", "jtl"]
    results: list[Operations] = []
    for name, meanwhile in (("read at the end", False), ("read meanwhile", True)):
        place = folder / name.replace(" ", "-")
        place.mkdir()
        environment["TROOP_RESULTS"] = str(place)
        copy = place / "growing.jtl"
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(log), str(copy), str(rate)])
        options = ["--while", str(writer.pid)] if meanwhile else []
        if not meanwhile:
            writer.wait()
        began = time.perf_counter()
        with subprocess.Popen([*command, str(copy), *options], env=environment, stdout=subprocess.DEVNULL) as reader:
            if meanwhile:
                writer.wait()
                began = time.perf_counter()
        assert reader.returncode == 0
        (path,) = place.glob("operations-*.json")
        results.append(parse(json.loads(path.read_bytes())["operations"]))
        waited = time.perf_counter() - began
        print(f"{f'{name}, {rate:,} samples a second':<42}{waited:>8.1f} s after the end", flush=True)
        copy.unlink()
    assert document_of(results[0]) == document_of(results[1]), "both have the same results"


WRITER = """
import sys, time
lines = open(sys.argv[1], "rb").read().splitlines(True)
rate, began = int(sys.argv[3]), time.monotonic()
with open(sys.argv[2], "wb") as file:
    for at in range(0, len(lines), 1000):
        file.write(b"".join(lines[at:at + 1000]))
        time.sleep(max(0.0, began + at / rate - time.monotonic()))
"""
"""Appends the lines of a log at a rate."""
GROWING_RATES = (5_000, 20_000)
"""Samples a second: of a JMeter on a small node, and more than that."""


def report(home: Path, log: Path, window: int, folder: Path) -> tuple[Cost, dict[str, dict[str, float]]]:
    """Runs JMeter's report generator; returns its cost and its statistics.json by label."""
    output = folder / f"report{window}"
    command = ["java", "-Xmx2g", "-Djava.awt.headless=true", f"-Djmeter.home={home}", "-cp", f"{home}/lib/*"]
    command += ["org.apache.jmeter.NewDriver", "-g", str(log), "-o", str(output), "-j", str(folder / "jmeter.log")]
    command += [f"-Jjmeter.reportgenerator.statistic_window={window}"]
    cost = run(command, folder, dict(os.environ))
    return cost, json.loads((output / "statistics.json").read_bytes())


def fetch(home: Path) -> Path | None:
    """Downloads JMeter from Maven Central into ``home``, once; returns None if Java or Maven is missing."""
    if not shutil.which("java"):
        return None
    if (home / "bin" / "jmeter.properties").exists():
        return home
    if not shutil.which("mvn"):
        return None
    home.mkdir(parents=True, exist_ok=True)
    dependencies = "".join(
        f"<dependency><groupId>org.apache.jmeter</groupId><artifactId>{part}</artifactId><version>{VERSION}</version>"
        "</dependency>"
        for part in (*PARTS, CONFIG)
    )
    (home / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>troop</groupId><artifactId>jmeter</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
    copy = ["mvn", "-q", "-B", "-f", str(home / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*copy, f"-DoutputDirectory={home / 'lib'}"], check=True)
    (home / "lib" / "ext").mkdir(exist_ok=True)
    with zipfile.ZipFile(home / "lib" / f"{CONFIG}-{VERSION}.jar") as packed:
        packed.extractall(home, [name for name in packed.namelist() if name.startswith("bin/")])
    return home


def rank(values: list[int], percent: float) -> int:
    """Returns the smallest of ascending values that at least ``percent`` of them do not exceed."""
    return values[max(-(-Fraction(str(percent)) * len(values) // 100), 1) - 1]


def between(values: list[int], percent: float) -> float:
    """Computes JMeter's percentile of n ascending values: at p (n + 1) / 100, interpolated between its neighbours."""
    at = percent * (len(values) + 1) / 100
    below = min(max(int(at), 1), len(values) - 1)
    return values[below - 1] + (at - below) * (values[below] - values[below - 1])


def check(operations: Operations, truth: dict[str, Truth]) -> None:
    """Asserts that the collector's results match the generated samples."""
    for label, one in truth.items():
        operation = operations[label.replace(" ", "-")]
        assert operation.times.count == len(one.good), f"{label}: every success is counted"
        assert sum(operation.errors.values()) == len(one.samples) - len(one.good), f"{label}: every error is counted"
        for percent in (*PERCENTS.values(), 99.9, 100.0):
            exact, estimate = rank(one.good, percent) * 1000, operation.times.percentile(percent)
            assert estimate is not None, label
            assert exact <= estimate <= exact * 1.001 + 1, f"{label} p{percent}: {estimate}, not {exact}"


def compare(operations: Operations, figures: dict[str, dict[str, float]], truth: dict[str, Truth]) -> float:
    """Asserts that JMeter's counts are equal, and that its percentiles match the generated samples.

    Returns:
        The largest difference of two percentiles in milliseconds: JMeter's include errors.
    """
    most = 0.0
    for label, one in truth.items():
        operation, theirs = operations[label.replace(" ", "-")], figures[label]
        assert theirs["sampleCount"] == operation.times.count + sum(operation.errors.values()), f"{label}: counts"
        assert theirs["errorCount"] == sum(operation.errors.values()), f"{label}: errors"
        for name, percent in PERCENTS.items():
            expected = between(one.samples, percent)
            assert abs(theirs[name] - expected) < 0.01, f"{label} {name}: JMeter says {theirs[name]}, not {expected}"
            most = max(most, abs((operation.times.percentile(percent) or 0) / 1000 - theirs[name]))
    return most


def middle(costs: Sequence[Cost]) -> Cost:
    """Returns the medians."""
    seconds, cpu = median(one.seconds for one in costs), median(one.cpu for one in costs)
    return Cost(seconds, cpu, round(median(one.peak for one in costs)))


def alternate(
    name: str, log: Path, seconds: int, home: Path | None, pairs: int, folder: Path
) -> Iterator[tuple[Operations, dict[str, dict[str, float]] | None]]:
    """Runs both tools in turn and prints the medians of their costs; yields the results of each pair."""
    costs: dict[str, list[Cost]] = {"Troop's collector": [], f"JMeter {VERSION} -g": []}
    mine, theirs = costs.values()
    for pair in range(pairs):
        place = folder / f"{pair}"
        place.mkdir(parents=True)
        cost, operations = collect(log, seconds, place)
        mine.append(cost)
        figures = None
        if home is not None:
            cost, figures = report(home, log, 20_000, place)
            theirs.append(cost)
        yield operations, figures
    for tool, each in costs.items():
        if each:
            print(f"{f'{name}: {tool}':<42}{middle(each)}", flush=True)
    if theirs:
        ratios = sorted(a.cpu / b.cpu for a, b in zip(mine, theirs, strict=True))
        print(f"{'':<42}ratio of CPU {median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=3, help="number of runs of each tool")
    parser.add_argument("--jmeter-home", type=Path, help="a folder with JMeter's bin and lib")
    parser.add_argument("--alone", action="store_true", help="measure without JMeter beside")
    parser.add_argument("--growing", action="store_true", help="measure a log that grows")
    options = parser.parse_args()
    if options.growing:
        with tempfile.TemporaryDirectory(prefix="troop-jmeter-") as directory:
            log = Path(directory) / "results.jtl"
            truth = generate(log, options.samples)
            longest = 1 + max(one.samples[-1] for one in truth.values()) // 1000
            for rate in GROWING_RATES:
                place = Path(directory) / str(rate)
                place.mkdir()
                growing(log, options.samples // SAMPLES_A_SECOND + longest + 1, rate, place)
        return
    home = None
    if not options.alone:
        home = options.jmeter_home.resolve() if options.jmeter_home else fetch(HOME)
    print(f"{options.samples:,} samples, one core, medians of {options.pairs} alternating runs")
    print(f"{'':<42}{'seconds':>8}{'CPU':>8}{'MiB':>9}")
    with tempfile.TemporaryDirectory(prefix="troop-jmeter-") as directory:
        for name, labels in VARIANTS.items():
            folder = Path(directory) / name.replace(" ", "-")
            folder.mkdir()
            log = folder / "results.jtl"
            truth = generate(log, options.samples, labels)
            longest = 1 + max(one.samples[-1] for one in truth.values()) // 1000
            seconds = options.samples // SAMPLES_A_SECOND + longest + 1
            for operations, figures in alternate(name, log, seconds, home, options.pairs, folder):
                if labels is LABELS:
                    check(operations, truth)
                    if figures is not None:
                        last_figures = operations, figures
            if labels is LABELS and home is not None:
                _, exact_figures = report(home, log, -1, folder)
                exactness = last_figures[0], {20_000: last_figures[1], -1: exact_figures}, truth
    if home is None:
        print("JMeter is not measured: install Java, and Maven or use --jmeter-home")
        return
    apart = compare(exactness[0], exactness[1][-1], exactness[2])
    print(f"counts are equal; percentiles differ by at most {apart:.2f} ms if JMeter uses all samples")
    show(*exactness)


def show(
    operations: Operations, figures_by_window: dict[int, dict[str, dict[str, float]]], truth: dict[str, Truth]
) -> None:
    print(f"\n{'ms':<10}{'':>6}{'successes':>11}{'Troop':>10}{'all samples':>13}{'JMeter':>10}{'its last 20,000':>17}")
    for label, one in truth.items():
        for name, percent in PERCENTS.items():
            mine = (operations[label.replace(" ", "-")].times.percentile(percent) or 0) / 1000
            exact = f"{rank(one.good, percent):>11}{mine:>10.3f}{rank(one.samples, percent):>13}"
            print(
                f"{label:<10}{f'p{percent:g}':>6}{exact}{figures_by_window[-1][label][name]:>10.2f}{figures_by_window[20_000][label][name]:>17.2f}"
            )


if __name__ == "__main__":
    main()
