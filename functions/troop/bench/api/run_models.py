"""Defines the requests and answers of benchmarks: the request for a run, and the run's record."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field, JsonValue, StrictInt

from troop.bench.admission.admission import LARGEST_ARTIFACT, LARGEST_FILES
from troop.bench.api import response_size
from troop.bench.api.cost_models import CostOut, EstimateIn, ExpectedOut, RunKey
from troop.bench.definition.keys import FILE
from troop.bench.definition.phase_limits import Outcome as Verdict
from troop.bench.definition.phase_limits import verdict
from troop.bench.definition.planned_fault import MOST_FAULTS
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.definition.search import Outcome
from troop.bench.fleets.replacing import MOST_RECORDED
from troop.bench.flows.run_service import RunView
from troop.bench.records.record import Cell, CellStatus, Kind, Resource, RunStatus
from troop.shared import codec
from troop.shared.api.models import In, Listing, MalformedOut, Moment, Out, answered, listed
from troop.shared.malformed import Malformed, Read


class RunIn(EstimateIn):
    """A benchmark to run."""

    key: RunKey


def contents(files: dict[str, str]) -> dict[str, bytes]:
    """Returns the decoded files of a request.

    Raises:
        BadBenchmarkError: with all their problems.
    """
    decoded: dict[str, bytes] = {}
    problems = []
    for name, text in files.items():
        if not FILE.accepts(name):
            problems.append(Problem(("files", name), "is not a valid name", FILE.allowed))
        try:
            decoded[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            problems.append(Problem(("files", name), "cannot be decoded", "its content in Base64"))
    if (total := sum(map(len, decoded.values()))) > LARGEST_FILES:
        allowed = f"at most {LARGEST_FILES} in all: make artifacts of the large ones"
        problems.append(Problem(("files",), f"have {total} bytes", allowed))
    if problems:
        raise BadBenchmarkError(problems)
    return decoded


class ArtifactIn(In):
    """A file to upload before runs name it among their artifacts."""

    sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of its content, in lower-case hexadecimal digits"
    )
    size: StrictInt | None = Field(
        None,
        ge=0,
        le=LARGEST_ARTIFACT,
        description="Its size in bytes, at most 5 GiB; if omitted, the answer only states whether it is stored",
    )


class UploadOut(BaseModel):
    """The upload address of an artifact."""

    sha256: str
    staged: bool = Field(description="Whether it is stored, and remains so for at least eight days")
    upload_url: str | None = Field(description="Accepts a PUT of the file for an hour; null if it is already stored")
    headers: dict[str, str] = Field(description="Headers to send with the PUT: S3 rejects another size or content")


class LeftBehindOut(Out):
    """A resource that carries the run's tags but that Troop does not remove."""

    kind: Kind
    name: str = Field(description="Its name; for an instance or a volume, its id")
    reason: str = Field(description="Why Troop does not remove it")


class RecordOut(Out):
    """The record of a run or a standing fleet."""

    name: str = Field(description="The name in its file")
    status: RunStatus
    reason: str | None = Field(
        description="Why it is not SUCCEEDED; for a standing fleet, why it has ended or is about to"
    )
    at: Moment = Field(description="When it was admitted")
    expires_at: Moment = Field(description="When everything that still exists of it is removed")
    requested_by: str = Field(description="The caller's ARN in IAM")
    execution: str | None = Field(description="The ARN of its workflow's execution")
    closed_at: Moment | None = Field(description="When launching for it stopped")
    ended_at: Moment | None = Field(description="When everything except its results and left_behind was removed")
    left_behind: list[LeftBehindOut] = Field(
        description="Resources with its tags that Troop does not remove, at most 100: they are protected, or "
        "only the tags connect them with the run. While the run goes on, only the latter"
    )
    estimate: ExpectedOut | None = Field(
        description="The expected cost without items of unknown price; for a standing fleet, until it "
        "expires with its initial nodes. null for an older version"
    )
    cost: CostOut | None = Field(description="The actual cost of all cells and attempts; null until it has ended")
    cost_of_file: CostOut | None = Field(
        description="The same by the prices in its file; null without such prices, and until it has ended"
    )


class RunOut(RecordOut):
    """A run of a benchmark."""

    run: str = Field(description="Its id, for GET /benchmarks/{run}")
    size: str | None = Field(description="The chosen size of its file; null for none, and for an older version")
    cells: int = Field(description="The number of cells; further attempts do not count")
    nodes: int = Field(description="The most nodes at one time, in all fleets together")


class RunsOut(Listing):
    """A page of runs, newest first."""

    runs: list[RunOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


class ReplacedNodeOut(BaseModel):
    """A node that did not come up while its cell booted, so that another took its place."""

    id: str
    role: str
    reason: str
    at: Moment = Field(description="When Troop requested the replacement")


class StepOut(BaseModel):
    """A step of a cell, and when it began."""

    phase: str = Field(
        description="launch, boot, the name of a phase, collect, teardown or over; of a phase with points, such as "
        "measure.3, and measure.3.between for the script before that point"
    )
    at: Moment


class PlannedStepOut(Out):
    """A planned step of a cell."""

    step: str = Field(description="boot, the name of a phase, or teardown")
    seconds: int = Field(description="The expected seconds, of all its points together")
    points: int = Field(description="The number of its points, with repeats; 0 for a step that runs once")


class VariantOut(BaseModel):
    """What distinguishes a cell from the others of its run."""

    scale: str | None = Field(description="Its scale step; null if the benchmark has none")
    values: dict[str, JsonValue] = Field(description="Its combination of the matrix: values by keys")
    repetition: int = Field(description="Its repetition within one scale step and combination, from 1")


class PointOut(Out):
    """A point of a phase that runs several times on the same nodes."""

    number: int = Field(description="From 1, in the order of execution")
    of: int = Field(description="The number of points of the phase, with repeats")
    repeat: int = Field(description="From 1; different for points with the same parameters")
    parameters: dict[str, JsonValue] = Field(description="What the phase's points set, with the values of this one")


class LimitsOut(BaseModel):
    """Whether the results of a phase or a point hold the limits of the benchmark's file."""

    phase: str
    point: int | None = Field(description="The number of the point; null in a phase that runs once")
    repeat: int = Field(description="From 1; different for points with the same parameters")
    setting: str = Field(description="The point in short, such as threads=50, #2; empty in a phase that runs once")
    held: bool = Field(description="Whether all limits are held")
    reason: str | None = Field(description="What is beyond a limit; null if all are held")
    is_baseline: bool = Field(default=False, description="Whether it is the baseline's, which decides no verdict")


class FaultOut(BaseModel):
    """What a planned fault of a phase or a point did to the load."""

    phase: str
    point: int | None = Field(description="The number of the point; null in a phase that runs once")
    repeat: int = Field(description="From 1; different for points with the same parameters")
    setting: str = Field(description="The point in short, such as threads=50, #2; empty in a phase that runs once")
    number: int = Field(description="Its place among the faults of the phase, from 1")
    what: str = Field(description="The fault in short, such as stop 1 of servers")
    verdict: Literal["HELD", "BROKEN", "UNKNOWN"] | None = Field(
        description="Whether the load bore what the file expects. UNKNOWN: the fault did not happen, or the load was "
        "unsteady before it. null if the file expects nothing, and the figures are known"
    )
    sentence: str = Field(description="What happened, in a sentence")


class SearchOut(BaseModel):
    """Where the search of a phase stands."""

    phase: str
    parameter: str
    outcome: Outcome | None = Field(
        description="BRACKETED: a value holds the limits, and the next larger one does not. WIDENED: a value both held "
        "and failed, so the answer is from largest to smallest. ALL_HELD, NONE_HELD: all values hold them, or none. "
        "UNSTABLE: no value held them each time. null until it is over"
    )
    largest: float | None = Field(description="The largest value so far that held the limits each time")
    smallest: float | None = Field(description="The smallest value so far that failed each time")
    points: int = Field(description="The number of points so far")
    most: int = Field(description="The number of points in the worst case")
    text: str = Field(description="The same as a sentence")


class CellOut(BaseModel):
    """One cell of a run."""

    cell: str = Field(description="c001 and so on; further attempts are c001-2 and so on")
    label: str = Field(description="The variant in short, such as n6, threads=200, #2; empty for a run's only cell")
    variant: VariantOut
    attempt: int = Field(description="The attempt, from 1; a cell with a later attempt does not count")
    order: int | None = Field(
        description="Its place in the order in which cells start, from 1; null for a run of an earlier version"
    )
    status: CellStatus = Field(
        description="INVALID: it lost a node, or not all nodes came up; its results are not valid"
    )
    phase: str = Field(description="The current phase, as in steps")
    point: PointOut | None = Field(description="The current point; null in a step without points")
    steps: list[StepOut] = Field(description="Its steps so far, in order")
    reason: str | None = Field(description="Why it is not SUCCEEDED")
    results: list[dict[str, JsonValue]] | None = Field(
        description="A row for each measured phase, point, role and operation; null before the merge"
    )
    results_left_out: bool = Field(description="The results do not fit into the answer: use the parameter cell")
    verdict: Verdict | None = Field(
        description="Whether its results hold all limits of the file; null before the first merge, without limits, and "
        "for a baseline. It counts only if the cell SUCCEEDED. A search passes if it has an answer"
    )
    limits: list[LimitsOut] = Field(description="The same for each merged phase and point; empty without limits")
    faults: list[FaultOut] = Field(
        description=f"Its planned faults; empty before the merge, and without any. Of more than {MOST_FAULTS}, those "
        "that are BROKEN or UNKNOWN stay"
    )
    searches: list[SearchOut] = Field(description="Where the searches of its phases stand; empty without a search")
    cost: CostOut | None = Field(description="Its cost; null while resources of it remain")
    replaced_nodes: list[ReplacedNodeOut] = Field(
        description=f"Nodes that were replaced while it booted; the first {MOST_RECORDED}, in order"
    )

    @classmethod
    def from_cell(cls, cell: Cell) -> CellOut:
        return cls(
            cell=cell.cell,
            label=cell.variant.label,
            variant=VariantOut(**codec.to_document(cell.variant)),
            attempt=cell.attempt,
            order=cell.order,
            status=cell.status,
            phase=cell.phase,
            point=None if cell.point is None else PointOut(**codec.to_document(cell.point)),
            steps=[StepOut(phase=p, at=at) for p, at in sorted(cell.phases.items(), key=lambda step: step[1])],
            reason=cell.reason,
            results=cell.results,
            results_left_out=False,
            verdict=verdict(cell.limits, cell.searches),
            limits=[LimitsOut.model_validate(one) for one in cell.limits or ()],
            faults=[FaultOut.model_validate(one) for one in cell.faults or ()],
            searches=[SearchOut.model_validate(one) for one in cell.searches or ()],
            cost=None if cell.cost is None else CostOut.model_validate(cell.cost),
            replaced_nodes=[ReplacedNodeOut.model_validate(one) for one in cell.replaced_nodes or ()],
        )


class ResourceOut(Out):
    """A resource that a run creates."""

    cell: str
    kind: Kind
    name: str = Field(description="Its name; for instances and volumes, the id")
    planned_at: Moment = Field(description="When it was recorded, before its creation")
    created_at: Moment | None
    gone_at: Moment | None = Field(description="When its removal was confirmed; null until then")
    role: str | None = Field(description="The role of a node or its volume")
    instance_type: str | None = Field(description="The instance type of a node")
    zone: str | None = Field(description="The zone of a node")
    purchase: str | None = Field(description="The purchase option of a node: on-demand or spot")


def listed_resources(
    resources: Sequence[Resource], malformed: tuple[Malformed, ...] = ()
) -> tuple[list[ResourceOut], list[MalformedOut]]:
    """Returns the answers for the resources that an answer lists, and what is malformed."""
    return listed(
        Read(tuple(response_size.listed(resources)), malformed),
        ResourceOut.model_validate,
        lambda one: f"Runs: {one.run}, {one.kind} {one.name}",
    )


class RunDetailOut(Listing):
    """The full record of a run."""

    run: RunOut
    timetable: list[PlannedStepOut] = Field(
        description="The planned steps of its longest cell; empty for an older version"
    )
    cells: list[CellOut]
    resources: list[ResourceOut] = Field(
        description="The resources it planned to create, in that order; the first "
        f"{response_size.MOST_RESOURCES:,}, existing ones before removed ones"
    )
    resources_created: int | None = Field(description="How many were created; null if not requested")
    resources_left: int | None = Field(description="How many of these may still exist; null if not requested")
    cost_so_far: CostOut | None = Field(
        description="The cost so far of a run that has not ended; null if unknown, and in an answer about "
        "one cell or without resources"
    )

    @classmethod
    def from_view(cls, view: RunView) -> RunDetailOut:
        """Returns as much of a run as fits into an answer: results and resources may be left out."""
        cells, wrong_cells = listed(
            Read(tuple(view.cells), view.malformed), CellOut.from_cell, lambda cell: f"Runs: {cell.run}, {cell.cell}"
        )
        resources, wrong_resources = listed_resources(view.resources or [])
        created = None if view.resources is None else [r for r in view.resources if r.created_at]
        answer = cls(
            run=answered(view.run, RunOut.model_validate, lambda run: f"Runs: {run.run}"),
            timetable=[PlannedStepOut.model_validate(step) for step in view.run.timetable],
            cells=[cell.model_copy(update={"results": None}) for cell in cells],
            resources=resources,
            malformed=[*wrong_cells, *wrong_resources],
            resources_created=None if created is None else len(created),
            resources_left=None if created is None else sum(r.gone_at is None for r in created),
            cost_so_far=None if view.cost_so_far is None else CostOut.model_validate(view.cost_so_far),
        )
        fits = response_size.within(
            [cell.results for cell in cells], response_size.LARGEST - response_size.size(answer)
        )
        cells = [
            cell if fit else cell.model_copy(update={"results": None, "results_left_out": True})
            for cell, fit in zip(cells, fits, strict=True)
        ]
        return answer.model_copy(update={"cells": cells})
