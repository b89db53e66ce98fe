"""Tells others what was recorded: called by Lambda with the records of the tables' streams."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop import wiring
from troop.aws.metrics import emit
from troop.aws.stream import parse
from troop.chaos.metrics import Metric
from troop.flows.notify import UnreadableRecord

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"Records"}`` -> ``{"batchItemFailures"}``: the record that could not be told of, if there is one.

    Lambda calls again from that record on, until it is told of or too old. A record that cannot be read is logged,
    counted and passed over, for it would hold up all that come after it.
    """
    notifier = wiring.notifier()
    failures: list[dict[str, str]] = []
    sent = failed = 0
    for raw in event["Records"]:
        record = parse(raw)
        try:
            sent += notifier.tell(record)
        except UnreadableRecord:
            failed += 1
            logger.exception("passed over", table=record.table, sequence=record.sequence)
        except Exception:  # whatever it is, this record and those after it are tried again
            failed += 1
            logger.exception("not sent", table=record.table, sequence=record.sequence)
            failures.append({"itemIdentifier": record.sequence})
            break
    told = {Metric.NOTIFICATIONS: float(sent), Metric.NOTIFICATIONS_FAILED: float(failed)}
    emit(wiring.settings().deployment, {metric: number for metric, number in told.items() if number})
    return {"batchItemFailures": failures}
