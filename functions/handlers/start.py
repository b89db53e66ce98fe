"""Starts a scheduled run of a benchmark."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.bench.wiring import services
from troop.shared import moments
from troop.shared.aws.logs import step
from troop.shared.aws.metrics import emit
from troop.shared.metrics import Metric
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "name")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Starts a run: ``{"name", "digest", "scheduled"}`` of a schedule -> ``{"run", "refusal"}``. Both are None if the
    schedule was removed.
    """
    outcome = services.starts().start(event["name"], event["digest"], moments.parse(event["scheduled"]))
    logger.info("started", schedule=event["name"], run=outcome.run, refusal=outcome.refusal)
    if outcome.refusal:
        emit(environment.settings().deployment, {Metric.STARTS_REFUSED: 1})
    return {"run": outcome.run, "refusal": outcome.refusal}
