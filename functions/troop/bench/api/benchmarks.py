"""Serves the routes of benchmarks: ``POST`` and ``GET /benchmarks``, ``GET`` and ``DELETE /benchmarks/{run}``,
estimates, and the upload of artifacts.
"""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from troop.bench.admission.units import units_of
from troop.bench.api.cost_models import EstimateIn, EstimateOut, estimated
from troop.bench.api.permission import check_permit
from troop.bench.api.run_answers import LONGEST_PAGE, json_response, name_of_run, page_of, started
from troop.bench.api.run_models import ArtifactIn, RunDetailOut, RunIn, RunOut, RunsOut, UploadOut, contents
from troop.bench.file.read import read_all
from troop.bench.flows.run_service import RunService
from troop.bench.wiring import services
from troop.shared.api.errors import MALFORMED, WITHOUT_BENCHMARKS, CodedError, answers, check_benchmarks
from troop.shared.api.models import listed
from troop.shared.api.requests import caller_of
from troop.shared.errors import ErrorCode, MissingRunError
from troop.shared.malformed import Read

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LISTING = ["benchmarks"]

_RUN = {"application/json": {"model": RunOut}}
_STARTED = started("run", "benchmark", RunOut, "another benchmark")
_ESTIMATED = estimated("benchmark")
_STOPPED = answers("", 400, 404) | MALFORMED | {
    200: {"description": "The run had already ended: there was nothing to stop", "content": _RUN},
    202: {"description": "The run is being stopped and removed", "content": _RUN},
} | WITHOUT_BENCHMARKS  # fmt: skip

RunId = Annotated[str, Path(max_length=64, description="The id from GET /benchmarks")]


@router.post("/benchmarks", operation_id="run_benchmark", summary="Run a benchmark", responses=_STARTED)
def run_benchmark(body: Annotated[RunIn, Body()]) -> Response[Any]:
    """Runs a benchmark. Troop checks everything before it launches anything:

    - the file, and the deployment's limits (troop:max_nodes, troop:max_nodes_total, troop:max_run_cost,
      troop:instance_types, troop:allowed_buckets, troop:allowed_images,
      troop:allowed_snapshots, troop:allowed_targets)
    - whether the region and the network's zones offer the instance types, and the account's quotas
    - whether nodes can boot from the images that the file names
    - whether volumes can have the data of the snapshots that the file names
    - whether nodes can reach the targets that the file names, and S3 through an endpoint of their network
    - whether all artifacts exist
    - whether the expected cost is known and within the budget

    Each problem is listed in the answer's problems, with what is allowed. The header Location points to the run.
    Repeating the key returns the same run, so a retry is safe after any failure.

    Costs 1 item, 3 calls to EC2, 1 call to S3 for each artifact, 2 calls for each image, 1 call
    for each snapshot, 1 or 2 calls for each load balancer and security group
    among the targets, and the cost of an estimate.
    An admitted run costs in addition 1 object for each file, 2 items, a transaction and the start of the workflow.
    """
    service = _benchmarks()
    files = contents(body.files)
    request = read_all(body.definition, files, body.size, body.set)
    caller = caller_of(router.current_event.raw_event)
    units = units_of(request.plan)
    admitted = service.admit(
        *(request.benchmark, request.plan, files, body.key, caller),
        lambda _: check_permit(caller, "benchmark", body.key, units),
    )
    run = RunOut.model_validate(admitted.run)
    return json_response(200 if admitted.repeated else 202, run, {"Location": f"benchmarks/{run.run}"})


@router.post(
    "/benchmarks/estimate",
    operation_id="estimate_benchmark",
    summary="Estimate a run's cost",
    responses=_ESTIMATED,
)
def estimate_benchmark(body: Annotated[EstimateIn, Body()]) -> Response[Any]:
    """Checks and estimates a run as POST /benchmarks does, but launches, stores and starts nothing, and does not need
    the artifacts.

    Costs 3 calls to EC2, 1 call to Service Quotas for each family of instance types and 1 more if it needs spot, and a
    read of the stored prices. A missing price costs 1 call to the Price List for each type, once a day; a missing spot
    price 1 call, once an hour.
    """
    service = _benchmarks()
    files = contents(body.files)
    request = read_all(body.definition, files, body.size, body.set)
    judged = service.estimate(request.benchmark, request.plan)
    return json_response(200, EstimateOut.from_judged(judged))


@router.post(
    "/benchmarks/artifacts",
    operation_id="stage_artifact",
    summary="Get the upload address of an artifact",
    responses=answers("The upload address, or that the artifact is already stored", 400) | WITHOUT_BENCHMARKS,
)
def stage_artifact(body: Annotated[ArtifactIn, Body()]) -> UploadOut:
    """Returns an address for the upload of one file. The caller needs no rights to S3: the address accepts exactly
    that file. Artifacts are stored for 30 days. Costs 1 call to S3.
    """
    staged, upload = _benchmarks().stage(body.sha256, body.size)
    return UploadOut(
        sha256=body.sha256,
        staged=staged,
        upload_url=upload.url if upload else None,
        headers=dict(upload.headers) if upload else {},
    )


@router.get(
    "/benchmarks",
    operation_id="list_benchmarks",
    summary="Runs, newest first",
    responses=answers("A page", 400) | WITHOUT_BENCHMARKS,
)
def list_benchmarks(
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
) -> RunsOut:
    """Lists the runs. A page costs one query."""
    page = page_of(_benchmarks(), limit, cursor, LISTING)
    runs, malformed = listed(Read(page.runs, page.malformed), RunOut.model_validate, name_of_run)
    return RunsOut(runs=runs, malformed=malformed, cursor=page.cursor)


@router.get(
    "/benchmarks/<run>",
    operation_id="get_benchmark",
    summary="One run: its cells, their results, and its resources",
    responses=answers("The run", 400, 404) | WITHOUT_BENCHMARKS | MALFORMED,
)
def get_benchmark(
    run: RunId,
    cell: Annotated[
        str | None, Query(max_length=8, description="Only this cell, by its name in the answer without this parameter")
    ] = None,
    resources: Annotated[
        bool, Query(description="Whether to list the resources; without them the answer costs less")
    ] = True,
) -> RunDetailOut:
    """Returns one run. With very many cells not all results fit into the answer; those of one cell always do. Costs 2
    items and 2 queries; without resources 1 item and 1 query.
    """
    service = _benchmarks()
    try:
        return RunDetailOut.from_view(service.view(run, cell, resources=resources))
    except MissingRunError as missing:
        if cell is not None and missing.cell is not None:
            raise NotFoundError(f"the run {run!r} has no cell {cell!r}") from None
        raise no_run(run) from None


@router.delete("/benchmarks/<run>", operation_id="stop_benchmark", summary="Stop a run", responses=_STOPPED)
def stop_benchmark(run: RunId) -> Response[Any]:
    """Stops a run: stops launching for it, and removes everything it has created except its results. A repeated
    request is harmless. Costs 3 items and at most 2 calls to Step Functions.
    """
    service = _benchmarks()
    try:
        stopped = service.stop(run, caller_of(router.current_event.raw_event))
    except MissingRunError:
        raise no_run(run) from None
    return json_response(202 if stopped.ended_at is None else 200, RunOut.model_validate(stopped))


def _benchmarks() -> RunService:
    check_benchmarks()
    return services.run_service()


def no_run(run: str) -> CodedError:
    return CodedError(404, ErrorCode.NO_SUCH_RUN, f"there is no run {run!r}: GET /benchmarks lists the runs")
