"""Reads cassandra-stress's output and its HdrHistogram log (``-log hdrfile=...``).

Without the log there is only the summary: one row per node and type of operation, such as ``WRITE``. If the summary is
missing, the rows are computed from the interval lines as far as they go.

The log has histograms by type and interval, which can be added up to operations; the interval lines give the times of
errors. cassandra-stress also records the time of failures, so the histograms count them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from troop.measure import hdr_log
from troop.measure import operations as ops
from troop.measure.collectors.common import CollectorError, Problems, a_name
from troop.measure.collectors.window import Window
from troop.measure.histogram import HIGHEST
from troop.measure.operations import Operation, Operations, add_bounded
from troop.measure.separate import Separate, checked

TOOL = "cassandra-stress"
TOTAL = "total"
FAILED = "failed"

RESPONSE, SERVICE = "-rt", "-st"
"""Suffixes of tags: the time since an operation was due (with a rate), or since it began."""

_RUNNING = re.compile(r"Running .*?\bwith ([0-9]+) threads?\b")
_HEAD = re.compile(r"type,?\s+(total ops\s*,.*)")
_TYPE = re.compile(r"([A-Za-z][\w.-]*)\s*,\s+[0-9]+\s*,")
_SUMMARY = re.compile(r"([A-Za-z][\w .]*?(?:\(\w+\))?)\s*:\s*([0-9][0-9,.]*|NaN)(?: [^\s\[]+)?\s*(?:\[(.*)\])?$")
_TYPE_VALUE = re.compile(r"([A-Za-z][\w.-]*):\s*([0-9](?:[0-9.]|,(?=[0-9]))*|NaN)")
_VALUE = re.compile(r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?")
"""Numbers, with or without thousands separators."""
_MOST_DIGITS = 18
"""The limit for numbers of threads: Python refuses to read integers of thousands of digits."""
_DURATION = re.compile(r"Total operation time\s*:\s*([0-9]+):([0-9]{2}):([0-9]{2})$")

_PERCENTILES = {
    "latency median": "50",
    "latency 95th percentile": "95",
    "latency 99th percentile": "99",
    "latency 99.9th percentile": "99.9",
}
_NEEDED = ("op rate", "latency mean", "latency max", "total errors", *_PERCENTILES)

_COLUMNS = ("total ops", "mean", "max", "time", "errors")
"""The columns of an interval's line that are read, by their names in the header."""


@dataclass(frozen=True)
class Interval:
    """One line: values since the line before, except for ``total`` and ``until``, which count from the beginning.

    Attributes:
        until: seconds.
    """

    total: int
    mean_ms: float
    max_ms: float
    until: float
    errors: int


@dataclass
class Run:
    """The output from one header to the next: intervals and summary, by type of operation.

    Attributes:
        line: number of the header's line.
        threads: as printed before the header; None if missing.
        summary: values by type, then by the lower-case name of the line.
        places: the numbers of the columns of intervals, after the type.
    """

    line: int
    threads: int | None
    intervals: dict[str, list[Interval]] = field(default_factory=dict)
    summary: dict[str, dict[str, float]] = field(default_factory=dict)
    ended: bool = False
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def types(self) -> list[str]:
        """All types without the total, or only the total if there are no others."""
        names = [name for name in {**self.summary, **self.intervals} if name != TOTAL]
        return names or [TOTAL]

    @property
    def whole(self) -> bool:
        return self.ended and all(name in self.summary.get(TOTAL, {}) for name in _NEEDED)

    def lines_of(self, kind: str) -> list[Interval]:
        """Returns a type's lines. With a single type, these can be the total's."""
        return self.intervals.get(kind) or (self.intervals.get(TOTAL, []) if len(self.types) == 1 else [])

    def row(self, kind: str, name: str) -> Separate:
        summary, lines = self.summary.get(kind, {}), self.lines_of(kind)
        if not self.whole or "op rate" not in summary:
            return _separate(lines, name)
        errors = int(summary.get("total errors", 0))
        total = lines[-1].total if lines else int(summary.get("total partitions", 0))
        seconds = lines[-1].until if lines else 0.0
        good = max(total - errors, 0)
        return Separate(
            TOOL,
            name,
            count=good,
            per_second=round(good / seconds, 3) if errors and seconds else summary["op rate"],
            errors={FAILED: errors} if errors else {},
            mean_ms=summary.get("latency mean"),
            max_ms=summary.get("latency max"),
            percentiles={percent: summary[key] for key, percent in _PERCENTILES.items() if key in summary},
        )


def _separate(lines: list[Interval], name: str) -> Separate:
    """Computes a row from the lines; without percentiles, because those of intervals cannot be combined."""
    counts = [line.total - before for line, before in zip(lines, [0, *(line.total for line in lines)])]
    errors = sum(line.errors for line in lines)
    total = sum(counts)
    good = max(total - errors, 0)
    until = lines[-1].until if lines else 0.0
    return Separate(
        TOOL,
        name,
        count=good,
        per_second=round(good / until, 3) if until else None,
        errors={FAILED: errors} if errors else {},
        mean_ms=round(sum(n * line.mean_ms for n, line in zip(counts, lines)) / total, 3) if total else None,
        max_ms=max((line.max_ms for line in lines), default=None),
    )


def read(path: Path, problems: Problems) -> list[Run]:
    """Reads the runs; there are several if cassandra-stress searches for the number of threads.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file contains no run.
    """
    return runs(path.read_text(encoding="utf-8", errors="backslashreplace"), str(path), problems)


def runs(text: str, name: str, problems: Problems) -> list[Run]:
    """Reads the runs from a file's text, as :func:`read` does. Ignores messages of servers and drivers."""
    runs: list[Run] = []
    run: Run | None = None
    threads: int | None = None
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if match := _RUNNING.match(line):
            threads = int(match[1]) if len(match[1]) <= _MOST_DIGITS else None
        elif match := _HEAD.match(line):
            run = None  # without its columns, its lines are left out
            try:
                run = Run(number, threads, places=_places(match[1]))
                runs.append(run)
            except ValueError as error:
                problems.add(f"{name}:{number}: {error}")
        elif run:
            try:
                _take(run, line)
            except ValueError as error:
                problems.add(f"{name}:{number}: {error}")
    if not runs:
        raise CollectorError(f"{name}:{max(number, 1)}: there are no interval lines of cassandra-stress and no header")
    for run, after in zip(runs, [*runs[1:], None]):
        if not run.whole:
            last = after.line - 1 if after else number
            problems.add(f"{name}:{last}: the summary is incomplete: rows are computed from the interval lines")
    return [run for run in runs if run.intervals or run.summary]


def _take(run: Run, line: str) -> None:
    if match := _TYPE.match(line):
        run.intervals.setdefault(match[1], []).append(_interval(line, run.places))
    elif _DURATION.match(line):
        run.ended = True
    elif match := _SUMMARY.match(line):
        key = match[1].lower()
        if key in _NEEDED or key == "total partitions":
            for kind, value in [(TOTAL, match[2]), *_TYPE_VALUE.findall(match[3] or "")]:
                if value == "NaN":  # of no operations
                    continue
                if not _VALUE.fullmatch(value):
                    raise ValueError(f"{value!r} is not a number with a decimal point: run Java with an English locale")
                number = float(value.replace(",", ""))
                if number > HIGHEST:
                    raise ValueError(f"{key} is {value}: must be at most {HIGHEST}")
                run.summary.setdefault(kind, {})[key] = number
    elif line.startswith(f"{TOTAL},"):
        raise ValueError(f"not an interval line: {line[:80]!r}")


def _places(header: str) -> dict[str, int]:
    """Returns the numbers of the columns after the type.

    Raises:
        ValueError: a column is missing.
    """
    names = [name.strip() for name in header.split(",")]
    if missing := [column for column in _COLUMNS if column not in names]:
        raise ValueError(f"the header has no {', '.join(missing)}")
    return {column: names.index(column) for column in _COLUMNS}


def _interval(line: str, places: Mapping[str, int]) -> Interval:
    values = [value.strip() for value in line.split(",")[1:]]
    needed = 1 + max(places.values())
    if len(values) < needed:
        raise ValueError(f"an interval has {len(values)} columns: must have at least {needed}")
    fields = {column: values[place] for column, place in places.items()}
    mean, largest, until = (float(fields[key]) for key in ("mean", "max", "time"))
    total, errors = int(fields["total ops"]), int(fields["errors"])
    if not all(0 <= number <= HIGHEST for number in (mean, largest, until, total, errors)):  # NaN fails any comparison
        raise ValueError(f"not an interval: {line[:80]!r}")
    return Interval(total, mean, largest, until, errors)


def rows(runs: list[Run], name: str, problems: Problems) -> list[Separate]:
    """Returns a row for each type of operation; with several runs, names begin with the number of threads.

    Args:
        name: the output's name in problems.
        problems: receives a sentence for each type whose numbers are invalid.
    """
    table = []
    for run in runs:
        for kind in run.types:
            try:
                label = a_name(f"{run.threads}-threads:{kind}" if len(runs) > 1 else kind)
                table.append(checked(run.row(kind, label)))
            except (ValueError, ArithmeticError) as error:
                problems.add(f"{name}:{run.line}: the values of {kind} are damaged: {error}")
    return table


def operations(logs: Iterable[Path], runs: list[Run], window: Window, problems: Problems) -> Operations:
    """Counts the times of the logs and the errors of the interval lines in the measured time.

    Raises:
        OSError: a log cannot be read.
        CollectorError: a log has no interval of cassandra-stress.
    """
    result: Operations = {}
    began = math.inf
    for log in logs:
        described: list[str] = []
        by_tag: dict[str, hdr_log.Counting] = {}
        for one in hdr_log.read(log, described):
            began = min(began, one.start)
            if one.tag:
                if one.tag not in by_tag:
                    by_tag[one.tag] = hdr_log.Counting(window.start, window.measured, warm_up_seconds=window.warm_up)
                by_tag[one.tag].take(one)
        for sentence in described:
            problems.add(sentence)
        kinds = sorted({tag[: -len(SERVICE)] for tag in by_tag if tag.endswith((SERVICE, RESPONSE))})
        if not kinds:
            raise CollectorError(f"{log}:1: there is no interval with a tag such as WRITE{SERVICE}")
        for kind in kinds:
            response, service = by_tag.get(kind + RESPONSE), by_tag.get(kind + SERVICE)
            if response:
                response.operation.timing = ops.RESPONSE
                response.operation.service = service.operation.times if service else None
            elif service:
                service.operation.timing = ops.SERVICE
            for counting in filter(None, (response or service,)):
                add_bounded(result, {a_name(kind): counting.operation})
    if len(runs) == 1:
        _add_errors(result, runs[0], began, window)
    return result


def _add_errors(result: Mapping[str, Operation], run: Run, began: float, window: Window) -> None:
    """Adds the errors of intervals whose middle is in the window: as in the log, intervals count as a whole."""
    time = hdr_log.Counting(window.start, window.measured, warm_up_seconds=window.warm_up)
    for kind, operation in result.items():
        before = 0.0
        for line in run.lines_of(kind):
            middle, seconds = began + (before + line.until) / 2, line.until - before
            before = line.until
            if line.errors and window.begin <= middle < window.end:
                time.spread(operation.per_second.errors, line.errors, middle, seconds)
                if middle >= window.start:
                    operation.errors[FAILED] = operation.errors.get(FAILED, 0) + line.errors
