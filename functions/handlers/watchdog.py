"""Runs the watchdog: checks the deployment's health on its own schedule, and writes metrics for the alarms. It also
drops dead letters that have caused their alarm, and records which release runs.
"""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos import health
from troop.chaos.dead_letters import Letter
from troop.chaos.wiring import health as watchdog
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit, emit_repairs
from troop.shared.metrics import Metric, Repair
from troop.shared.wiring import environment

logger = Logger()

_MEASURED = {
    Metric.UNITS_UNRECOVERED: health.UNITS_UNRECOVERED,
    Metric.MISSING_TICKS: health.TICKS_MISSING,
}


@step(logger, "id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Checks the health: any event -> ``{"status", "failing": [names of checks]}``.

    A value that could not be read has no metric, because a zero would end an alarm. Then FailingChecks has none either:
    a watchdog that cannot read counts as silent, which raises an alarm.
    """
    _drop_letters()
    _note_release()
    digest = watchdog.health().check()
    for check in digest.checks:
        if check.status is not health.Grade.OK:
            logger.warning("check", check=check.name, status=check.status.value, value=check.value, detail=check.detail)
    measurements = {metric: value for metric, name in _MEASURED.items() if (value := digest.value(name)) is not None}
    if all(check.value is not None for check in digest.checks):
        measurements[Metric.FAILING_CHECKS] = digest.failing
    if digest.value(health.HALTED_ITSELF):
        measurements[Metric.HALTED_ITSELF] = 1
    emit(environment.settings().deployment, measurements)
    failing = [check.name for check in digest.checks if check.status is health.Grade.FAIL]
    return {"status": digest.status.value, "failing": failing}


def _drop_letters() -> None:
    """Drops dead letters. A failure must not stop the watchdog: the letters stay, and so does their alarm."""
    dropped = 0
    try:
        for _ in watchdog.dead_letters().drop(_write_down):
            dropped += 1
    except Exception:
        logger.exception("dead letters could not be read")
    emit_repairs(environment.settings().deployment, Repair.DEAD_LETTER, dropped)


def _note_release() -> None:
    """Records the release. A failure must not stop the watchdog, which tries again at its next call."""
    try:
        watchdog.releases().note(environment.release(), environment.now())
    except Exception:
        logger.exception("the release was not recorded")


def _write_down(letter: Letter) -> None:
    attributes = {name.lower(): letter.attributes.get(name) for name in ("TARGET_ARN", "ERROR_CODE", "ERROR_MESSAGE")}
    extra = {"sent": moments.iso(letter.sent), "body": letter.body[:1000], **attributes}
    logger.warning("dead letter dropped", extra=extra)
