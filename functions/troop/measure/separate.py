"""Defines a tool's results that cannot be combined with those of other nodes, such as percentiles without the times.

They are stored for each node. A script writes ``separate-*.json`` to its results: ``{"format", "tool", "rows":
[{"operation", "count", "per_second", "errors", "bytes_per_second", "mean_ms", "max_ms", "percentiles",
"timing"}]}``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from troop.measure.operations import NAME, OperationsError, errors_in, timing_of, whole

FORMAT = "troop.separate/1"
REQUESTS = "billed-requests"
"""The tool of rows that count what a script has asked of services that bill requests: their operations are keys of the
file's ``traffic``, such as ``s3_gets``. They are added up over nodes for the cost, and are no results.
"""
MOST_ROWS = 256
"""The most rows of a node."""
MOST_PERCENTILES = 32

_PERCENT = re.compile(r"(100|[0-9]{1,2})(\.[0-9]{1,6})?")


@dataclass(frozen=True)
class Separate:
    """One kind of operation as one node's tool reports it. Unknown values are None or missing.

    Attributes:
        count: of successes.
        errors: counts by kind.
        percentiles: times in milliseconds by percent, such as ``{"50": 1.2, "99.9": 8.0}``.
        timing: what the times mean, one of :data:`troop.measure.operations.TIMINGS`; None if unknown.
    """

    tool: str
    operation: str
    count: int
    per_second: float | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    bytes_per_second: float | None = None
    mean_ms: float | None = None
    max_ms: float | None = None
    percentiles: Mapping[str, float] = field(default_factory=dict)
    timing: str | None = None

    def document(self) -> dict[str, Any]:
        """Returns ``{"tool", "operation", "count", ...}``, as in summaries."""
        percents = sorted(self.percentiles, key=float)
        return {
            "tool": self.tool,
            "operation": self.operation,
            "count": self.count,
            "per_second": self.per_second,
            "errors": dict(sorted(self.errors.items())),
            "bytes_per_second": self.bytes_per_second,
            "mean_ms": self.mean_ms,
            "max_ms": self.max_ms,
            "percentiles": {percent: self.percentiles[percent] for percent in percents},
            **({"timing": self.timing} if self.timing else {}),
        }


def file_of(tool: str, rows: Iterable[Separate]) -> dict[str, Any]:
    """Returns the document of a file for the agent."""
    return {"format": FORMAT, "tool": tool, "rows": [row.document() for row in rows]}


def parse_file(document: Any) -> tuple[Separate, ...]:
    """Reads the rows of a file.

    Raises:
        OperationsError: the document has another format, or a row is invalid.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise OperationsError(f"the format must be {FORMAT}")
    rows, tool = document.get("rows"), document.get("tool")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise OperationsError("rows must be a list of objects")
    return parse([{**row, "tool": tool} for row in rows], "rows")


def parse(rows: Any, where: str) -> tuple[Separate, ...]:
    """Reads rows of a summary.

    Args:
        where: the name of the rows in messages.

    Raises:
        OperationsError: a value is missing or of the wrong type.
    """
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        raise OperationsError(f"{where} must be a list of at most {MOST_ROWS} rows")
    return tuple(_row(row, f"{where}[{number}]") for number, row in enumerate(rows))


def checked(row: Separate) -> Separate:
    """Returns the row if a summary can hold it.

    Raises:
        OperationsError: a number is out of range or not finite.
    """
    return _row(row.document(), row.operation)


def _row(row: Any, where: str) -> Separate:
    if not isinstance(row, Mapping):
        raise OperationsError(f"{where} must be an object")
    amounts = (
        _amount(row.get(key), f"{where}.{key}") for key in ("per_second", "bytes_per_second", "mean_ms", "max_ms")
    )
    per_second, bytes_per_second, mean_ms, max_ms = amounts
    return Separate(
        tool=_name(row, "tool", where),
        operation=_name(row, "operation", where),
        count=whole(row.get("count"), f"{where}.count"),
        per_second=per_second,
        errors=errors_in({"errors": {}, **row}, where),
        bytes_per_second=bytes_per_second,
        mean_ms=mean_ms,
        max_ms=max_ms,
        percentiles=_percentiles(row.get("percentiles", {}), f"{where}.percentiles"),
        timing=timing_of(row, where),
    )


def _percentiles(document: Any, where: str) -> dict[str, float]:
    if not isinstance(document, Mapping) or len(document) > MOST_PERCENTILES:
        raise OperationsError(f"{where} must be an object of at most {MOST_PERCENTILES} times by percent")
    percentiles = {}
    for percent, value in document.items():
        if not isinstance(percent, str) or not _PERCENT.fullmatch(percent) or float(percent) > 100:
            raise OperationsError(f"{where}: {str(percent)[:80]!r} must be a percent, such as 99.9")
        milliseconds = _amount(value, f"{where}.{percent}")
        if milliseconds is None:
            raise OperationsError(f"{where}.{percent} must be a number from 0")
        percentiles[percent] = milliseconds
    return percentiles


def _name(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise OperationsError(f"{where}.{key}: {str(value)[:80]!r} must match {NAME.pattern}")
    return value


def _amount(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= sys.float_info.max:  # excludes True and NaN
        raise OperationsError(f"{where} must be a number from 0, or null")
    return float(value)
