"""Requests hits on units for benchmarks that load them."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from troop.chaos.wiring.services import under_load
from troop.shared import moments
from troop.shared.aws.logs import step

logger = Logger()


@step(logger, "run")
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Requests a hit: ``{"run", "cell", "step", "number", "unit", "requested_at", "latest", "choice"}``. Moments are
    ISO 8601, the choice is a fault as text or None. Reads what has become of a hit: ``{"event_id"}``.

    Both answer ``{"outcome": "DONE" | "REFUSED", "why", "event"}``, see
    :class:`troop.chaos.flows.under_load.UnderLoad`.

    Also tells which units may not be hit: ``{"units"}`` -> ``{"objections": {unit: why}}``.
    """
    service = under_load()
    if units := event.get("units"):
        return {"objections": service.objections(units)}
    if event_id := event.get("event_id"):
        return service.read(event_id)
    answer = service.request(
        event["run"],
        event["cell"],
        event["step"],
        event["number"],
        event["unit"],
        moments.parse(event["requested_at"]),
        moments.parse(event["latest"]),
        event.get("choice"),
    )
    logger.info("requested", run=event["run"], unit=event["unit"], **answer)
    return answer
