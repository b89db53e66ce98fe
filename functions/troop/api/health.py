"""Route of health: ``GET /health``."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import Field

from troop.api.errors import answers
from troop.api.models import Out
from troop.chaos.health import Grade
from troop.wiring import watchdog

router = APIGatewayRouter()  # type: ignore[no-untyped-call]


class CheckOut(Out):
    """One thing that was looked at."""

    name: str
    status: Grade
    value: int | None = Field(description="What was found; null when it could not be read")
    threshold: int = Field(description="What the value should be")
    detail: str
    todo: str = Field(description='What to do about it; "" when nothing is')


class HealthOut(Out):
    """How the deployment does: the worst of all checks, and each of them."""

    status: Grade
    checks: list[CheckOut]


@router.get(
    "/health", operation_id="get_health", summary="Whether the deployment works", responses=answers("What was found")
)
def get_health() -> HealthOut:
    """Answers 200 whatever the checks find; what cannot be read is a check that fails. Costs a bounded number of reads:
    at most 5 pages of schedules, 5 of executions, one call for each table and 5 more; of alarms 5 pages, and one
    call for who is told of them; of the account 2 calls, and one for each table of an earlier deployment.
    """
    return HealthOut.model_validate(watchdog.health_and_alarms().check())
