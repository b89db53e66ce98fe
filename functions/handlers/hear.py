"""Hears events of AWS on the default event bus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.aws.outcome_metrics import emit_closed, emit_verdicts
from troop.chaos.flows.recovery_check import Observation
from troop.chaos.wiring.recovery import alarm_stop, hearing
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Hears one event: its kind, ``time`` and ``detail``, of which only names are used -> ``{"events": [ids]}``
    of the terminations that it was about.
    """
    at, detail = moments.parse(event["time"]), event["detail"]
    if event["source"] == "aws.ec2":
        return {"events": hearing().instance_runs(detail["instance-id"], at)}
    observations: Iterable[Observation]
    if event["source"] == "aws.cloudwatch":
        observations = alarm_stop().went_off(detail["alarmName"], moments.parse(detail["state"]["timestamp"]))
    else:
        launched = event["detail-type"] == "EC2 Instance Launch Successful"
        observations = hearing().group_changed(detail["AutoScalingGroupName"], at, launched)
    event_ids = []
    for observation in observations:
        event_ids.append(observation.event.event_id)
        logger.info("recovery_check", **observation.logged)
        if observation.closed:
            emit_closed(environment.settings().deployment, observation.event)
        elif observation.judged:
            emit_verdicts(environment.settings().deployment, [observation.event])
    return {"events": event_ids}
