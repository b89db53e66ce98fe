"""Reads how often each time occurred in a tool's whole run, from lines of a value and a count.

The lines are those of HdrHistogram's percentile distribution (wrk2, memtier), of sysbench's ``--histogram``, of
redis-benchmark's percentiles, or two numbers. A request counts with the value of its line, which is not less than its
time. So counts of several nodes can be added up. Values are as exact as the lines are dense: a few percent for wrk2,
two for sysbench.

Output with several distributions needs the texts that come before the right one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.hdr_log import UNITS
from troop.measure.histogram import Histogram
from troop.measure.operations import Operation

_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_COUNT = r"([0-9]{1,18})"
_CUMULATIVE = (
    re.compile(rf"{_NUMBER}\s+[01]\.[0-9]+\s+{_COUNT}(?:\s+(?:[0-9.]+|inf))?"),
    re.compile(rf"[0-9.]+%\s*<=\s*{_NUMBER}\s*(?:milli|micro)seconds\s*\(cumulative count {_COUNT}\)"),
)
_SINGLE = (re.compile(rf"{_NUMBER}\s*\|\**\s*{_COUNT}"),)
_PAIR = re.compile(rf"{_NUMBER}(?:\s*,\s*|\s*;\s*|\s+){_COUNT}")


@dataclass(frozen=True)
class _Line:
    number: int
    value: float
    count: int
    is_cumulative: bool


def read(path: Path, unit: str, after: Sequence[str], problems: Problems, *, is_cumulative: bool = False) -> Operation:
    """Reads an operation from a file; errors are unknown.

    Args:
        unit: of the values, one of :data:`~troop.measure.hdr_log.UNITS`.
        after: texts of lines before the distribution, in order.
        is_cumulative: whether the count of two numbers includes those of the lines before.

    Raises:
        OSError: the file cannot be read.
        CollectorError: there is no distribution, or it is damaged.
    """
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    return operation(text, str(path), unit, after, problems, is_cumulative=is_cumulative)


def operation(
    text: str, name: str, unit: str, after: Sequence[str], problems: Problems, *, is_cumulative: bool = False
) -> Operation:
    """Reads an operation from a file's text, as :func:`read` does."""
    lines = text.splitlines()
    section = _section(lines, 0, after, is_cumulative)
    if not section:
        where = "".join(f" after {one!r}" for one in after)
        raise CollectorError(f"{name}:{max(len(lines), 1)}: there is no distribution of values and counts{where}")
    if again := _section(lines, section[-1].number, after, is_cumulative):
        problems.add(
            f"{name}:{again[0].number}: there is another distribution: choose one by the texts before it (--after)"
        )
    return Operation(times=_histogram(section, name, unit))


def _section(lines: Sequence[str], begin: int, after: Sequence[str], is_cumulative: bool) -> list[_Line]:
    """Returns the first lines in a row that have a value and a count, after the texts."""
    texts, section = list(after), []
    for number, line in enumerate(lines[begin:], begin + 1):
        if texts:
            if texts[0] in line:
                texts.pop(0)
        elif one := _line(number, line.strip(), is_cumulative):
            section.append(one)
        elif section:
            break
    return section


def _line(number: int, line: str, is_cumulative: bool) -> _Line | None:
    for patterns, cumulative in ((_CUMULATIVE, True), (_SINGLE, False), ((_PAIR,), is_cumulative)):
        for pattern in patterns:
            if match := pattern.fullmatch(line):
                return _Line(number, float(match[1]), int(match[2]), cumulative)
    return None


def _histogram(section: Sequence[_Line], name: str, unit: str) -> Histogram:
    histogram, before, value = Histogram(), 0, 0.0
    for line in section:
        count = line.count - before if line.is_cumulative else line.count
        if count < 0 or line.value < value:
            raise CollectorError(f"{name}:{line.number}: a value or a cumulative count is less than the one before")
        if line.is_cumulative:
            before = line.count
        value = line.value
        if count:
            try:
                histogram.record(round(line.value * UNITS[unit] / UNITS["us"]), count)
            except (ValueError, OverflowError) as error:
                raise CollectorError(f"{name}:{line.number}: {error}") from None
    return histogram
