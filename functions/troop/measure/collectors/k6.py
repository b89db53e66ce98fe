"""Reads the samples that k6 writes as CSV (``--out csv=FILE``), also from a pipe while k6 runs.

A request is a sample of ``http_req_duration``: from sending it to the last byte of the answer, in milliseconds with six
decimal places. It leaves out name resolution, connecting and TLS. Its timestamp is the end of the request. k6 must
write timestamps in microseconds (``K6_CSV_TIME_FORMAT=unix_micro``), because whole seconds cannot separate the warm-up.

An iteration that k6 could not start, because all virtual users were busy, is an error of the kind ``unfinished``, under
the name ``dropped_iterations``.

Requests of other protocols have metrics of their own, such as ``grpc_req_duration``. They are left out, and named.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from troop.measure.collectors.common import LONGEST_FIELD, CollectorError, Problems, places_of
from troop.measure.collectors.window import Counted, Window
from troop.measure.histogram import HIGHEST
from troop.measure.operations import UNFINISHED

TOOL = "k6"
DURATION, DROPPED = "http_req_duration", "dropped_iterations"
NEEDED = ("metric_name", "timestamp", "metric_value", "name", "status", "error_code")
_ASIDE = ("http_req", "iteration", "data_", "vus,", "vus_max,", "checks,", "group_duration,")
"""Beginnings of k6's metrics that say nothing about other requests: parts of the same ones, and of the load."""
ERRORS: Mapping[str, str] = {
    "1050": "read-timeout",
    "1100": "dns",
    "1101": "dns",
    "1201": "broken-pipe",
    "1210": "connect",
    "1211": "connect-timeout",
    "1212": "connect-refused",
    "1220": "reset",
    "1300": "tls",
    "1301": "tls",
    "1310": "tls",
    "1311": "tls",
}
"""Names of k6's error codes of requests without an answer; others are ``error-CODE``."""

_PER_SECOND = {13: 10**3, 16: 10**6, 19: 10**9}
"""Units of a timestamp in a second, by its digits."""


def read(path: Path, window: Window, problems: Problems) -> Counted:
    """Counts the requests that ended within the window; errors by status or by the name of k6's error code.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file does not begin with a header with the columns :data:`NEEDED`.
    """
    with path.open(encoding="utf-8", errors="backslashreplace", newline="") as lines:
        return counted(lines, str(path), window, problems)


def counted(
    lines: Iterable[str], name: str, window: Window, problems: Problems, totals: Counted | None = None
) -> Counted:
    """Counts the requests in lines, as :func:`read` does. Memory is bounded, whatever their number.

    Args:
        totals: what to add to; nothing by default.
    """
    csv.field_size_limit(LONGEST_FIELD)
    source = iter(lines)
    header = next(source, "").rstrip("\r\n").split(",")
    columns = places_of(header, header, name)
    if missing := [column for column in NEEDED if column not in columns]:
        raise CollectorError(
            f"{name}:1: the header has no {', '.join(missing)}: it must be output of k6 run --out csv=FILE, of a plan "
            "that does not remove these from systemTags"
        )
    result, width = totals or Counted(window), len(header)
    stamp, value = columns["timestamp"], columns["metric_value"]
    is_expected, method = columns.get("expected_response"), columns.get("method")
    request, status, code = columns["name"], columns["status"], columns["error_code"]
    labels: dict[tuple[str, str], str] = {}
    for number, text in _rows(source, result, problems, name):
        try:
            row = text.rstrip("\r\n").split(",") if '"' not in text else next(csv.reader([text]), [])
            if len(row) != width:
                raise ValueError(f"the row has {len(row)} columns, but the header has {width}")
            ended, amount = _seconds(row[stamp]), float(row[value])
            if row[0] == DROPPED:
                if amount >= 1:
                    result.error(DROPPED, ended, UNFINISHED, int(amount))
                continue
            microseconds = round(amount * 1000)
            if not 0 <= microseconds <= HIGHEST:
                raise ValueError(f"metric_value is {row[value]}")
        except (csv.Error, ValueError, OverflowError) as error:
            problems.add(f"{name}:{number}: {error}")
            continue
        key = row[request], row[method] if method is not None else ""
        label = labels.get(key)
        if label is None:
            label = _label(*key)
            if len(labels) < _MOST_LABELS:
                labels[key] = label
        if _has_succeeded(row[status], row[code], row[is_expected] if is_expected is not None else ""):
            result.ok(label, ended, microseconds)
        else:
            result.error(label, ended, _kind(row[status], row[code]))
    return result


_MOST_LABELS = 10_000


def _rows(lines: Iterator[str], totals: Counted, problems: Problems, name: str) -> Iterator[tuple[int, str]]:
    """Yields the rows of the metrics that count, with their line numbers. A quoted field may contain line ends."""
    metrics = (f"{DURATION},", f"{DROPPED},")
    number, whole = 1, True
    for line in lines:
        number += 1
        begin = number
        if '"' in line:
            while line.count('"') % 2 and len(line) < LONGEST_FIELD:
                more = next(lines, "")
                if not more:
                    break
                number += 1
                line += more
        whole = line.endswith("\n")
        if whole and line.startswith(metrics):
            yield begin, line
        elif whole and not line.startswith(_ASIDE):
            totals.leave_out(line.partition(",")[0])
    if not whole:
        problems.add(f"{name}:{number}: the last line is incomplete")


def _seconds(stamp: str) -> float:
    units = _PER_SECOND.get(len(stamp)) if stamp.isascii() and stamp.isdigit() else None
    if units is None:
        raise ValueError(
            f"timestamp is {stamp[:80]!r}: must be in microseconds: start k6 with K6_CSV_TIME_FORMAT=unix_micro"
        )
    return int(stamp) / units


def _label(request: str, method: str) -> str:
    """Returns the name of a request. Without a tag ``name`` k6 uses the address: then method and path, because
    addresses differ between targets and queries between requests.
    """
    if not request.startswith(("http://", "https://")):
        return request
    try:
        path = urlsplit(request).path
    except ValueError:
        return request
    return f"{method} {path or '/'}".strip()


def _has_succeeded(status: str, code: str, expected: str) -> bool:
    if expected:
        return expected == "true"
    return not code and status.isdigit() and 200 <= int(status) < 400


def _kind(status: str, code: str) -> str:
    if status not in ("", "0"):
        return status
    return ERRORS.get(code) or (f"error-{code}" if code else "failed")
