"""Defines the record of a run: its request, its progress, and the resources it has created and removed.

A run has several items in the table ``Runs``; ``item`` is ``run``, ``cell#c001``, ``resource#<kind>#<name>`` or
``launch#c001#<token>``. An ended run of a benchmark has a ``line``, see :mod:`troop.bench.records.line`. Moments are
timezone-aware, in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from troop.bench.definition.definition import PointPlace
from troop.bench.definition.money import ZERO
from troop.bench.definition.names import run_of_execution
from troop.bench.definition.plan import Variant
from troop.bench.definition.standing import Standing
from troop.bench.money.costs import Cost
from troop.shared import codec, moments
from troop.shared.codec import stored

SCHEMA = 1
"""Version of the stored items' format."""


class RunStatus(StrEnum):
    ADMITTED = "ADMITTED"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class CellStatus(StrEnum):
    """Status of a cell. INVALID: it lost a node, or not all came up; another attempt can succeed."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    INVALID = "INVALID"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


FINAL = frozenset({CellStatus.SUCCEEDED, CellStatus.INVALID, CellStatus.FAILED, CellStatus.STOPPED})


class Kind(StrEnum):
    """Kinds of resources that a cell creates, in order of creation. Teardown uses the reverse order."""

    SECURITY_GROUP = "security-group"
    ENDPOINT = "endpoint"
    QUEUE = "queue"
    PLACEMENT_GROUP = "placement-group"
    LAUNCH_TEMPLATE = "launch-template"
    AUTO_SCALING_GROUP = "auto-scaling-group"
    INSTANCE = "instance"
    VOLUME = "volume"


_OMIT, _REQUIRED = stored(omit=True), stored(required=True)


@dataclass(frozen=True)
class Disk:
    """A volume as EBS bills it: type, GiB, provisioned IOPS and MiB a second, and MiB a second of its initialization;
    None where nothing is provisioned.
    """

    type: str
    size_gib: int
    iops: int | None = field(default=None, metadata=_OMIT)
    throughput_mib: int | None = field(default=None, metadata=_OMIT)
    initialization_mib: int | None = field(default=None, metadata=_OMIT)


@dataclass(frozen=True)
class Resource:
    """Something a cell creates. Attributes from ``role`` on are None if unknown.

    Attributes:
        name: the name that identifies it; for instances and volumes, the id.
        planned_at: when it was recorded, before its creation.
        created_at: when it was first seen, or known to exist.
        gone_at: when it was seen to be gone, after its cell or the run was closed.
        role: role of the fleet of an instance or a volume.
        instance_type: of an instance.
        zone: of an instance.
        purchase: of an instance: ``on-demand`` or ``spot``.
        started_at: when EC2 launched an instance.
        disk: of a volume.
        zones: number of zones of an endpoint.
    """

    run: str
    cell: str
    kind: Kind
    name: str
    planned_at: datetime
    created_at: datetime | None = None
    gone_at: datetime | None = None
    role: str | None = None
    instance_type: str | None = None
    zone: str | None = None
    purchase: str | None = None
    started_at: datetime | None = None
    disk: Disk | None = None
    zones: int | None = field(default=None, metadata=_OMIT)


@dataclass(frozen=True)
class LeftBehind:
    """A resource that carries a run's tags, but that Troop does not remove.

    Attributes:
        name: as in :class:`Resource`.
        reason: why it stays, as a sentence without its subject.
    """

    kind: Kind
    name: str
    reason: str


def _in_order(document: Mapping[str, Any]) -> dict[str, datetime]:
    """Reads when steps began; a table does not store their order."""
    began = {name: moments.parse(at) for name, at in document.items()}
    return dict(sorted(began.items(), key=lambda pair: pair[1]))


@dataclass(frozen=True)
class Cell:
    """One cell of a run.

    Attributes:
        phase: current step: ``launch``, ``boot``, the name of a phase, ``collect``, ``teardown`` or ``over``. Of a
            phase with points, the name of :class:`troop.bench.definition.definition.Step`, such as ``measure.3``.
        point: the point of the current step; None for none.
        phases: when each of these steps began, by name, in order.
        reason: why it is not SUCCEEDED, as a sentence.
        results: the table of the measured phases, see :mod:`troop.measure.merge`; None before it is merged.
        closed_at: since when nothing may be launched for it.
        variant: what distinguishes it from the run's other cells.
        attempt: from 1; only the last attempt at a cell counts.
        cost: None until its teardown is complete.
        order: place in the order in which the run starts its cells, from 1; None for a run of an earlier version.
        limits: whether the merged phases and points hold the file's limits, see
            :func:`troop.bench.measuring.judging.entry`; None before the first one is merged, and without limits.
        faults: the planned faults of its merged phases and points, see
            :func:`troop.bench.measuring.judging.fault_entries`; None before the results are merged, and without any.
        searches: where the searches of its phases stand, see :func:`troop.bench.definition.search.document`; None
            before the first point is merged, and without a search.
        replaced_nodes: the nodes that were replaced while it booted, as
            :class:`troop.bench.fleets.replacing.FailedNode` with ``at``; at most
            :data:`troop.bench.fleets.replacing.MOST_RECORDED`. None without any.
        requests: those that nodes have counted in measured phases, by :data:`troop.bench.definition.money.BILLED`;
            None for none.
        data_gone_at: since when no object exists that its scripts created to measure with; None if that is unknown.
    """

    run: str
    cell: str
    status: CellStatus = field(default=CellStatus.PENDING, metadata=_REQUIRED)
    phase: str = "launch"
    phases: Mapping[str, datetime] = field(default_factory=dict, metadata=stored(decode=_in_order, required=True))
    reason: str | None = None
    results: list[dict[str, Any]] | None = None
    closed_at: datetime | None = None
    variant: Variant = field(default_factory=Variant)
    attempt: int = 1
    cost: Cost | None = None
    point: PointPlace | None = None
    order: int | None = None
    limits: list[dict[str, Any]] | None = None
    searches: list[dict[str, Any]] | None = None
    data_gone_at: datetime | None = None
    replaced_nodes: list[dict[str, str]] | None = None
    requests: Mapping[str, int] | None = None
    faults: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class Launch:
    """A time-limited permission to create a cell's resources. Teardown does not end before it expires or is returned.

    Each try of the step has its own, so that a late try cannot end that of another.

    Attributes:
        until: its holder creates nothing after this moment.
    """

    run: str
    cell: str
    token: str
    until: datetime


@dataclass(frozen=True)
class PlannedStep:
    """A step of a cell as it is planned.

    Attributes:
        step: ``boot``, the name of a phase, or ``teardown``.
        seconds: expected, of all its points together.
        points: of the phase, with repeats; 0 for a step that runs once.
    """

    step: str
    seconds: int
    points: int = 0


@dataclass(frozen=True)
class Expected:
    """A run's estimate at admission: expected cost, highest possible cost, and the caller's budget."""

    expected: Decimal
    most: Decimal
    currency: str
    budget: Decimal | None = None


def _standing_of(document: Mapping[str, Any]) -> Standing | None:
    """Reads the keys of a standing fleet among those of its run, with roles in their order."""
    if "desired" not in document:
        return None
    # Before files could say it, ranks alone showed that a role's size matters.
    fixed = document["desired"] if document.get("ranks") else ()
    in_order = {key: dict(sorted(one.items())) for key, one in document.items() if isinstance(one, Mapping)}
    return codec.from_document(Standing, {"fixed": list(fixed), **document, **in_order})


@dataclass(frozen=True)
class Run:
    """One run of a benchmark, or a standing fleet.

    Attributes:
        name: the benchmark's name.
        at: when it was admitted.
        expires_at: when everything that still exists of it is removed.
        requested_by: ARN of the caller.
        cells: number of its cells.
        nodes: maximum number of nodes at a time, in all parallel cells.
        execution: ARN of its workflow's execution; of a standing fleet, which has several, the latest.
        outcome: the status it will end with; set when it is closed.
        closed_at: since when nothing may be launched for it.
        ended_at: since when nothing of it exists except its results and ``left_behind``.
        reason: why it is not SUCCEEDED, as a sentence.
        standing: state of a standing fleet; None for a benchmark's run.
        estimate: None for a run of an earlier version.
        cost: of all cells and attempts; None until it has ended.
        cost_of_file: the same with the file's prices; None for a file without prices.
        counted: the part of its cost that the metric already includes.
        left_behind: what carries its tags and is not removed; after the end of a run, protected resources, too.
        size: the chosen size of its file; None for none, and for a run of an earlier version.
        timetable: the planned steps of its longest cell; empty for a standing fleet, and for a run of an earlier
            version.
    """

    run: str
    name: str
    at: datetime
    expires_at: datetime
    requested_by: str
    cells: int
    nodes: int
    status: RunStatus = field(default=RunStatus.ADMITTED, metadata=_REQUIRED)
    execution: str | None = None
    outcome: RunStatus | None = None
    closed_at: datetime | None = None
    ended_at: datetime | None = None
    reason: str | None = None
    standing: Standing | None = field(default=None, metadata=stored(flat=True, decode=_standing_of))
    estimate: Expected | None = None
    cost: Cost | None = None
    cost_of_file: Cost | None = None
    counted: Decimal = field(default=ZERO, metadata=_OMIT)
    left_behind: tuple[LeftBehind, ...] = field(default=(), metadata=_OMIT)
    size: str | None = field(default=None, metadata=_OMIT)
    timetable: tuple[PlannedStep, ...] = field(default=(), metadata=_OMIT)

    @property
    def execution_name(self) -> str:
        """Name of its workflow's execution."""
        name = (self.execution or "").rpartition(":")[2]
        return name if run_of_execution(name) == self.run else self.run
