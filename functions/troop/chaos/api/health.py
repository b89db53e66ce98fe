"""Serves the route of health: ``GET /health``."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import Field

from troop.chaos.health import Digest, Grade
from troop.chaos.wiring import health
from troop.shared.api.errors import answers
from troop.shared.api.models import Moment, Out
from troop.shared.release import RunningRelease
from troop.shared.wiring import environment

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


class ReleaseOut(Out):
    """The code that the deployment runs."""

    version: str = Field(description="Troop's version")
    commit: str | None = Field(description="The commit that it was built from; null if unknown")
    assets: dict[str, str] = Field(
        description="SHA-256 of the archives of functions and layers, of the nodes' agent, and of the workflows"
    )
    since: Moment = Field(description="When the watchdog, which looks every 15 minutes, saw it first")

    @classmethod
    def from_running(cls, running: RunningRelease) -> ReleaseOut:
        return cls(**running.release.document(), since=running.since)


class HealthOut(Out):
    """The deployment's health: the worst status of all checks, and each check."""

    status: Grade
    stage: str | None = Field(description="The deployment's stage; null without one")
    release: ReleaseOut | None = Field(description="The release; null until it is recorded, or if it cannot be read")
    time_zones: str = Field(description="The functions' release of the IANA time zones")
    last_tick: Moment | None = Field(description="When the last tick came; null if none has come, or if it is unknown")
    next_tick: Moment | None = Field(description="When the next tick is due; null if no window opens within 21 days")
    checks: list[CheckOut]

    @classmethod
    def from_digest(cls, digest: Digest, stage: str | None) -> HealthOut:
        release = ReleaseOut.from_running(digest.release) if digest.release else None
        checks = [CheckOut.model_validate(check) for check in digest.checks]
        return cls(
            status=digest.status,
            stage=stage,
            release=release,
            time_zones=digest.time_zones,
            last_tick=digest.last_tick,
            next_tick=digest.next_tick,
            checks=checks,
        )


@router.get(
    "/health", operation_id="get_health", summary="Whether the deployment works", responses=answers("The checks")
)
def get_health() -> HealthOut:
    """Returns the health of the deployment, with 200 whatever the checks find; a check that cannot read its value
    fails. An answer may be 5 seconds old.

    Costs at most 5 pages of schedules, 5 of executions and 5 of alarms. In addition it costs one call for the alarms'
    subscribers, 3 calls about the account and 2 for each undecided table of an earlier deployment, one call for each
    table, calendar and SSM Change Calendar, and 6 more.
    """
    return HealthOut.from_digest(health.health_and_alarms().check(), environment.stage())
