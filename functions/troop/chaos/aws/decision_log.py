"""Logs each decision in its own line."""

from __future__ import annotations

from collections.abc import Iterable

from aws_lambda_powertools import Logger

from troop.chaos.decisions import Decision

MOST_GROUPS = 10
"""The most groups that a decision's line names; ``group_count`` is their total."""

LONGEST_DETAIL = 1000
"""The most characters of a detail in a decision's line; the table stores all of it."""

# Omits what is the same in all lines of a function, and has its own name to do so: a tick over many units writes as
# many lines, and every byte costs.
_decisions = Logger(service="decisions", location=None, xray_trace_id=None)


def log_decisions(decisions: Iterable[Decision], execution: str) -> None:
    """Writes one line for each decision: a copy of the table's records for queries over many units and days."""
    _decisions.set_correlation_id(execution)
    for decision in decisions:
        _decisions.info(
            "decision",
            unit=decision.unit,
            day=decision.day.isoformat() if decision.day else None,
            reason=decision.reason,
            detail=decision.detail[:LONGEST_DETAIL],
            groups=list(decision.groups[:MOST_GROUPS]),
            group_count=len(decision.groups),
            rolled=decision.rolled,
            probability=decision.policy.probability.value,
        )
