"""Merges the running summaries of a run's nodes into what people see who watch it, see :mod:`troop.measure.live`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median_low
from typing import Any

from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Step
from troop.bench.records.record import Cell, CellStatus, Run
from troop.measure.histogram import buckets_at
from troop.measure.live import INTERVAL_SECONDS, Live, LiveOperation, bounded
from troop.measure.operations import OTHER
from troop.measure.windows import highest_in
from troop.shared import codec, moments

FORMAT = "troop.live-view/1"

FRESH = timedelta(seconds=INTERVAL_SECONDS)
"""Age up to which a merge serves all viewers."""

OLDEST = timedelta(seconds=60)
"""Age up to which a running summary counts: the node of an older one is gone, or cannot upload."""

OLD_SECONDS = 45
"""Age from which viewers mark a merge as old: two merges are missing."""

MOST_POINTS = 60
"""The most points of a history: a quarter of an hour, if somebody watches all the time."""

PERCENTS = (50.0, 99.0)

WITHOUT_SCRIPT = frozenset({names.LAUNCH, names.BOOT, names.COLLECT, names.TEARDOWN, names.OVER})


class LiveViewError(ValueError):
    """A document is not a merge of this version."""


class LiveState(StrEnum):
    """WAITING: no node reports a measured phase now. MEASURING: some do. ENDED: the run has ended."""

    WAITING = "waiting"
    MEASURING = "measuring"
    ENDED = "ended"


@dataclass(frozen=True)
class Figures:
    """What some nodes do.

    Attributes:
        per_second: successes; as errors, the sum of the nodes' rates, each over its own time.
        p50_ms, p99_ms: of the times of all nodes together; None without a time.
    """

    per_second: float
    errors_per_second: float
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class OperationFigures(Figures):
    """One kind of operation of the nodes of one role."""

    role: str
    operation: str


@dataclass(frozen=True)
class HistoryPoint(Figures):
    """All operations of a cell at one merge."""

    at: str
    phase: str


@dataclass(frozen=True)
class RoleView:
    """The nodes of one role.

    Attributes:
        expected: nodes that take part in the phase; None if unknown.
        cpu_percent, cpu_percent_max: the mean and the maximum of the nodes, of all their processors, without iowait;
            None if unknown.
        iowait_percent: the mean of the nodes; None if unknown.
    """

    role: str
    reporting: int
    expected: int | None
    cpu_percent: float | None
    cpu_percent_max: float | None
    iowait_percent: float | None = None


@dataclass(frozen=True)
class CellView:
    """One cell that runs.

    Attributes:
        label: of its variant; "" for a run's only cell.
        point: of the phase, a document of :class:`troop.bench.definition.definition.PointPlace`; None for none.
        is_measured: whether this phase is measured; None if unknown.
        seconds_left: until the end of the measured time; None before a node reports.
        warm_up_seconds_left: of these, not counted ones; 0 after the warm-up, None before a node reports.
        history: oldest first, also of the phases before.
    """

    cell: str
    label: str
    phase: str
    point: Mapping[str, Any] | None = None
    is_measured: bool | None = None
    seconds_left: float | None = None
    warm_up_seconds_left: float | None = None
    total: Figures | None = None
    operations: Sequence[OperationFigures] = ()
    roles: Sequence[RoleView] = ()
    history: Sequence[HistoryPoint] = ()

    @property
    def reporting(self) -> int:
        return sum(one.reporting for one in self.roles)

    @property
    def expected(self) -> int | None:
        known = [one.expected for one in self.roles]
        return None if None in known else sum(one or 0 for one in known)


@dataclass(frozen=True)
class LiveView:
    """A merge.

    Attributes:
        at: its moment, aware.
        cells: those that ran, in their order.
        unread: running summaries that could not be read.
    """

    run: str
    at: datetime
    cells: Sequence[CellView] = ()
    unread: int = 0

    def document(self) -> dict[str, Any]:
        cells = [asdict(one) for one in self.cells]
        at = moments.iso(self.at)
        return {"format": FORMAT, "run": self.run, "at": at, "unread": self.unread, "cells": cells}

    def cell(self, cell: str) -> CellView | None:
        return next((one for one in self.cells if one.cell == cell), None)


@dataclass(frozen=True)
class Watched:
    """What a viewer sees of a run.

    Attributes:
        view: the last merge; None before the first one, and once the run has ended.
        now: aware.
    """

    run: Run
    view: LiveView | None
    now: datetime

    @property
    def state(self) -> LiveState:
        if self.run.ended_at is not None:
            return LiveState.ENDED
        if self.view is not None and any(cell.reporting for cell in self.view.cells):
            return LiveState.MEASURING
        return LiveState.WAITING

    @property
    def age_seconds(self) -> float | None:
        """The age of the merge; None without one."""
        return None if self.view is None else max(0.0, (self.now - self.view.at).total_seconds())

    @property
    def message(self) -> str:
        """A sentence about the state."""
        if self.state is LiveState.ENDED:
            return f"the run has ended: {self.run.status}"
        if self.state is LiveState.MEASURING:
            return "nodes report what they measure"
        if self.view is not None and any(cell.is_measured for cell in self.view.cells):
            return f"nodes measure, and report for the first time within {INTERVAL_SECONDS} seconds"
        if self.view is not None and self.view.cells:
            return "nothing is measured now: figures begin with the next measured phase"
        return "nothing is measured yet"


@dataclass
class _Sum:
    """What nodes of one role did in one kind of operation."""

    pooled: LiveOperation = field(default_factory=LiveOperation)
    rates: list[float] = field(default_factory=list)
    error_rates: list[float] = field(default_factory=list)

    def add(self, operation: LiveOperation, seconds: int) -> None:
        self.pooled.add(operation)
        if seconds:
            self.rates.append(operation.count / seconds)
            self.error_rates.append(operation.errors / seconds)

    def merge(self, other: _Sum) -> None:
        self.pooled.add(other.pooled)
        self.rates += other.rates
        self.error_rates += other.error_rates

    def figures(self) -> Figures:
        # fsum is exact, so that the order of the nodes does not matter.
        rates = (round(math.fsum(one), 3) for one in (self.rates, self.error_rates))
        buckets = buckets_at(self.pooled.times, PERCENTS)
        return Figures(*rates, *(None if bucket is None else highest_in(bucket) / 1000 for bucket in buckets))


def running(cells: Iterable[Cell]) -> list[Cell]:
    """Returns the cells that run, in their order."""
    going = [cell for cell in cells if cell.status is CellStatus.RUNNING and cell.closed_at is None]
    return sorted(going, key=lambda cell: (cell.order or 0, cell.cell))


def may_report(cell: Cell) -> bool:
    """Checks whether nodes of a cell could write running summaries in its present step."""
    return cell.phase not in WITHOUT_SCRIPT


def step_of(benchmark: Benchmark, cell: Cell) -> Step | None:
    """Returns the present step of a cell; None if it runs no script.

    Args:
        benchmark: the cell's own.
    """
    step = next((one for one in benchmark.steps if one.name == cell.phase), None)
    if step is None or step.search is None or cell.point is None:
        return step
    return benchmark.step_at(step, cell.point.parameters, cell.point.repeat)


def expected_nodes(benchmark: Benchmark, step: Step) -> dict[str, int]:
    """Returns the number of nodes that take part in a step, by role."""
    counts = {role: benchmark.fleet(role).count for role in step.phase.roles}
    return {role: min(count, step.limits.get(role, count)) for role, count in counts.items()}


def cell_view(
    cell: Cell,
    lives: Iterable[Live],
    now: datetime,
    *,
    is_measured: bool | None = None,
    expected: Mapping[str, int] | None = None,
    before: CellView | None = None,
) -> CellView:
    """Merges running summaries of a cell. Those of other phases do not count.

    Args:
        lives: at most one of each node, none older than :data:`OLDEST`.
        expected: nodes by role; None if unknown.
        before: the cell in the last merge.
    """
    current = sorted((one for one in lives if one.phase == cell.phase), key=lambda one: (one.role, one.node))
    view = CellView(
        cell.cell,
        cell.variant.label,
        cell.phase,
        codec.to_document(cell.point) if cell.point else None,
        is_measured,
        roles=_roles(current, expected) if is_measured is not False else (),
        history=before.history if before else (),
    )
    if not current:
        return view
    starts = median_low([one.measured_from for one in current])
    ends = starts + median_low([one.measured_seconds for one in current])
    moment = now.timestamp()
    by_role: dict[str, dict[str, _Sum]] = {}
    total = _Sum()
    for live in current:
        sums = by_role.setdefault(live.role, {})
        for name, operation in live.operations.items():
            sums.setdefault(name, _Sum()).add(operation, live.seconds)
            total.add(operation, live.seconds)
    operations = [
        OperationFigures(**asdict(one.figures()), role=role, operation=name)
        for role, sums in sorted(by_role.items())
        for name, one in sorted(_bounded(sums).items())
    ]
    figures = total.figures() if operations else None
    return replace(
        view,
        is_measured=True,
        seconds_left=round(max(0.0, ends - moment), 1),
        warm_up_seconds_left=round(max(0.0, starts - moment), 1),
        total=figures,
        operations=operations,
        history=_continued(view.history, figures, cell.phase, now),
    )


def _bounded(sums: dict[str, _Sum]) -> dict[str, _Sum]:
    """Returns the most frequent operations, and the sum of the others."""
    chosen = {name: _Sum() for name in bounded({name: one.pooled for name, one in sums.items()})}
    for name, one in sums.items():
        chosen[name if name in chosen else OTHER].merge(one)
    return chosen


def _roles(lives: Sequence[Live], expected: Mapping[str, int] | None) -> list[RoleView]:
    roles = sorted({*(expected or {}), *(one.role for one in lives)})
    return [_role(role, [one for one in lives if one.role == role], expected) for role in roles]


def _role(role: str, lives: Sequence[Live], expected: Mapping[str, int] | None) -> RoleView:
    cpu, iowait = ([value for one in lives if (value := getattr(one, key)) is not None] for key in ("cpu", "iowait"))
    takes_part = None if expected is None else expected.get(role, len(lives))
    return RoleView(role, len(lives), takes_part, _percent(cpu), max(cpu) / 10 if cpu else None, _percent(iowait))


def _percent(thousandths: Sequence[int]) -> float | None:
    return round(sum(thousandths) / len(thousandths) / 10, 1) if thousandths else None


def _continued(
    history: Sequence[HistoryPoint], figures: Figures | None, phase: str, now: datetime
) -> Sequence[HistoryPoint]:
    if figures is None:
        return history
    point = HistoryPoint(**asdict(figures), at=moments.iso(now), phase=phase)
    return [*history, point][-MOST_POINTS:]


def parse_view(document: Any) -> LiveView:
    """Reads a document of :meth:`LiveView.document`.

    Raises:
        LiveViewError: the document is another one, or of another version.
    """
    try:
        if document["format"] != FORMAT:
            raise LiveViewError(f"the format must be {FORMAT}")
        cells = [_cell(one) for one in document["cells"]]
        return LiveView(document["run"], moments.parse(document["at"]), cells, document["unread"])
    except (TypeError, KeyError, AttributeError) as error:
        raise LiveViewError(f"it is not a merge: {error!r}") from None


def _cell(document: Mapping[str, Any]) -> CellView:
    lists: tuple[tuple[str, type[Any]], ...] = (
        ("operations", OperationFigures),
        ("roles", RoleView),
        ("history", HistoryPoint),
    )
    values = {key: [kind(**one) for one in document[key]] for key, kind in lists}
    total = document["total"]
    return CellView(**{**document, **values, "total": total and Figures(**total)})
