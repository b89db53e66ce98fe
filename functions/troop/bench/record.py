"""The record of a run: what was asked for, how far it is, what it has created, and that each of it is gone.

Items of the table ``Runs``, of one ``run`` each; ``item`` is ``run``, ``cell#c001``, ``resource#<kind>#<name>`` or
``launch#c001#<token>``. Moments are aware and in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from troop.bench.costs import Cost
from troop.bench.money import ZERO, exact
from troop.bench.plan import Variant
from troop.bench.standing import Standing

SCHEMA = 1
"""Version of the stored items' shape."""


class RunStatus(StrEnum):
    ADMITTED = "ADMITTED"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


ENDED = frozenset({RunStatus.SUCCEEDED, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.STOPPED})


class CellStatus(StrEnum):
    """INVALID: it went on to its end, but what it measured cannot be relied on, as a node was lost."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    INVALID = "INVALID"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


FINAL = frozenset({CellStatus.SUCCEEDED, CellStatus.INVALID, CellStatus.FAILED, CellStatus.STOPPED})


class Kind(StrEnum):
    """What a cell creates; in the order of creation. Teardown goes through it backwards."""

    SECURITY_GROUP = "security-group"
    LAUNCH_TEMPLATE = "launch-template"
    AUTO_SCALING_GROUP = "auto-scaling-group"
    INSTANCE = "instance"
    VOLUME = "volume"


@dataclass(frozen=True)
class Disk:
    """What a volume is, as EBS counts it: type, GiB, provisioned IOPS and MiB a second; None where there are none."""

    type: str
    size_gib: int
    iops: int | None = None
    throughput_mib: int | None = None


@dataclass(frozen=True)
class Resource:
    """Something a cell creates.

    Attributes:
        name: by which it is planned, and found again: a name, or for instances and volumes their id.
        planned_at: written down before it was created.
        created_at: seen, or known to be created.
        gone_at: seen to be gone, after its cell or the run was closed.
        role: of an instance or a volume, whose fleet's it is; as all that follows, None where it is not known.
        instance_type: of an instance.
        zone: of an instance.
        purchase: how an instance was bought: ``on-demand`` or ``spot``.
        started_at: of an instance, when EC2 launched it.
        disk: of a volume.
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


@dataclass(frozen=True)
class LeftBehind:
    """A resource that carries a run's tags, and that Troop does not remove.

    Attributes:
        name: as of :class:`Resource`.
        reason: why it stays, as a sentence without its subject.
    """

    kind: Kind
    name: str
    reason: str


@dataclass(frozen=True)
class Cell:
    """One cell of a run.

    Attributes:
        phase: what it is at: ``launch``, ``boot``, the name of a phase, ``collect``, ``teardown`` or ``over``.
        phases: when each of these began, by name, in order.
        reason: why it is not SUCCEEDED, as a sentence.
        results: the table of the measured phases, see :mod:`troop.measure.merge`; None before it was merged.
        closed_at: since then nothing may be launched for it.
        variant: what sets it apart from the run's other cells.
        attempt: from 1; a cell of which there is a later attempt does not count.
        cost: what it has cost; None until nothing of it is left.
    """

    run: str
    cell: str
    status: CellStatus = CellStatus.PENDING
    phase: str = "launch"
    phases: Mapping[str, datetime] = field(default_factory=dict)
    reason: str | None = None
    results: list[dict[str, Any]] | None = None
    closed_at: datetime | None = None
    variant: Variant = field(default_factory=Variant)
    attempt: int = 1
    cost: Cost | None = None


@dataclass(frozen=True)
class Launch:
    """The right to create what a cell needs, for a while; teardown is not over before it has ended.

    Each try of the step has one of its own: one that is late must not end another's.

    Attributes:
        until: whoever has it creates nothing after that.
    """

    run: str
    cell: str
    token: str
    until: datetime


@dataclass(frozen=True)
class Expected:
    """What a run was expected to cost when it was admitted, at most, and at most by the caller's wish."""

    expected: Decimal
    most: Decimal
    currency: str
    budget: Decimal | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Expected:
        """From its attributes as they are kept: decimals, or JSON's numbers."""
        expected, most = Decimal(str(document["expected"])), Decimal(str(document["most"]))
        return cls(expected, most, document["currency"], exact(document.get("budget")))


@dataclass(frozen=True)
class Run:
    """One run of a benchmark, or a standing fleet.

    Attributes:
        name: the benchmark's.
        at: when it was admitted.
        expires_at: whatever exists of it then is removed.
        requested_by: ARN of the caller.
        cells: how many it has.
        nodes: the most that run at a time, of all cells that are parallel.
        execution: ARN of its workflow's execution.
        outcome: the status it is to end with, known since it was closed.
        closed_at: since then nothing may be launched for it.
        ended_at: since then nothing of it exists but its results, and what is left behind.
        reason: why it is not SUCCEEDED, as a sentence.
        standing: of a standing fleet; None: it is a benchmark's run.
        estimate: None for a run of an earlier version.
        cost: what it has cost, all cells and attempts; None until it has ended.
        cost_of_file: the same by the file's own prices; None for a file without any.
        counted: what of its cost the metric has counted so far.
        left_behind: what carries its tags and is not removed; of a run that has ended, protected resources, too.
    """

    run: str
    name: str
    at: datetime
    expires_at: datetime
    requested_by: str
    cells: int
    nodes: int
    status: RunStatus = RunStatus.ADMITTED
    execution: str | None = None
    outcome: RunStatus | None = None
    closed_at: datetime | None = None
    ended_at: datetime | None = None
    reason: str | None = None
    standing: Standing | None = None
    estimate: Expected | None = None
    cost: Cost | None = None
    cost_of_file: Cost | None = None
    counted: Decimal = ZERO
    left_behind: tuple[LeftBehind, ...] = ()
