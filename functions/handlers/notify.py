"""Sends notifications. Lambda calls it with the records of the tables' streams. Schedules call it to send overdue
notifications again, and the weekly letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.streams import parse
from troop.chaos.flows.notifier import UnreadableRecord
from troop.chaos.notifications import Kind, Notification
from troop.chaos.wiring import notifications
from troop.risks.wiring import records
from troop.shared import moments
from troop.shared.aws.metrics import emit, emit_repairs
from troop.shared.metrics import Metric, Repair
from troop.shared.wiring import environment

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Sends notifications: ``{"Records"}`` -> ``{"batchItemFailures"}``, the record that failed, if there is one.
    ``{"letter"}``, the moment when a weekly letter is due -> ``{"lines"}``, their number. Anything else, from the
    hourly schedule -> ``{"letters", "kept"}``: how many dead letters were sent, and why others were not.

    Lambda calls again from the failed record on, until it is sent or too old. A record that cannot be read is logged,
    counted and skipped, because it would block all later ones.
    """
    if "letter" in event:
        return _weekly_letter(moments.parse(event["letter"]))
    if "Records" not in event:
        return _redrive()
    notifier = notifications.notifier()
    failures: list[dict[str, str]] = []
    sent: list[Notification] = []
    failed = 0
    for raw in event["Records"]:
        record = parse(raw)
        try:
            sent += notifier.notify(record)
        except UnreadableRecord:
            failed += 1
            logger.exception("passed over", table=record.table, sequence=record.sequence)
        except Exception:  # after any error, this record and later ones are retried
            failed += 1
            logger.exception("not sent", table=record.table, sequence=record.sequence)
            failures.append({"itemIdentifier": record.sequence})
            break
    _count(sent, failed)
    return {"batchItemFailures": failures}


def _weekly_letter(due: datetime) -> dict[str, Any]:
    news = notifications.weekly_letter().send(due, _risk_lines)
    _count([news], 0)
    return {"lines": len(news.detail["letter"])}


def _risk_lines(since: datetime, until: datetime) -> list[str]:
    """Returns the lines about risks. A failure must not stop the letter."""
    try:
        return records.letter_lines(since, until)
    except Exception:
        logger.exception("risks could not be read")
        return ["Risks could not be read."]


def _redrive() -> dict[str, Any]:
    redriven = notifications.redrive().run()
    _count(redriven.notifications, 0)
    emit_repairs(environment.settings().deployment, Repair.NOTIFICATION, redriven.letters)
    log = logger.warning if redriven.letters or redriven.waiting else logger.info
    log("redriven", letters=redriven.letters, told=len(redriven.notifications), kept=redriven.waiting)
    return {"letters": redriven.letters, "kept": redriven.waiting}


def _count(sent: Iterable[Notification], failed: int) -> None:
    """Logs a line for each notification, with its event, so that a tick can be traced to its notifications."""
    sent = list(sent)
    for news in sent:
        about = {key: news.detail.get(key) for key in ("id", "event_id", "unit")}
        extra = {"kind": news.kind.value, "correlation_id": about["event_id"] or about["id"], **about}
        logger.info("told", extra=extra)
    counts = {
        Metric.NOTIFICATIONS: len(sent),
        Metric.NOTIFICATIONS_FAILED: failed,
        Metric.SLOW_RECOVERIES: sum(news.kind is Kind.SLOW_RECOVERY for news in sent),
    }
    emit(environment.settings().deployment, {metric: float(number) for metric, number in counts.items() if number})
