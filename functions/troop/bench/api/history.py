"""Serves the route of a benchmark's history: ``GET /benchmarks/history``."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field, JsonValue

from troop.bench.aws.run_rows import BadCursor
from troop.bench.records.line import Line
from troop.bench.wiring import services
from troop.shared import codec
from troop.shared.api import cursors
from troop.shared.api.errors import WITHOUT_BENCHMARKS, answers, check_benchmarks
from troop.shared.api.models import Listing, Moment, listed
from troop.shared.malformed import Read

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 1000

_LISTS = (
    "six numbers for each cell that SUCCEEDED: operations per second; mean, p50 and p99 of their times in "
    "milliseconds; cost of a million operations; share of errors. null for an unknown number"
)


class MeasurementOut(BaseModel):
    """One measurement of a run."""

    variant: str = Field(description="The cells' label without their repetition; empty for none")
    phase: str
    point: str = Field(description="The point's label; empty for none")
    role: str
    operation: str
    values: list[list[float | None]] = Field(description=f"In the order of pairs, {_LISTS}")
    baseline: list[list[float | None]] = Field(
        default=[], description="The same of the baseline, in pairs with values; empty without a baseline"
    )


class LineOut(BaseModel):
    """One ended run in short."""

    run: str
    name: str = Field(description="The benchmark's name")
    at: Moment = Field(description="When the run was admitted")
    size: str | None = Field(description="The chosen size of its file; null for none")
    status: str = Field(description="As in GET /benchmarks/{run}")
    troop: str = Field(description="The version of Troop that made the line")
    version: str = Field(default="", description="What was measured, as the file names it; empty for no name")
    schedule: str = Field(default="", description="The schedule that started it; empty for none")
    versions: dict[str, str] = Field(
        description="What can differ between runs: type ROLE (instance types), image, kernel, agent, artifact NAME, "
        "parameters.NAME, and file (a digest of the rest of the file)"
    )
    baseline: dict[str, JsonValue] = Field(default={}, description="What distinguishes the baseline; empty for none")
    cost: float | None = Field(description="Of the run; null if unknown")
    figures: list[MeasurementOut]
    left_out: int = Field(default=0, description="The number of further measurements, which did not fit")

    @classmethod
    def from_line(cls, line: Line) -> LineOut:
        return cls.model_validate(codec.to_document(line))


class HistoryOut(Listing):
    """A page of a benchmark's ended runs, newest first."""

    lines: list[LineOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


@router.get(
    "/benchmarks/history",
    operation_id="get_history",
    summary="A benchmark's ended runs in short, newest first",
    responses=answers("A page", 400) | WITHOUT_BENCHMARKS,
)
def get_history(
    name: Annotated[str, Query(min_length=1, max_length=64, description="The benchmark's name, as in its file")],
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 100,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
) -> HistoryOut:
    """Lists a line of figures and versions of each ended run of a benchmark, of all sizes. A run has it when its report
    is made. Runs that ended with an earlier version of Troop have none: POST /benchmarks/{run}/report makes it.

    A page costs one query, and has at most a megabyte, often a year of nights.
    """
    check_benchmarks()
    listing: Any = ["history", name]
    with cursors.refused(BadCursor):
        page = services.run_service().runs.lines.page(name, limit, cursors.decode(cursor, listing))
    lines, malformed = listed(
        Read(page.lines, page.malformed), LineOut.from_line, lambda line: f"Runs: {line.run}, line"
    )
    return HistoryOut(lines=lines, malformed=malformed, cursor=cursors.encode(page.cursor, listing))
