"""Runs the workflow's step CheckRecovery: checks whether the group has recovered."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.event_table import StepRefused
from troop.chaos.aws.outcome_metrics import emit_outcomes, outcomes
from troop.chaos.wiring.recovery import recovery_check
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.metrics import Metric
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "event_id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Checks once or twice: ``{"event_id", "entered"}`` -> ``{"event_id", "status", "wait_seconds"}``.

    The status TERMINATED means: check again after the wait. ``entered`` is when the workflow entered the step.
    """
    event_id, entered = event["event_id"], moments.parse(event["entered"])
    try:
        observation = recovery_check().check_until_sure(event_id, entered)
    except StepRefused:
        observation = recovery_check().check_until_sure(
            event_id, entered
        )  # closed between our read and write: returns the closed event
    logger.info(
        "recovery_check",
        event_id=observation.event.event_id,
        status=observation.event.status.value,
        detail=observation.detail,
        recovery_seconds=observation.event.recovery_seconds,
        instance_id=observation.event.instance_id,
        execution=observation.event.execution,
    )
    measured = outcomes([observation.event.status.value])
    if observation.event.recovery_seconds is not None:
        measured[Metric.RECOVERY_SECONDS] = observation.event.recovery_seconds
    emit(environment.settings().deployment, measured)
    emit_outcomes(environment.settings().deployment, [observation.event.status.value])
    return {
        "event_id": observation.event.event_id,
        "status": observation.event.status.value,
        "wait_seconds": observation.wait_seconds,
    }
