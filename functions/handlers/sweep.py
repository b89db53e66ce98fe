"""Sweeps: the first step of every tick, and also between ticks, at all hours, on a schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.outcome_metrics import emit_outcomes, emit_verdicts, outcomes
from troop.chaos.wiring.recovery import sweep
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit, emit_repairs
from troop.shared.errors import TroopError
from troop.shared.metrics import Metric, Repair
from troop.shared.wiring import environment

logger = Logger()


class SweepIncompleteError(TroopError):
    """Some events in flight could not be swept; the rest was."""


@step(logger, "execution")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Sweeps: ``{"execution", "started"}`` -> ``{"swept": count}``. The two values are of a tick, or of the schedule's
    call.

    Raises:
        SweepIncompleteError: after all others were swept, if some event could not be.
    """
    swept = sweep().run(moments.parse(event["started"]))
    for one in swept:
        log = logger.error if one.error else logger.info
        log("swept", event_id=one.event_id, status=one.status, error=one.error, execution=event["execution"])
    # Without seconds: such a group's recovery time is known only to within a tick.
    deployment = environment.settings().deployment
    emit(deployment, outcomes(one.status for one in swept))
    emit_outcomes(deployment, [one.status for one in swept])
    emit_verdicts(deployment, [one.event for one in swept if one.event])
    emit_repairs(deployment, Repair.EVENT, sum(not one.error and not one.unproven for one in swept))
    if unproven := sum(one.unproven for one in swept):
        emit(deployment, {Metric.UNPROVEN_FAULTS: unproven})
    if failed := [one for one in swept if one.error]:
        raise SweepIncompleteError("; ".join(f"{one.event_id}: {one.error}" for one in failed[:5]))
    return {"swept": len(swept)}
