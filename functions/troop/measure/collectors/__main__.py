"""Converts a tool's output to files for the agent:
    python3 -m troop.measure.collectors jtl results.jtl

A measured phase's script runs it after the tool. It reports unreadable lines on stderr and then exits with 1.
Everything else is written, and counts if the script continues.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Callable

from troop.measure import hdr_log, phase_environment, recordings
from troop.measure.collectors import cassandra_stress, fio, growing, iozone, jtl, k6, output, sysstat, wrk
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.window import Counted, Window
from troop.measure.operations import NAME, Operations
from troop.measure.separate import Separate

Collect = Callable[[argparse.Namespace, Path, Path, Problems], None]
"""Reads one file and writes to the results folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["hdr"]:
        return hdr_log.main(arguments[1:])
    options = _parser().parse_args(arguments)
    results = phase_environment.results()
    problems = Problems()
    collect: Collect = options.collect
    for path in options.files:
        try:
            with recordings.recording(results):
                collect(options, path, results, problems)
        except (OSError, CollectorError) as error:
            problems.add(str(error))
    sys.stderr.write("".join(f"{line}\n" for line in problems.lines()))
    return 1 if problems.count else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m troop.measure.collectors", description="Convert the output of other tools for the agent."
    )
    tools = parser.add_subparsers(metavar="TOOL", required=True)
    tools.add_parser("hdr", help="HdrHistogram interval logs, such as latte's (--tag, --operation)")

    def tool(name: str, collect: Collect, what: str) -> argparse.ArgumentParser:
        added = tools.add_parser(name, help=what)
        added.add_argument("files", nargs="+", type=Path, metavar="FILE", help=what)
        added.set_defaults(collect=collect)
        return added

    jmeter = tool("jtl", _jtl, "JMeter's log as CSV, with a header")
    jmeter.add_argument(
        "--stamped-at-end", action="store_true", help="JMeter ran with sampleresult.timestamp.start=false"
    )
    jmeter.add_argument(
        "--while",
        dest="writer",
        type=int,
        metavar="PID",
        help="read the log while this process writes it; it may be a child of the shell that has not waited for it",
    )
    tool("k6", _k6, "samples of k6 run --out csv=FILE with K6_CSV_TIME_FORMAT=unix_micro")
    tool("fio", _fio, "fio's --output-format=json+")
    tool("wrk", _wrk, "output of wrk or wrk2").add_argument(
        "--operation", default="requests", type=_name, help="name of the operation (default: requests)"
    )
    tool("iozone", _iozone, "output of iozone -t").add_argument(
        "--prefix",
        default=None,
        type=_name,
        help="of the operations' names, for a script that starts iozone several times",
    )
    stress = tool("cassandra-stress", _cassandra_stress, "output of cassandra-stress")
    stress.add_argument("--hdr", type=Path, metavar="LOG", help="log that -log hdrfile= wrote in the same run")
    metrics = tool("sysstat", _sysstat, "output of sadf -j or of iostat -t -o JSON")
    metrics.add_argument("-y", action="store_true", help="output of iostat -y: count its first report")
    return parser


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} must match {NAME.pattern}")
    return text


def _jtl(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    is_over = (lambda: True) if options.writer is None else (lambda: growing.has_ended(options.writer))
    live = None if options.writer is None else results
    window = Window.of_this_phase()
    counted = jtl.follow(path, is_over, window, problems, stamped_at_end=options.stamped_at_end, results=live)
    _counted("jtl", counted, "samples", path, results, problems)


def _k6(_: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    counted = k6.read(path, Window.of_this_phase(), problems)
    _counted(k6.TOOL, counted, "requests", path, results, problems)


def _fio(_: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    _operations("fio", fio.read(path, Window.of_this_phase().measured, problems), path, results, problems)


def _wrk(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    _rows(wrk.TOOL, wrk.read(path, options.operation, problems), path, results, problems)


def _iozone(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    operations = iozone.read(path, problems, options.prefix or "")
    output.write_operations(iozone.TOOL, operations, results)
    for name, operation in operations.items():
        if operation.rate:
            sys.stdout.write(f"{name}: {operation.rate.per_second:g} operations a second\n")


def _cassandra_stress(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    runs = cassandra_stress.read(path, problems)
    if options.hdr is None:
        _rows(cassandra_stress.TOOL, cassandra_stress.rows(runs, str(path), problems), path, results, problems)
    else:
        operations = cassandra_stress.operations([options.hdr], runs, Window.of_this_phase(), problems)
        _operations(cassandra_stress.TOOL, operations, path, results, problems)


def _sysstat(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    samples = sysstat.read(path, problems, without_boot=options.y)
    output.write_samples("sysstat", samples, results)
    length = max(map(len, samples.series.values()), default=0)
    devices = f", with {', '.join(sorted(samples.devices.series))}" if samples.devices else ""
    sys.stdout.write(f"{length} intervals of {samples.interval_seconds} s{devices}\n")


def _counted(tool: str, counted: Counted, what: str, path: Path, results: Path, problems: Problems) -> None:
    _write(tool, counted.operations, results)
    sys.stdout.write("".join(f"{note}\n" for note in counted.notes(what)))
    counted.refuse_nothing(str(path), what, problems)


def _operations(tool: str, operations: Operations, path: Path, results: Path, problems: Problems) -> None:
    _write(tool, operations, results)
    _refuse_nothing(sum(one.count + sum(one.errors.values()) for one in operations.values()), path, problems)


def _write(tool: str, operations: Operations, results: Path) -> None:
    output.write_operations(tool, operations, results)
    for name, operation in operations.items():
        errors = sum(operation.errors.values())
        sys.stdout.write(f"{name}: {operation.times.count} operations and {errors} errors in the measured time\n")


def _rows(tool: str, rows: Iterable[Separate], path: Path, results: Path, problems: Problems) -> None:
    rows = list(rows)
    output.write_rows(tool, rows, results)
    for row in rows:
        sys.stdout.write(f"{row.operation}: {row.count} operations, {row.per_second} a second, on this node only\n")
    _refuse_nothing(sum(row.count + sum(row.errors.values()) for row in rows), path, problems)


def _refuse_nothing(count: int, path: Path, problems: Problems) -> None:
    """Adds a problem if the tool counted nothing; other problems may be the reason."""
    if not count and not problems.count:
        problems.add(f"{path}: the tool counted no operation")


if __name__ == "__main__":
    sys.exit(main())
