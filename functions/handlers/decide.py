"""The workflow's step Decide: one decision for every unit, on record; what is to be terminated goes to S3."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop import moments, wiring
from troop.aws.clients import client
from troop.aws.decisions import put_work
from troop.aws.logs import log_decisions, step
from troop.aws.metrics import emit
from troop.chaos.metrics import CALENDAR, REASON, Metric

logger = Logger()


@step(logger, "execution")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"calendar", "execution", "started"}`` -> ``{"count", "bucket", "key", "max_in_flight", "reasons"}``.

    The list of what to terminate is in S3, for a state's payload ends at 256 KiB; nothing is written for none.
    """
    execution = event["execution"]
    started = moments.parse(event["started"])
    decisions, work = wiring.tick().run(event["calendar"], execution, started)
    bucket = wiring.variable("TROOP_WORK_BUCKET")
    key = f"ticks/{started:%Y/%m/%d/%H-%M}-{execution.rpartition(':')[2]}.json"
    if work:
        put_work(client("s3"), bucket, key, work)
    log_decisions(decisions, execution)
    reasons = Counter(d.reason for d in decisions)
    logger.info("decided", calendar=event["calendar"], units=len(decisions), reasons=dict(reasons), execution=execution)
    deployment = wiring.settings().deployment
    emit(deployment, {Metric.TICKS: 1})
    for reason, count in reasons.items():
        emit(deployment, {Metric.DECISIONS: count}, **{REASON: reason})
    if decisions:
        taking_part = sum(bool(d.policy.takes_part.value) for d in decisions)
        units = {Metric.UNITS_TAKING_PART: taking_part, Metric.UNITS_OPTED_OUT: len(decisions) - taking_part}
        emit(deployment, units, **{CALENDAR: event["calendar"]})
    return {
        "count": len(work),
        "bucket": bucket,
        "key": key,
        "max_in_flight": wiring.settings().max_in_flight,
        "reasons": dict(reasons),
    }
