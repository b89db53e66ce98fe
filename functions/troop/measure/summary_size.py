"""A summary within the bytes that are read of one: many operations over many hours can have more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from troop.measure.operations import Operation
from troop.measure.summary import FAILED, MOST_BYTES, OK, Summary

TARGET_BYTES = 12 << 20
"""From which on something is left out; the rest to :data:`~troop.measure.summary.MOST_BYTES` is to spare."""


def fitted(summary: Summary, target: int = TARGET_BYTES, most: int = MOST_BYTES) -> tuple[Summary, list[str]]:
    """The summary without what is too much. First go the rarest operations' counts by second, then their times over
    time; what they came to in all stays. If that is too much as well, the phase has failed.

    Args:
        target: bytes.
        most: bytes that its reader takes.

    Returns:
        It, and a sentence for each thing that was left out.
    """
    size, operations, omissions = _bytes(summary.document()), dict(summary.operations), list[str]()
    rarest = sorted(operations, key=lambda name: (_ended(operations[name]), name))
    for what, part in (("counts by second", "per_second"), ("times over time", "over_time")):
        for name in rarest:
            if size <= target:
                break
            its, nothing = getattr(operations[name], part), Operation()
            if saved := _bytes(replace(nothing, **{part: its}).document()) - _bytes(nothing.document()):
                size -= saved
                operations[name] = replace(operations[name], **{part: getattr(nothing, part)})
                omissions.append(f"{name}: its {what} are left out, for all operations' together would be too many")
    summary = replace(summary, operations=operations)
    if size <= most:
        return summary, omissions
    reason = f"its summary has {mib(size)}, and {mib(most)} are read: record fewer operations, or fewer kinds of errors"
    omissions.append(reason)
    outcome = FAILED if summary.outcome == OK else summary.outcome
    summary = replace(summary, outcome=outcome, reason="; ".join(filter(None, (summary.reason, reason))))
    return replace(summary, operations={}, separate=(), samples=None), omissions


def mib(size: int) -> str:
    """Bytes, for people."""
    return f"{size / (1 << 20):.1f} MiB"


def encoded(document: Mapping[str, Any]) -> str:
    """A summary's document as it is stored."""
    return json.dumps(document, separators=(",", ":"))


def _bytes(document: Mapping[str, Any]) -> int:
    return len(encoded(document))  # JSON is ASCII here


def _ended(operation: Operation) -> int:
    return operation.times.count + sum(operation.errors.values())
