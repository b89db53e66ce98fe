"""Reads wrk's and wrk2's output: rows per node, because percentiles without their histogram cannot be combined.

wrk counts answers of any status and late ones as requests; neither counts as a success here. wrk2 prints the same with
more digits; :mod:`~troop.measure.collectors.spectrum` reads its "Detailed Percentile spectrum". Some versions of wrk2
print a percentile in the column of the maximum, or results of several addresses.

wrk2 has a rate, and its latencies are response times, from the moment when a request was due. With -U it also prints
the distribution of service times. A timeout of wrk2 is a connection without data for a while, counted at every check;
it is not one of the counted requests.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.operations import RESPONSE, SERVICE
from troop.measure.separate import Separate, checked

TOOL = "wrk"

_TIMES = {"us": 0.001, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3}
"""Milliseconds per unit of wrk's times."""
ROUNDED = 1.01
"""The largest ratio of two printed numbers that are equal: they have at least three digits."""
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

_NUMBER = r"(-?nan|[0-9]+(?:\.[0-9]+)?)"
_LATENCY = re.compile(rf"Latency\s+{_NUMBER}(us|ms|s|m|h)\s+{_NUMBER}(us|ms|s|m|h)\s+{_NUMBER}(us|ms|s|m|h)\s")
_COLUMNS = re.compile(r"Thread Stats\s+(\S+)\s+(\S+)\s+(\S+)\s+\+/- Stdev$")
_PERCENTILE = re.compile(rf"([0-9]+(?:\.[0-9]+)?)%\s+{_NUMBER}(us|ms|s|m|h)$")
_REQUESTS = re.compile(rf"([0-9]+) requests in {_NUMBER}(us|ms|s|m|h), {_NUMBER}([KMGTP]?)B read$")
_SOCKETS = re.compile(r"Socket errors: connect ([0-9]+), read ([0-9]+), write ([0-9]+), timeout ([0-9]+)$")
_STATUS = re.compile(r"Non-2xx or 3xx responses: ([0-9]+)$")
_RATE = re.compile(rf"Requests/sec:\s+{_NUMBER}$")
_TRANSFER = re.compile(rf"Transfer/sec:\s+{_NUMBER}([KMGTP]?)B$")

_LINES = {
    "Latency ": _LATENCY,
    "Socket errors:": _SOCKETS,
    "Non-2xx": _STATUS,
    "Requests/sec:": _RATE,
    "Transfer/sec:": _TRANSFER,
}
"""The required format of lines by their beginning."""


def read(path: Path, operation: str, problems: Problems) -> list[Separate]:
    """Reads one row for each run of wrk in the file.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file contains no run of wrk.
    """
    return rows(path.read_text(encoding="utf-8", errors="backslashreplace"), str(path), operation, problems)


def rows(text: str, name: str, operation: str, problems: Problems) -> list[Separate]:
    """Reads rows from a file's text, as :func:`read` does. Ignores lines of scripts."""
    rows: list[Separate] = []
    run: _Run | None = None
    waiting: list[int] = []  # the last lines of runs of which no results have come
    number = 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("Running ") and " test @ " in line:
            if run is not None and run.is_empty:
                waiting.append(number - 1)
            else:
                _finish(run, rows, name, number - 1, operation, problems)
            run = _Run()
        elif line.startswith("Test Results @") and run is not None and not run.is_empty:
            _finish(run, rows, name, number - 1, operation, problems)
            run = _Run()
            del waiting[:1]
        elif run is not None:
            try:
                run.take(line)
            except ValueError as error:
                problems.add(f"{name}:{number}: {error}")
    if run is None:
        first_line = next((f": {line.strip()}" for line in text.splitlines() if line.strip()), "")
        raise CollectorError(f"{name}:{max(number, 1)}: there is no run of wrk{first_line}")
    for last_line in waiting:
        _finish(_Run(), rows, name, last_line, operation, problems)
    _finish(run, rows, name, number, operation, problems)
    return rows


def _finish(run: _Run | None, rows: list[Separate], name: str, line: int, operation: str, problems: Problems) -> None:
    if run is None:
        return
    if run.whole:
        try:
            for row in map(checked, run.rows(operation)):
                if (
                    row.max_ms is not None
                    and max(row.mean_ms or 0.0, 0.0, *row.percentiles.values()) > row.max_ms * ROUNDED
                ):
                    problems.add(
                        f"{name}:{line}: the maximum of {row.max_ms:g} ms is less than the mean or a percentile"
                    )
                    row = replace(row, max_ms=None)
                rows.append(row)
        except (ValueError, ArithmeticError) as error:
            problems.add(f"{name}:{line}: wrk's output is damaged: {error}")
    else:
        problems.add(f"{name}:{line}: wrk's output is incomplete; missing: {', '.join(run.missing)}")


class _Run:
    """The output of one run so far."""

    def __init__(self) -> None:
        self.percentiles: dict[str, float] = {}
        self.service_percentiles: dict[str, float] = {}
        self._filling = self.percentiles
        self.lines: dict[str, re.Match[str]] = {}
        self._in_percentiles = False
        self._is_wrk2 = False
        self._has_maximum = True

    def take(self, line: str) -> None:
        self._is_wrk2 |= line.startswith("Thread calibration") or "HdrHistogram" in line
        if line.startswith("Latency Distribution"):
            self._in_percentiles = True
            self._filling = self.service_percentiles if "Uncorrected" in line else self.percentiles
        elif self._in_percentiles and (match := _PERCENTILE.fullmatch(line)):
            if (value := _milliseconds(match[2], match[3])) is not None:
                self._filling[f"{float(match[1]):g}"] = value
        elif match := _COLUMNS.match(line):
            if match[1] != "Avg":
                raise ValueError(f"unknown columns: {line[:80]!r}")
            self._has_maximum = match[3] == "Max"
        elif match := _REQUESTS.fullmatch(line):
            self.lines["requests"] = match
        else:
            self._in_percentiles = False
            for begin, pattern in _LINES.items():
                if line.startswith(begin):
                    match = pattern.match(line + " " if pattern is _LATENCY else line)
                    if match is None:
                        raise ValueError(f"not a line of wrk: {line[:80]!r}")
                    self.lines.setdefault(begin, match)

    @property
    def is_empty(self) -> bool:
        """Whether no result has come yet."""
        return not self.lines

    @property
    def missing(self) -> list[str]:
        labels = {"Latency ": "latencies", "requests": "the number of requests", "Requests/sec:": "Requests/sec"}
        return [label for key, label in {**labels, "Transfer/sec:": "Transfer/sec"}.items() if key not in self.lines]

    @property
    def whole(self) -> bool:
        return not self.missing

    def rows(self, operation: str) -> list[Separate]:
        """Returns the row of the run, and that of wrk2's service times if it printed them."""
        row = self._row(operation)
        if not self.service_percentiles or not row.count:
            return [row]
        return [row, Separate(TOOL, operation, row.count, percentiles=self.service_percentiles, timing=SERVICE)]

    def _row(self, operation: str) -> Separate:
        requests, latency, transfer = (self.lines[key] for key in ("requests", "Latency ", "Transfer/sec:"))
        errors = self._errors()
        late = 0 if self._is_wrk2 else errors.get("timeout", 0)
        count = max(int(requests[1]) - errors.get("status", 0) - late, 0)
        seconds = self._seconds(int(requests[1]))
        mean, most = _milliseconds(latency[1], latency[2]), self._maximum(latency)
        percentiles = self.percentiles
        if not count:  # all times are those of failures
            mean, most, percentiles = None, None, {}
        return Separate(
            TOOL,
            operation,
            count,
            per_second=round(count / seconds, 3) if seconds else None,
            errors=errors,
            bytes_per_second=_number(transfer[1]) * _BYTES[transfer[2]],
            mean_ms=mean,
            max_ms=most,
            percentiles=percentiles,
            timing=RESPONSE if self._is_wrk2 else SERVICE,
        )

    def _maximum(self, latency: re.Match[str]) -> float | None:
        """Returns the maximum in milliseconds; None if it is not printed."""
        if "100" in self.percentiles:
            return self.percentiles["100"]
        return _milliseconds(latency[5], latency[6]) if self._has_maximum else None

    def _seconds(self, requests: int) -> float:
        """Returns the run's seconds from its rate: the printed time is rounded, in minutes by more than a percent."""
        rate, match = _number(self.lines["Requests/sec:"][1]), self.lines["requests"]
        return requests / rate if rate > 0 else (_milliseconds(match[2], match[3]) or 0.0) / 1000

    def _errors(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        if sockets := self.lines.get("Socket errors:"):
            counts.update(zip(("connect", "read", "write", "timeout"), map(int, sockets.groups())))
        if status := self.lines.get("Non-2xx"):
            counts["status"] = int(status[1])
        return {kind: count for kind, count in counts.items() if count}


def _number(text: str) -> float:
    return 0.0 if "nan" in text else float(text)


def _milliseconds(text: str, unit: str) -> float | None:
    return None if "nan" in text else round(float(text) * _TIMES[unit], 6)
