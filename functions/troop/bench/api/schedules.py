"""Serves the routes of scheduled runs: ``POST`` and ``GET /benchmarks/schedules``, ``DELETE
/benchmarks/schedules/{name}``.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import Field

from troop.bench.api.cost_models import EstimateIn
from troop.bench.api.permission import check_permit
from troop.bench.api.run_answers import forbidden_file, json_response
from troop.bench.api.run_models import contents
from troop.bench.aws.stored_schedules import TooManySchedulesError
from troop.bench.flows.scheduled_runs import BadScheduleError, MissingScheduleError, ScheduledRuns, ScheduleExistsError
from troop.bench.records.schedule import Schedule
from troop.bench.wiring import services
from troop.shared.api.errors import WITHOUT_BENCHMARKS, answers, check_benchmarks
from troop.shared.api.models import Listing, Moment, Out, listed
from troop.shared.api.requests import caller_of
from troop.shared.malformed import Read

router = APIGatewayRouter()  # type: ignore[no-untyped-call]


class ScheduleIn(EstimateIn):
    """A benchmark to run on a schedule."""

    name: str = Field(max_length=64, description="A letter, then letters, digits and hyphens, at most 48 in all")
    expression: str = Field(
        max_length=256, description="As EventBridge Scheduler has it: rate(6 hours), cron(0 3 ? * MON-FRI *), at(...)"
    )
    time_zone: str = Field("UTC", max_length=50, description="Of the IANA database, such as Europe/Berlin")


class ScheduleOut(Out):
    """A schedule that starts runs of a benchmark."""

    name: str
    expression: str
    time_zone: str
    benchmark: str = Field(description="The name in the benchmark's file")
    size: str | None
    expected: float = Field(description="The expected cost of one run when the schedule was created")
    most: float = Field(description="The same in the worst case, which counts against the month's budget")
    currency: str
    created_at: Moment
    created_by: str = Field(description="The caller's ARN in IAM")
    next_at: Moment | None = Field(
        description="The time of the next start; null if there is none, or while the switch stops all schedules"
    )
    last_at: Moment | None = Field(description="The time of the last start; null before the first")
    last_run: str | None = Field(description="The run of the last start; null if it was refused")
    last_refusal: str | None = Field(description="Why the last start was refused or failed; null otherwise")


class SchedulesOut(Listing):
    """All schedules, and what their runs can cost."""

    schedules: list[ScheduleOut]
    off: bool = Field(description="The switch stops all schedules")
    month: str = Field(description="The current month in UTC, such as 2027-01")
    cost: float | None = Field(
        description="The worst cases of all runs that schedules have started in this month; null if it is malformed"
    )
    budget: float | None = Field(description="The setting troop:max_scheduled_cost; null for no limit")


_CONTENT = {"application/json": {"model": ScheduleOut}}


@router.post(
    "/benchmarks/schedules",
    operation_id="schedule_benchmark",
    summary="Run a benchmark on a schedule",
    responses=answers("", 400, 409)
    | {
        200: {"description": "This schedule already exists", "content": _CONTENT},
        201: {"description": "The schedule is created", "content": _CONTENT},
    }
    | forbidden_file("benchmark"),
)
def schedule_benchmark(body: Annotated[ScheduleIn, Body()]) -> Response[Any]:
    """Creates a schedule that starts runs of a benchmark. Checks and estimates a run as POST /benchmarks/estimate does.
    Each start is checked again as POST /benchmarks does, and against the budget of the month
    (troop:max_scheduled_cost). A repeated request changes nothing.

    Costs an estimate, 1 object, 2 items, a transaction and 1 call to EventBridge Scheduler.
    """
    service = _service()
    contents(body.files)
    request = {"definition": body.definition, "size": body.size, "set": body.set, "files": body.files}
    caller = caller_of(router.current_event.raw_event)
    try:
        schedule, existed = service.create(
            body.name,
            body.expression,
            body.time_zone,
            request,
            caller,
            partial(check_permit, caller, "schedule", body.name),
        )
    except BadScheduleError as bad:
        raise ServiceError(400, str(bad)) from None
    except (ScheduleExistsError, TooManySchedulesError) as conflict:
        raise ServiceError(409, str(conflict)) from None
    return json_response(200 if existed else 201, _out(schedule, service.next_start(schedule)))


@router.get(
    "/benchmarks/schedules",
    operation_id="list_schedules",
    summary="Scheduled runs, with the last outcome of each",
    responses=answers("All schedules") | WITHOUT_BENCHMARKS,
)
def list_schedules() -> SchedulesOut:
    """Lists all schedules, of which there are at most 100. Costs 3 items, and 1 for each schedule."""
    listing = _service().list()
    schedules, malformed = listed(
        Read(tuple(listing.schedules), tuple(listing.malformed)),
        lambda pair: _out(*pair),
        lambda pair: f"State: {pair[0].name}",
    )
    return SchedulesOut(
        schedules=schedules,
        malformed=malformed,
        off=listing.off,
        month=listing.month,
        cost=_number(listing.cost),
        budget=_number(listing.budget),
    )


@router.delete(
    "/benchmarks/schedules/<name>",
    operation_id="unschedule_benchmark",
    summary="Remove a schedule",
    responses=answers("The schedule, removed", 400, 404) | WITHOUT_BENCHMARKS,
)
def unschedule_benchmark(
    name: Annotated[str, Path(max_length=64, description="The name from GET /benchmarks/schedules")],
) -> ScheduleOut:
    """Removes a schedule; runs that it has started go on. Costs 1 item, a transaction, 1 call to S3 and 1 to
    EventBridge Scheduler.
    """
    try:
        return _out(_service().delete(name), None)
    except MissingScheduleError as missing:
        raise NotFoundError(str(missing)) from None


def _out(schedule: Schedule, next_at: datetime | None) -> ScheduleOut:
    return ScheduleOut.model_validate(asdict(schedule) | {"next_at": next_at})


def _number(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _service() -> ScheduledRuns:
    check_benchmarks()
    return services.schedules()
