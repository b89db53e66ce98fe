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
from troop.measure.collectors import (
    cassandra_stress,
    fio,
    growing,
    iozone,
    jtl,
    k6,
    output,
    spectrum,
    sysstat,
    table,
    wrk,
)
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.collectors.window import Counted, Window
from troop.measure.operations import NAME, RESPONSE, SERVICE, Operations
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

    def tool(name: str, collect: Collect, description: str) -> argparse.ArgumentParser:
        added = tools.add_parser(name, help=description)
        added.add_argument("files", nargs="+", type=Path, metavar="FILE", help=description)
        added.set_defaults(collect=collect)
        return added

    jmeter = tool("jtl", _jtl, "JMeter's log as CSV, with a header")
    jmeter.add_argument(
        "--stamped-at-end", action="store_true", help="JMeter ran with sampleresult.timestamp.start=false"
    )
    _add_while(jmeter)
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
    _add_table_options(tool("table", _table, "any table with a row for each request"))
    values = tool("spectrum", _spectrum, "lines of values and counts, such as of wrk2, sysbench and redis-benchmark")
    values.add_argument("--unit", required=True, choices=hdr_log.UNITS, help="of the values")
    values.add_argument(
        "--after",
        action="append",
        default=[],
        metavar="TEXT",
        help="of a line before the distribution; several in order",
    )
    values.add_argument("--cumulative", action="store_true", help="a count includes those of the lines before")
    _add_description(values)
    return parser


def _add_while(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--while",
        dest="writer",
        type=int,
        metavar="PID",
        help="read the file while this process writes it; it may be a child of the shell that has not waited for it",
    )


def _add_description(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--operation", default="requests", type=_name, help="its name (default: requests)")
    parser.add_argument("--tool", type=_name, help="name of the load generator, for the report")
    parser.add_argument(
        "--timing", choices=(RESPONSE, SERVICE), default=SERVICE, help=f"what the times mean (default: {SERVICE})"
    )


def _add_table_options(parser: argparse.ArgumentParser) -> None:
    _add_while(parser)
    _add_description(parser)
    a_sum = "COLUMN:UNIT[+COLUMN:UNIT]"
    parser.add_argument("--time", required=True, type=_terms, metavar=a_sum, help="how long a request took")
    moment = parser.add_mutually_exclusive_group(required=True)
    moment.add_argument("--began", type=_terms, metavar=a_sum, help="when it began, since 1970 or --origin")
    moment.add_argument("--ended", type=_terms, metavar=a_sum, help="when it ended")
    parser.add_argument(
        "--origin", type=float, default=0.0, metavar="SECONDS", help="since 1970, if moments are offsets"
    )
    parser.add_argument(
        "--columns",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="A,B,_,C",
        help="of a file whose first line does not have them; _ is any that is not read",
    )
    parser.add_argument(
        "--separator", choices=_SEPARATORS, default="comma", help="of columns (default: comma); space: any number"
    )
    parser.add_argument("--name", metavar="COLUMN", help="with the name of the operation, in place of --operation")
    parser.add_argument("--status", metavar="COLUMN", help="that shows whether a request succeeded")
    parser.add_argument(
        "--good", type=table.good, default="200-399", metavar="A-B,WORD", help="statuses of success (default: 200-399)"
    )
    parser.add_argument("--error", metavar="COLUMN", help="with a text if the request failed")
    parser.add_argument("--bytes", metavar="COLUMN")
    parser.add_argument(
        "--failures",
        type=lambda text: frozenset(text.split(",")),
        default=frozenset(),
        metavar="A,B",
        help="words in place of the time of a request that failed",
    )


_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": table.BLANKS}


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} must match {NAME.pattern}")
    return text


def _terms(text: str) -> tuple[table.Term, ...]:
    try:
        return table.terms(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _jtl(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    is_over, live = _writer(options, results)
    window = Window.of_this_phase()
    counted = jtl.follow(path, is_over, window, problems, stamped_at_end=options.stamped_at_end, results=live)
    _counted("jtl", counted, "samples", path, results, problems)


def _writer(options: argparse.Namespace, results: Path) -> tuple[Callable[[], bool], Path | None]:
    """Returns whether the writer of a file has ended, and the folder for running summaries meanwhile."""
    if options.writer is None:
        return (lambda: True), None
    return (lambda: growing.has_ended(options.writer)), results


def _table(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    layout = table.Table(
        time=options.time,
        moment=options.began or options.ended,
        is_end=options.ended is not None,
        origin=options.origin,
        columns=options.columns,
        separator=_SEPARATORS[options.separator],
        operation=options.operation,
        name=options.name,
        status=options.status,
        is_good=options.good,
        error=options.error,
        moved=options.bytes,
        failures=options.failures,
    )
    is_over, live = _writer(options, results)
    counted = table.follow(path, is_over, layout, Window.of_this_phase(), problems, live)
    for one in counted.operations.values():
        one.timing = options.timing
    _counted(options.tool or "table", counted, "requests", path, results, problems)


def _spectrum(options: argparse.Namespace, path: Path, results: Path, problems: Problems) -> None:
    one = spectrum.read(path, options.unit, options.after, problems, is_cumulative=options.cumulative)
    one.timing = options.timing
    _operations(options.tool or "spectrum", {options.operation: one}, path, results, problems)


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
    rates = {name: one.rate for name, one in operations.items() if one.rate}
    for name, rate in rates.items():
        sys.stdout.write(f"{name}: {rate.per_second:g} operations a second\n")
    _refuse_nothing(sum(rate.per_second + rate.bytes_per_second for rate in rates.values()), path, problems)


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


def _counted(tool: str, counted: Counted, noun: str, path: Path, results: Path, problems: Problems) -> None:
    _write(tool, counted.operations, results)
    sys.stdout.write("".join(f"{note}\n" for note in counted.notes(noun)))
    _refuse_nothing(_number(counted.operations), path, problems, counted.nothing(noun))


def _operations(tool: str, operations: Operations, path: Path, results: Path, problems: Problems) -> None:
    _write(tool, operations, results)
    _refuse_nothing(_number(operations), path, problems)


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


def _number(operations: Operations) -> int:
    return sum(one.count + sum(one.errors.values()) for one in operations.values())


def _refuse_nothing(
    number: float, path: Path, problems: Problems, sentence: str = "the tool counted no operation"
) -> None:
    """Adds a problem if a file has no operation; other problems may be the reason."""
    if not number and not problems.count:
        problems.add(f"{path}: {sentence}")


if __name__ == "__main__":
    sys.exit(main())
