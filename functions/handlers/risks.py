"""Reads the account once a day, and records what could make a recovery fail. A schedule calls it."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.risks.flows.daily_reading import counts
from troop.risks.wiring import survey
from troop.shared.aws.logs import step
from troop.shared.wiring import environment

logger = Logger()


@step(logger, "id")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Reads the account: any event -> ``{"high", "medium", "low"}``, the numbers of risks that hold."""
    reading, risks = survey.daily_reading().run(environment.now())
    numbers = counts(risks)
    log = logger.warning if reading.unread or reading.unrecorded else logger.info
    extra = {"subjects": dict(reading.subjects), "unread": list(reading.unread), "unrecorded": reading.unrecorded}
    log("risks", extra=numbers | extra)
    return numbers
