"""Shortens summaries that are too large to be read: many operations over many hours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable

from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import FAILED, MOST_BYTES, OK, Summary

TARGET_BYTES = 12 << 20
"""The weight above which data is left out. The rest up to :data:`~troop.measure.summary.MOST_BYTES` is a reserve."""


def fit_summary(summary: Summary, target: int = TARGET_BYTES, most: int = MOST_BYTES) -> tuple[Summary, list[str]]:
    """Shortens a summary that is too large.

    Removes the samples of devices, then kinds of errors by second, then counts by second, then times over time, each
    from the rarest operations first; totals stay. If the summary is still too large, the phase has failed.

    Args:
        target: of :func:`weight`.
        most: the weight that the reader accepts.

    Returns:
        The summary, and a sentence for each part that was left out.
    """
    size, operations, omissions = weight(summary.document()), dict(summary.operations), list[str]()
    if size > target and summary.samples and summary.samples.devices:
        devices = summary.samples.devices
        summary = replace(summary, samples=replace(summary.samples, devices=None))
        omissions.append(f"samples of {len(devices.series)} devices are left out, because the summary is too large")
        size = weight(summary.document())
    rarest = sorted(operations, key=lambda name: (_ended(operations[name]), name))
    for kind, shortened in _SHORTENED.items():
        for name in rarest:
            if size <= target:
                break
            whole = operations[name]
            shorter = shortened(whole)
            if saved := _over_time(whole) - _over_time(shorter):
                size -= saved
                operations[name] = shorter
                omissions.append(f"{name}: {kind} are left out, because all operations have too many in total")
    summary = replace(summary, operations=operations)
    if size <= most:
        return summary, omissions
    reason = f"the summary has {mib(size)}; the limit is {mib(most)}: record fewer operations or fewer kinds of errors"
    omissions.append(reason)
    outcome = FAILED if summary.outcome == OK else summary.outcome
    summary = replace(summary, outcome=outcome, reason="; ".join(filter(None, (summary.reason, reason))))
    return replace(summary, operations={}, separate=(), samples=None), omissions


_SHORTENED: Mapping[str, Callable[[Operation], Operation]] = {
    "kinds of errors by second": lambda one: replace(one, per_second=replace(one.per_second, kinds=None)),
    "counts by second": lambda one: replace(one, per_second=PerSecond()),
    "times over time": lambda one: replace(one, over_time=None),
}
"""What to leave out of an operation, the least important first."""


def _over_time(operation: Operation) -> int:
    """Returns the weight of what an operation has over time."""
    return weight(Operation(per_second=operation.per_second, over_time=operation.over_time).document(True))


def mib(size: int) -> str:
    """Formats bytes as MiB."""
    return f"{size / (1 << 20):.1f} MiB"


def encoded(document: Mapping[str, Any]) -> str:
    """Encodes a summary's document as it is stored."""
    return json.dumps(document, separators=(",", ":"))


def weight(document: Mapping[str, Any]) -> int:
    """Returns the bytes of a document as JSON, and one more for each packed count: equal counts have hardly any bytes,
    but to merge them takes time and memory.
    """
    return len(encoded(document)) + _packed(document)  # the JSON is ASCII


def _packed(document: Any) -> int:
    if not isinstance(document, Mapping):
        return 0
    if isinstance(document.get("packed"), str):
        number: int = document["count"]
        return number
    return sum(map(_packed, document.values()))


def _ended(operation: Operation) -> int:
    return operation.times.count + sum(operation.errors.values())
