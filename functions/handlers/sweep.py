"""Sweeps up what was left behind: the first step of every tick, and between ticks, day and night, by a schedule."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop import moments
from troop.aws.logs import step
from troop.aws.metrics import emit, emit_outcomes, emit_repairs, outcomes
from troop.errors import TroopError
from troop.metrics import Repair
from troop.wiring import chaos, environment

logger = Logger()


class SweepIncompleteError(TroopError):
    """Some events in flight could not be swept; the rest was."""


@step(logger, "execution")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"execution", "started"}`` -> ``{"swept": count}``. The two are a tick's, or of the call by the schedule.

    Raises:
        SweepIncompleteError: after all others were swept, when some event could not be.
    """
    swept = chaos.sweeper().run(moments.parse(event["started"]))
    for one in swept:
        log = logger.error if one.error else logger.info
        log("swept", event_id=one.event_id, status=one.status, error=one.error, execution=event["execution"])
    # Without seconds: when such a group was whole again is known to the tick at best.
    deployment = environment.settings().deployment
    emit(deployment, outcomes(one.status for one in swept))
    emit_outcomes(deployment, [one.status for one in swept])
    emit_repairs(deployment, Repair.EVENT, sum(not one.error for one in swept))
    if failed := [one for one in swept if one.error]:
        raise SweepIncompleteError("; ".join(f"{one.event_id}: {one.error}" for one in failed[:5]))
    return {"swept": len(swept)}
