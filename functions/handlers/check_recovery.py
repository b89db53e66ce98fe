"""Runs the workflow's step CheckRecovery: waits until the group has recovered."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.outcome_metrics import emit_closed, emit_verdicts
from troop.chaos.recovery import EARLIER_SECONDS, EARLIER_WAIT
from troop.chaos.wiring.recovery import recovery_check
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "event_id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Checks: ``{"event_id", "entered", "token"}`` -> ``{"event_id", "status", "wait_seconds"}``. ``entered`` is when
    the workflow entered the step.

    The workflow waits by its token, not for this answer: see :meth:`RecoveryCheck.wait`. Only an execution that an
    earlier version has started sends no token; it waits ``wait_seconds`` and checks again while the event is
    TERMINATED.
    """
    event_id, entered = event["event_id"], moments.parse(event["entered"])
    if token := event.get("token"):
        observation = recovery_check().wait(event_id, entered, token)
    else:
        observation = recovery_check().watch(event_id, entered, EARLIER_SECONDS)
    logger.info("recovery_check", **observation.logged)
    if observation.closed:
        emit_closed(environment.settings().deployment, observation.event)
    elif observation.judged:
        emit_verdicts(environment.settings().deployment, [observation.event])
    return {
        "event_id": event_id,
        "status": observation.event.status.value,
        "wait_seconds": EARLIER_WAIT if observation.event.is_recovering else 0,
    }
