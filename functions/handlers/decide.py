"""Runs the workflow's step Decide: records a decision for every unit, and writes the list of terminations to S3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.decision_table import put_work
from troop.chaos.decisions import Decision
from troop.chaos.wiring.tick import tick
from troop.chaos.work_keys import work_key
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.metrics import CALENDAR, REASON, Metric
from troop.shared.variables import Variable
from troop.shared.wiring import environment

MOST_GROUPS = 10
"""The most groups that a decision's line names; ``group_count`` is their total."""

LONGEST_DETAIL = 1000
"""The most characters of a detail in a decision's line; the table stores all of it."""

# Omits what is the same in all lines of a function, and has its own name to do so: a tick over many units writes as
# many lines, and every byte costs.
decision_logger = Logger(service="decisions", location=None, xray_trace_id=None)

logger = Logger()


@step(logger, "execution")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Decides: ``{"calendar", "execution", "started"}`` -> ``{"count", "bucket", "key", "max_in_flight", "reasons"}``.

    The list of terminations is in S3, because a state's payload is limited to 256 KiB; an empty list is not written.
    """
    execution = event["execution"]
    started = moments.parse(event["started"])
    ticked = tick().run(event["calendar"], execution, started)
    decisions, work = ticked.decisions, ticked.work
    bucket = environment.variable(Variable.WORK_BUCKET)
    key = work_key(execution, started)
    if work:
        put_work(client("s3"), bucket, key, work)
    _log_decisions(decisions, execution)
    reasons = Counter(d.reason for d in decisions)
    logger.info("decided", calendar=event["calendar"], units=len(decisions), reasons=dict(reasons), execution=execution)
    if (strays := ticked.strays).count:
        logger.warning("stray items", count=strays.count, named=[stray.in_words for stray in strays.named])
    deployment = environment.settings().deployment
    emit(deployment, {Metric.TICKS: 1})
    for reason, count in reasons.items():
        emit(deployment, {Metric.DECISIONS: count}, **{REASON: reason})
    if decisions:
        units = {
            Metric.UNITS_TAKING_PART: sum(d.takes_part for d in decisions),
            Metric.UNITS_OPTED_OUT: sum(not d.policy.takes_part.value for d in decisions),
        }
        emit(deployment, units, **{CALENDAR: event["calendar"]})
    return {
        "count": len(work),
        "bucket": bucket,
        "key": key,
        "max_in_flight": environment.settings().max_in_flight,
        "reasons": dict(reasons),
    }


def _log_decisions(decisions: Iterable[Decision], execution: str) -> None:
    """Writes one line for each decision: a copy of the table's records for queries over many units and days."""
    decision_logger.set_correlation_id(execution)
    for decision in decisions:
        decision_logger.info(
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
