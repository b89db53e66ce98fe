"""What the API takes and says of benchmarks: the request for a run, and the run's record."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt, model_validator

from troop.api import response_size
from troop.api.models import Moment, Out
from troop.api.money_models import CostOut, EstimateIn, ExpectedOut
from troop.api.terminations import LONGEST_KEY
from troop.api.unit_models import refuse_unknown
from troop.bench.admission import LARGEST_ARTIFACT, LARGEST_FILES
from troop.bench.plan import variant_document
from troop.bench.problems import Problem
from troop.bench.record import Cell, CellStatus, Kind, RunStatus
from troop.bench_file.models import FILE
from troop.flows.bench.benchmarks import RunView


class RunIn(EstimateIn):
    """A benchmark to run."""

    key: str = Field(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="Idempotency key, of the caller's own choosing: the same one again starts nothing more, for a week",
    )


def contents(files: dict[str, str]) -> tuple[dict[str, bytes], list[Problem]]:
    """The files of a request, decoded; and what is wrong with them."""
    decoded: dict[str, bytes] = {}
    problems = []
    for name, text in files.items():
        try:
            FILE.parse(name)
        except ValueError:
            problems.append(Problem(("files", name), "is no name that can be used", FILE.allowed))
        try:
            decoded[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            problems.append(Problem(("files", name), "cannot be decoded", "its content in Base64"))
    if (total := sum(map(len, decoded.values()))) > LARGEST_FILES:
        allowed = f"at most {LARGEST_FILES} in all: make artifacts of the large ones"
        problems.append(Problem(("files",), f"have {total} bytes", allowed))
    return decoded, problems


class ArtifactIn(BaseModel):
    """A file to be staged, before runs name it among their artifacts."""

    model_config = ConfigDict(extra="forbid")

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of its content, in lower-case hexadecimal digits")
    size: StrictInt | None = Field(
        None,
        ge=0,
        le=LARGEST_ARTIFACT,
        description="Its bytes, at most 5 GiB; without them it is only told if it is there",
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, raw: Any) -> Any:
        return refuse_unknown(raw, cls)


class UploadOut(BaseModel):
    """Where an artifact is to be put."""

    sha256: str
    staged: bool = Field(description="Whether it is there, and stays for eight days at least")
    upload_url: str | None = Field(description="Takes a PUT of the file, for an hour; null when it is there already")
    headers: dict[str, str] = Field(description="To be sent with it: another size or content is refused")


class LeftBehindOut(Out):
    """A resource that carries the run's tags, and that Troop does not remove."""

    kind: Kind
    name: str = Field(description="Its name; of an instance or a volume its id")
    reason: str = Field(description="Why it stays")


class RecordOut(Out):
    """What is on record of whatever was launched."""

    name: str = Field(description="Of its file")
    status: RunStatus
    reason: str | None = Field(description="Why it is not SUCCEEDED; of a standing fleet, why it has ended or is to")
    at: Moment = Field(description="When it was admitted")
    expires_at: Moment = Field(description="Whatever exists of it then is removed")
    requested_by: str = Field(description="The ARN that IAM knows the caller by")
    execution: str | None = Field(description="ARN of its workflow's execution")
    closed_at: Moment | None = Field(description="Since then nothing may be launched for it")
    ended_at: Moment | None = Field(description="Since then nothing of it exists but its results, and left_behind")
    left_behind: list[LeftBehindOut] = Field(
        description="What carries its tags and stays, at most 100: it is protected, or nothing but the tags says that "
        "it is the run's. Of a run that goes on, only the latter"
    )
    estimate: ExpectedOut | None = Field(
        description="What it was expected to cost, of a standing fleet until it expires with the nodes it began with; "
        "what has no price is not in it. Null for one of an older version"
    )
    cost: CostOut | None = Field(description="What it has cost, all cells and attempts; null before it has ended")
    cost_of_file: CostOut | None = Field(
        description="The same by the prices of its file; null for a file without any, and before it has ended"
    )


class RunOut(RecordOut):
    """A run of a benchmark."""

    run: str = Field(description="Its id, for GET /benchmarks/{run}")
    cells: int = Field(description="How many cells it has, further attempts at one aside")
    nodes: int = Field(description="How many it has at one time at most, all fleets together")


class RunsOut(BaseModel):
    """A page of runs, newest first."""

    runs: list[RunOut]
    cursor: str | None = Field(description="Give it back to get the next page; null when there is none")


class StepOut(BaseModel):
    """What a cell began to do, and when."""

    phase: str = Field(description="launch, boot, the name of a phase, collect, teardown or over")
    at: Moment


class VariantOut(BaseModel):
    """What sets a cell apart from the others of its run."""

    scale: str | None = Field(description="Its scale step; null where the benchmark has none")
    values: dict[str, JsonValue] = Field(description="Its combination of the matrix: values by keys")
    repetition: int = Field(description="From 1, of those of one scale step and combination")


class CellOut(BaseModel):
    """One cell of a run."""

    cell: str = Field(description="c001 and so on; further attempts at it are c001-2 and so on")
    label: str = Field(description="The variant in few words, such as n6, threads=200, #2; empty for a run's only cell")
    variant: VariantOut
    attempt: int = Field(description="From 1; a cell of which there is a later attempt does not count")
    status: CellStatus = Field(
        description="INVALID: it went on to its end, but a node was lost while it measured, so its results say nothing"
    )
    phase: str = Field(description="What it is at, as in steps")
    steps: list[StepOut] = Field(description="What it has begun so far, in order")
    reason: str | None = Field(description="Why it is not SUCCEEDED")
    results: list[dict[str, JsonValue]] | None = Field(
        description="A row for each measured phase, role and operation; null before they are merged"
    )
    results_left_out: bool = Field(
        description="There are results, for which the answer has no room: ask with the parameter cell"
    )
    cost: CostOut | None = Field(description="What it has cost; null while anything of it is left")

    @classmethod
    def of(cls, cell: Cell) -> CellOut:
        return cls(
            cell=cell.cell,
            label=cell.variant.label,
            variant=VariantOut(**variant_document(cell.variant)),
            attempt=cell.attempt,
            status=cell.status,
            phase=cell.phase,
            steps=[StepOut(phase=p, at=at) for p, at in sorted(cell.phases.items(), key=lambda step: step[1])],
            reason=cell.reason,
            results=cell.results,
            results_left_out=False,
            cost=None if cell.cost is None else CostOut.model_validate(cell.cost),
        )


class ResourceOut(Out):
    """Something that a run creates."""

    cell: str
    kind: Kind
    name: str = Field(description="Its name; of instances and volumes the id")
    planned_at: Moment = Field(description="Written down before it was created")
    created_at: Moment | None
    gone_at: Moment | None = Field(description="Seen to be gone; null while it is not")
    role: str | None = Field(description="Of a node or its volume")
    instance_type: str | None = Field(description="Of a node")
    zone: str | None = Field(description="Of a node")
    purchase: str | None = Field(description="Of a node: on-demand or spot")


class RunDetailOut(BaseModel):
    """All that is on record of a run."""

    run: RunOut
    cells: list[CellOut]
    resources: list[ResourceOut] = Field(
        description=f"What it was to create, in that order; the first {response_size.MOST_RESOURCES:,}, those that are "
        "not gone before the others"
    )
    resources_created: int | None = Field(description="How many were created; null when they were not asked for")
    resources_left: int | None = Field(description="How many of these are not known to be gone; null as above")
    cost_so_far: CostOut | None = Field(
        description="What a run that has not ended has cost until now; null where it is not known, and in an "
        "answer about one cell or without resources"
    )

    @classmethod
    def of(cls, view: RunView) -> RunDetailOut:
        """All that fits into an answer: of many cells, not all results, and of many resources not all."""
        of_cells = [CellOut.of(cell) for cell in view.cells]
        created = None if view.resources is None else [r for r in view.resources if r.created_at]
        answer = cls(
            run=RunOut.model_validate(view.run),
            cells=[cell.model_copy(update={"results": None}) for cell in of_cells],
            resources=[ResourceOut.model_validate(resource) for resource in response_size.listed(view.resources or [])],
            resources_created=None if created is None else len(created),
            resources_left=None if created is None else sum(r.gone_at is None for r in created),
            cost_so_far=None if view.cost_so_far is None else CostOut.model_validate(view.cost_so_far),
        )
        fits = response_size.within(
            [cell.results for cell in of_cells], response_size.LARGEST - response_size.size(answer)
        )
        cells = [
            cell if fit else cell.model_copy(update={"results": None, "results_left_out": True})
            for cell, fit in zip(of_cells, fits, strict=True)
        ]
        return answer.model_copy(update={"cells": cells})
