"""Serves the routes of standing fleets: ``POST`` and ``GET /fleets``, ``POST /fleets/estimate``; ``GET``, ``PATCH``
and ``DELETE /fleets/{fleet}``; ``POST /fleets/{fleet}/tasks`` and ``GET /fleets/{fleet}/results``.
"""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from troop.bench.api.cost_models import EstimateOut, estimated
from troop.bench.api.fleet_models import (
    ChangeFleetIn,
    EstimateFleetIn,
    FleetDetailOut,
    FleetOut,
    FleetsOut,
    StartFleetIn,
)
from troop.bench.api.run_answers import LONGEST_PAGE, json_response, name_of_run, page_of, started
from troop.bench.api.run_models import contents
from troop.bench.api.work_models import RefusedTaskOut, ResultOut, ResultsOut, SubmittedOut, TasksIn
from troop.bench.definition.plan import sole
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.read_fleet import read_fleet
from troop.bench.flows.fleet_service import FleetService
from troop.bench.flows.fleet_view import standing_of
from troop.bench.records.record import Run
from troop.bench.wiring import services
from troop.shared.api import cursors
from troop.shared.api.errors import (
    MALFORMED,
    WITHOUT_BENCHMARKS,
    CodedError,
    answers,
    check_benchmarks,
    message_response,
)
from troop.shared.api.models import listed
from troop.shared.api.requests import caller_of
from troop.shared.errors import ErrorCode, MissingRunError
from troop.shared.malformed import Read

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LISTING = ["fleets"]

_FLEET = {"application/json": {"model": FleetOut}}
_STARTED = started("fleet", "fleet", FleetOut, "another fleet, a benchmark")
_ESTIMATED = estimated("fleet")
_CHANGED = answers("", 400, 404) | {
    200: {"description": "Recorded, and about to be carried out", "content": _FLEET},
    409: {
        **answers("", 409)[409],
        "description": "The fleet has ended or is being removed, or other callers keep changing its size",
    },
} | WITHOUT_BENCHMARKS  # fmt: skip
_SUBMITTED = answers("What became of them", 400, 404) | {
    409: {
        **answers("", 409)[409],
        "description": "The fleet has no queue, troop:queues is false, or it has ended or expired or is being removed",
    },
} | WITHOUT_BENCHMARKS  # fmt: skip
_REMOVED = answers("", 400, 404) | {
    200: {"description": "The fleet had already ended: there was nothing to remove", "content": _FLEET},
    202: {"description": "The fleet is being removed", "content": _FLEET},
} | WITHOUT_BENCHMARKS  # fmt: skip

FleetId = Annotated[str, Path(max_length=64, description="The id from GET /fleets")]


@router.post("/fleets", operation_id="start_fleet", summary="Start a standing fleet", responses=_STARTED)
def start_fleet(body: Annotated[StartFleetIn, Body()]) -> Response[Any]:
    """Starts a standing fleet. Its nodes stay until it expires or is removed; failed nodes are replaced. As with POST
    /benchmarks, Troop checks everything before it launches anything: the file, the deployment's limits, instance
    types, artifacts (POST /benchmarks/artifacts), prices, the budget, and the account's quotas. The header Location
    points to the fleet. Repeating the key returns the same fleet, so a retry is safe after any failure. Costs as much
    as POST /benchmarks.
    """
    service = _fleets()
    files = contents(body.files)
    fleet = read_fleet(body.definition, files, body.set)
    admitted = service.every.admit(fleet, sole(fleet), files, body.key, caller_of(router.current_event.raw_event))
    status = 200 if admitted.repeated else 202
    return _run_response(status, admitted.run, {"Location": f"fleets/{admitted.run.run}"})


@router.post(
    "/fleets/estimate",
    operation_id="estimate_fleet",
    summary="Estimate a standing fleet's cost until it expires",
    responses=_ESTIMATED,
)
def estimate_fleet(body: Annotated[EstimateFleetIn, Body()]) -> Response[Any]:
    """Checks and estimates a fleet as POST /fleets does, but launches, stores and starts nothing, and does not need
    the artifacts. Costs as much as POST /benchmarks/estimate.
    """
    service = _fleets()
    files = contents(body.files)
    fleet = read_fleet(body.definition, files, body.set)
    judged = service.every.estimate(fleet, sole(fleet))
    return json_response(200, EstimateOut.from_judged(judged))


@router.get(
    "/fleets",
    operation_id="list_fleets",
    summary="Standing fleets, newest first",
    responses=answers("A page", 400) | WITHOUT_BENCHMARKS,
)
def list_fleets(
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
) -> FleetsOut:
    """Lists the fleets, including those that have ended. Their nodes are counted at least every two minutes. A page
    costs one query.
    """
    page = page_of(_fleets().every, limit, cursor, LISTING)
    fleets, malformed = listed(
        Read(page.runs, page.malformed), lambda run: FleetOut.from_run(run, standing_of(run)), name_of_run
    )
    return FleetsOut(fleets=fleets, malformed=malformed, cursor=page.cursor)


@router.get(
    "/fleets/<fleet>",
    operation_id="get_fleet",
    summary="One standing fleet: its current nodes, and the resources it has created",
    responses=answers("The fleet", 400, 404) | WITHOUT_BENCHMARKS | MALFORMED,
)
def get_fleet(fleet: FleetId) -> FleetDetailOut:
    """Returns one fleet. Costs 2 items and 2 queries. A fleet that stands costs in addition a call to Auto Scaling,
    one more for each role with missing nodes, and calls to S3: a list, and each node's registration (of the 500
    newest).
    """
    service = _fleets()
    try:
        its = service.view(fleet)
    except MissingRunError:
        raise _no_fleet(fleet) from None
    return FleetDetailOut.from_view(its, standing_of(its.run))


@router.patch(
    "/fleets/<fleet>", operation_id="change_fleet", summary="Grow, shrink or extend a fleet", responses=_CHANGED
)
def change_fleet(fleet: FleetId, body: Annotated[ChangeFleetIn, Body()]) -> Response[Any]:
    """Changes a role's number of nodes, or the fleet's end, within seconds, or within two minutes if the first attempt
    is lost. When a fleet shrinks, Auto Scaling chooses the nodes to remove, and keeps the zones even. In a fleet with a
    queue, nodes first finish their tasks.

    A role keeps its size if the fleet's file says so, by default in a fleet with ranks, and if it follows its backlog.
    All roles together may have troop:max_nodes nodes, all open runs and fleets together troop:max_nodes_total. The
    fleet's expected cost must stay within its budget and troop:max_run_cost. A fleet's end only moves later, as long as
    these can pay for it. A repeated request changes nothing. Costs 3 items, a transaction and a call of a function;
    growing and extending cost 1 item and 2 queries more.
    """
    service = _fleets()
    try:
        if body.expires_at is not None:
            run = service.extend(fleet, body.expires_at)
        else:
            run = service.scale(fleet, body.role, body.count or 0, caller_of(router.current_event.raw_event))
    except MissingRunError:
        raise _no_fleet(fleet) from None
    except BadBenchmarkError as bad:
        problems = [{"where": f"body.{p.where}", "problem": f"{p.message}: must be {p.allowed}"} for p in bad.problems]
        return message_response(400, str(bad), problems=problems)
    return _run_response(200, run)


@router.post(
    "/fleets/<fleet>/tasks", operation_id="submit_tasks", summary="Submit tasks to a fleet", responses=_SUBMITTED
)
def submit_tasks(fleet: FleetId, body: Annotated[TasksIn, Body()]) -> SubmittedOut:
    """Sends tasks to the queue of a fleet, and wakes the fleet if its size follows its backlog. A task can reach two
    workers, and a repeated request sends its tasks again; of the results of one id, the first stands. Costs 2 items, a
    transaction, and a call to SQS for every 10 tasks or 256 KiB.
    """
    service = _fleets()
    try:
        submitted = service.submit(fleet, body.named())
    except MissingRunError:
        raise _no_fleet(fleet) from None
    return SubmittedOut(
        sent=submitted.sent,
        refused=[RefusedTaskOut.model_validate(one) for one in submitted.refused],
        submitted=submitted.total,
    )


@router.get(
    "/fleets/<fleet>/results",
    operation_id="list_results",
    summary="The results of a fleet's tasks",
    responses=answers("A page", 400, 404) | WITHOUT_BENCHMARKS,
)
def list_results(fleet: FleetId, cursor: Annotated[str | None, Query(max_length=1024)] = None) -> ResultsOut:
    """Lists what workers have delivered, by the ids of the tasks, also after the fleet's end: results stay as long as
    those of runs. A page costs 1 item and a call to S3.
    """
    service, listing = _fleets(), ["results", fleet]
    with cursors.refused(cursors.BadCursor):
        after = cursors.decode(cursor, listing)
    try:
        page = service.results(fleet, after)
    except MissingRunError:
        raise _no_fleet(fleet) from None
    return ResultsOut(
        results=[ResultOut.model_validate(one) for one in page.results], cursor=cursors.encode(page.last, listing)
    )


@router.delete("/fleets/<fleet>", operation_id="remove_fleet", summary="Remove a fleet", responses=_REMOVED)
def remove_fleet(fleet: FleetId) -> Response[Any]:
    """Removes a fleet: stops launching for it, and removes everything it has created. A repeated request is harmless.
    Costs 3 items and at most 2 calls to Step Functions.
    """
    service = _fleets()
    try:
        stopped = service.every.stop(fleet, caller_of(router.current_event.raw_event))
    except MissingRunError:
        raise _no_fleet(fleet) from None
    return _run_response(202 if stopped.ended_at is None else 200, stopped)


def _fleets() -> FleetService:
    check_benchmarks()
    return services.fleet_service()


def _no_fleet(fleet: str) -> CodedError:
    return CodedError(404, ErrorCode.NO_SUCH_FLEET, f"there is no fleet {fleet!r}: GET /fleets lists the fleets")


def _run_response(status: int, run: Run, headers: dict[str, Any] | None = None) -> Response[Any]:
    return json_response(status, FleetOut.from_run(run, standing_of(run)), headers)
