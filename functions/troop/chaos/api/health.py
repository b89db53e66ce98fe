"""Serves the route of health: ``GET /health``."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import Field

from troop.chaos.health import Grade
from troop.chaos.wiring import health
from troop.shared.api.errors import answers
from troop.shared.api.models import Moment, Out

router = APIGatewayRouter()  # type: ignore[no-untyped-call]


class CheckOut(Out):
    """One check."""

    name: str
    status: Grade
    value: int | None = Field(description="The value found; null if it could not be read")
    threshold: int = Field(description="The expected value")
    detail: str
    todo: str = Field(description='What to do about it; "" if nothing')
    commands: list[str] = Field(description="Commands that help with it, with the deployment's own names and ARNs")
    runbook: str = Field(description='Address of the runbook\'s entry about it; "" if there is none')


class HealthOut(Out):
    """The deployment's health: the worst status of all checks, and each check."""

    status: Grade
    time_zones: str = Field(description="The functions' release of the IANA time zones")
    last_tick: Moment | None = Field(description="When the last tick came; null if none has come, or if it is unknown")
    next_tick: Moment | None = Field(description="When the next tick is due; null if no window opens within 21 days")
    checks: list[CheckOut]


@router.get(
    "/health", operation_id="get_health", summary="Whether the deployment works", responses=answers("The checks")
)
def get_health() -> HealthOut:
    """Returns the health of the deployment, with 200 whatever the checks find; a check that cannot read its value
    fails. An answer may be 5 seconds old.

    Costs at most 5 pages of schedules, 5 of executions and 5 of alarms. In addition it costs one call for the alarms'
    subscribers, 3 calls about the account and 2 for each undecided table of an earlier deployment, one call for each
    table, calendar and SSM Change Calendar, and 5 more.
    """
    return HealthOut.model_validate(health.health_and_alarms().check())
