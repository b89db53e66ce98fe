"""Serves the route of what a benchmark does right now: ``GET /benchmarks/{run}/live``."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field

from troop.bench.api.benchmarks import RunId, no_run
from troop.bench.api.run_models import PointOut
from troop.bench.records.live_view import LiveState, Watched
from troop.bench.records.record import RunStatus
from troop.bench.wiring import services
from troop.shared.api.errors import MALFORMED, WITHOUT_BENCHMARKS, answers, check_benchmarks
from troop.shared.api.models import Moment, Out
from troop.shared.errors import MissingRunError

router = APIGatewayRouter()  # type: ignore[no-untyped-call]


class FiguresOut(Out):
    """What some nodes do."""

    per_second: float = Field(description="Successful operations per second: the sum of the nodes' rates")
    errors_per_second: float
    p50_ms: float | None = Field(description="Of the times of all nodes together, within a sixteenth; null without any")
    p99_ms: float | None


class OperationFiguresOut(FiguresOut):
    """One kind of operation of the nodes of one role."""

    role: str
    operation: str


class HistoryPointOut(FiguresOut):
    """All operations of a cell at an earlier merge."""

    at: Moment
    phase: str


class RoleViewOut(Out):
    """The nodes of one role."""

    role: str
    reporting: int = Field(description="The number of nodes whose running summary is at most a minute old")
    expected: int | None = Field(description="The number of nodes that take part in the phase; null if unknown")
    cpu_percent: float | None = Field(
        description="Use of all processors, without iowait; mean of the nodes; null if unknown"
    )
    cpu_percent_max: float | None = Field(description="The same of the busiest node")
    iowait_percent: float | None = Field(
        description="Processors that wait for disks; mean of the nodes; null if unknown"
    )


class LiveCellOut(Out):
    """One cell that runs."""

    cell: str
    label: str = Field(description="The variant in short; empty for a run's only cell")
    phase: str
    point: PointOut | None
    is_measured: bool | None = Field(description="Whether this phase is measured; null if unknown")
    seconds_left: float | None = Field(
        description="At the moment of the merge, until the end of the measured time; null before a node reports"
    )
    warm_up_seconds_left: float | None = Field(description="Of these, seconds that do not count; 0 after the warm-up")
    total: FiguresOut | None = Field(description="All operations together; null before a node reports one")
    operations: list[OperationFiguresOut]
    roles: list[RoleViewOut]
    history: list[HistoryPointOut] = Field(description="At most 60 merges, oldest first, also of phases before")


class LiveOut(BaseModel):
    """What a run does right now."""

    run: str
    status: RunStatus
    state: LiveState = Field(
        description="measuring: nodes report. waiting: no node reports a measured phase now. ended: the run has ended"
    )
    message: str = Field(description="The state as a sentence")
    now: Moment = Field(description="The moment of this answer")
    at: Moment | None = Field(description="The moment of the merge; null before the first one, and at the end")
    unread: int = Field(description="The number of running summaries that could not be read")
    cells: list[LiveCellOut] = Field(description="The cells that run")

    @classmethod
    def from_watched(cls, watched: Watched) -> LiveOut:
        view = watched.view
        return cls(
            run=watched.run.run,
            status=watched.run.status,
            state=watched.state,
            message=watched.message,
            now=watched.now,
            at=view.at if view else None,
            unread=view.unread if view else 0,
            cells=[LiveCellOut.model_validate(cell) for cell in view.cells] if view else [],
        )


@router.get(
    "/benchmarks/<run>/live",
    operation_id="get_live",
    summary="What a run does right now",
    responses=answers("What nodes last reported", 400, 404) | WITHOUT_BENCHMARKS | MALFORMED,
)
def get_live(run: RunId) -> LiveOut:
    """Returns what the nodes of a run's measured phases did in the last seconds. Nodes upload running summaries every
    15 seconds, and one merge of them every 15 seconds serves all viewers, so more frequent requests show nothing new.
    The figures are previews: results come from all that the nodes measured, at the end of each cell.

    Costs 1 item and 1 call to S3. Each merge costs in addition 1 update, 1 query and 1 object; for each cell 2 calls
    to S3, and 1 for each node.
    """
    check_benchmarks()
    try:
        return LiveOut.from_watched(services.live_runs().watch(run))
    except MissingRunError:
        raise no_run(run) from None
