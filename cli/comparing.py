"""Two reports, or two variants of one, compared: pure, so that it says the same of the same documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import get_args

from cli import equal, noise
from cli.equal import Operation
from troop.bench.plan import Variant
from troop.bench.record import CellStatus
from troop.errors import TroopError
from troop.report.comparison import Comparison, Equal, Figure, Row, Side, Spread
from troop.report.document import Cell, Report
from troop.report.document import Operation as Measured

NAMES = get_args(Figure.model_fields["name"].annotation)

MANY_ERRORS = 0.01
"""Errors for each success, from which on a throughput of successes alone misleads."""


class IncomparableError(TroopError):
    """There is nothing to compare; the message says why, and what to do."""


@dataclass(frozen=True)
class Chosen:
    """One side.

    Attributes:
        name: as it was asked for.
        label: of the only variant that is wanted, without repetition; None for all.
    """

    name: str
    report: Report
    label: str | None = None


@dataclass
class _Cells:
    """Cells of one variant: its repetitions."""

    label: str
    cells: list[Cell] = field(default_factory=list)

    def operations(self) -> list[Operation]:
        """All that they have measured, in order."""
        found: dict[Operation, None] = {}
        for cell in self.cells:
            for phase in cell.phases:
                found.update({(phase.phase, one.role, one.operation): None for one in phase.operations})
        return [*found]

    def measured(self, operation: Operation) -> list[Measured]:
        """Of an operation, one for each repetition that has measured its rate."""
        phase, role, name = operation
        return [
            one
            for cell in self.cells
            for its in cell.phases
            for one in its.operations
            if (its.phase, one.role, one.operation) == (phase, role, name) and one.per_second is not None
        ]


def label_of(cell: Cell) -> str:
    """``n3, threads=4``: what sets it apart, repetitions aside."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in cell.values.items()}
    return Variant(cell.scale, values).label  # type: ignore[arg-type]  # scalars and lists of them, by the plan


def compare(
    a: Chosen, b: Chosen, *, now: datetime, version: str, confidence: float = 0.95, fail_below: float | None = None
) -> Comparison:
    """Two sides, variant by variant and operation by operation.

    Args:
        now: when it is made.
        version: Troop's, of whoever makes it.
        confidence: of the intervals, between 0 and 1.
        fail_below: rows whose ratio is below are regressions, unless that may be chance.

    Raises:
        IncomparableError: a side has no such variant, or no cell that has succeeded; both are the same; or no operation
            of one is one of the other.
    """
    if _same(a, b):
        raise IncomparableError(
            f"{a.name} and {b.name} are the same: give two runs, or two variants of one as RUN:VARIANT, such as "
            f"{_example(a.report)}"
        )
    warnings = [*_not_counted(a, "A"), *_not_counted(b, "B"), *_different(a.report, b.report)]
    mine, other = _variants(a), _variants(b)
    pairs, unmatched = _matched(mine, other)
    rows: list[Row] = []
    lost: list[str] = []
    for label, (ours, theirs) in pairs:
        for operation in ours.operations():
            if operation not in theirs.operations():
                unmatched.append(f"only A has {_named(operation, label)}")
                lost.append(_named(operation, label))
                continue
            if ours.measured(operation) and not theirs.measured(operation):
                lost.append(_named(operation, label))
            row, more = _row(a, b, label, operation, ours, theirs, confidence, fail_below)
            rows += row
            warnings += more
        unmatched += [
            f"only B has {_named(operation, label)}"
            for operation in theirs.operations()
            if operation not in ours.operations()
        ]
    if not rows:
        told = "; ".join([*unmatched, *warnings]) or "neither has measured an operation"
        raise IncomparableError(f"nothing of {a.name} can be compared with anything of {b.name}: {told}")
    if a.report.money.currency != b.report.money.currency:
        rows = [row.model_copy(update={"equal": _without_ratio(row.equal)}) for row in rows]
    return Comparison(
        made_at=now,
        made_by=version,
        confidence=confidence,
        fail_below=fail_below,
        currency=a.report.money.currency,
        a=_side(a, mine),
        b=_side(b, other),
        rows=rows,
        lost=lost,
        unmatched=unmatched,
        warnings=warnings,
    )


# Who is compared with whom


def _same(a: Chosen, b: Chosen) -> bool:
    """Whether cells of both are the same of the same run; without an id a run is known by its content."""
    if a.label is not None and b.label is not None and a.label != b.label:
        return False
    if a.report.run.run or b.report.run.run:
        return a.report.run.run == b.report.run.run
    return a.report.cells == b.report.cells


def _example(report: Report) -> str:
    labels = [label for label in dict.fromkeys(map(label_of, report.cells)) if label]
    return f"{report.run.run or 'RUN'}:'{labels[0]}'" if labels else "RUN:n6"


def _wanted(side: Chosen) -> list[Cell]:
    """The cells of the side, whatever became of them.

    Raises:
        IncomparableError: there is no such variant.
    """
    if side.label is None:
        return side.report.cells
    found = [cell for cell in side.report.cells if label_of(cell) == side.label]
    if not found:
        labels = ", ".join(repr(label) for label in dict.fromkeys(map(label_of, side.report.cells)) if label)
        there = f"it has {labels}" if labels else "it has one alone, without a name"
        raise IncomparableError(f"{side.name}: there is no variant {side.label!r}; {there}")
    return found


def _variants(side: Chosen) -> dict[str, _Cells]:
    """The cells that count, by what sets them apart: scale step and values, whatever order those are written in.

    Raises:
        IncomparableError: there is none.
    """
    found: dict[str, _Cells] = {}
    for cell in _wanted(side):
        if cell.status == CellStatus.SUCCEEDED:
            key = json.dumps([cell.scale, cell.values], sort_keys=True)
            found.setdefault(key, _Cells(label_of(cell))).cells.append(cell)
    if not found:
        raise IncomparableError(f"no cell of {side.name} has SUCCEEDED: there is nothing to compare")
    return found


def _matched(
    mine: Mapping[str, _Cells], other: Mapping[str, _Cells]
) -> tuple[list[tuple[str, tuple[_Cells, _Cells]]], list[str]]:
    """Pairs with their label, and what only one side has."""
    if len(mine) == len(other) == 1:
        (ours,), (theirs,) = mine.values(), other.values()
        return [(ours.label if ours.label == theirs.label else "", (ours, theirs))], []
    pairs = [(one.label, (one, other[key])) for key, one in mine.items() if key in other]
    unmatched = [f"only A has {one.label or 'a cell without a name'}" for key, one in mine.items() if key not in other]
    unmatched += [f"only B has {one.label or 'a cell without a name'}" for key, one in other.items() if key not in mine]
    return pairs, unmatched


# What to know before


def _not_counted(side: Chosen, name: str) -> Iterator[str]:
    for cell in _wanted(side):
        if cell.status != CellStatus.SUCCEEDED:
            label = f" ({cell.label})" if cell.label else ""
            yield f"{cell.cell}{label} of {name} is {cell.status}, and is left out"


def _different(a: Report, b: Report) -> Iterator[str]:
    if a.run.name != b.run.name:
        yield f"A is a run of the benchmark {a.run.name}, and B of {b.run.name}: they may measure different things"
    if a.run.size != b.run.size:
        yield f"A was run in the size {a.run.size or 'of the file'}, and B in the size {b.run.size or 'of the file'}"
    if a.money.currency != b.money.currency:
        yield f"what A costs is in {a.money.currency}, and what B costs in {b.money.currency}: they are not set off"


def _named(operation: Operation, label: str) -> str:
    phase, role, name = operation
    return f"{name} of {role} in {phase}" + (f" ({label})" if label else "")


# A row


def _row(
    a: Chosen,
    b: Chosen,
    label: str,
    operation: Operation,
    ours: _Cells,
    theirs: _Cells,
    confidence: float,
    fail_below: float | None,
) -> tuple[list[Row], list[str]]:
    """One, or none where there is no ratio; and what to know of it."""
    what = _named(operation, label)
    left, right = ours.measured(operation), theirs.measured(operation)
    rates, others = [one.per_second or 0.0 for one in left], [one.per_second or 0.0 for one in right]
    if not rates or not others:
        return [], [f"{what}: no rate was measured on {'A' if not rates else 'B'}"]
    if min(rates) <= 0:
        return [], [f"{what}: a repetition of A has done nothing, so there is no ratio to it"]
    found = noise.ratio(rates, others, confidence)
    warnings = list(_warnings(what, ours, theirs, operation))
    regression = None
    if fail_below is not None:
        regression = found.ratio < fail_below and found.exceeds_noise is not False
    phase, role, name = operation
    row = Row(
        label=label,
        phase=phase,
        role=role,
        operation=name,
        a=_spread(rates),
        b=_spread(others),
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        exceeds_noise=found.exceeds_noise,
        regression=regression,
        times=_times(left, right),
        errors_a=errors(left),
        errors_b=errors(right),
        equal=_equal(
            a,
            b,
            operation,
            ours.cells[0],
            theirs.cells[0],
            noise.middle(rates),
            noise.middle(others),
            same=found.exceeds_noise is False,
        ),
    )
    return [row], warnings


def _warnings(what: str, ours: _Cells, theirs: _Cells, operation: Operation) -> Iterator[str]:
    left, right = ours.measured(operation), theirs.measured(operation)
    for name, measured, cells in (("A", left, ours.cells), ("B", right, theirs.cells)):
        if len(measured) < len(cells):
            yield f"{what}: {len(cells) - len(measured)} of {len(cells)} repetitions of {name} have measured no rate"
        if (share := errors(measured)) > MANY_ERRORS:
            yield f"{what}: on {name} there are {share:.3g} errors for each success, and rates are those of successes"
    seconds = [
        {phase.measured_seconds for cell in side.cells for phase in cell.phases if phase.phase == operation[0]}
        for side in (ours, theirs)
    ]
    if max(seconds[0] | seconds[1]) > 1.1 * min(seconds[0] | seconds[1]):
        told = " and ".join(f"{min(some):g} s" for some in seconds)
        yield f"{what}: A and B were not measured for equally long ({told})"


def errors(measured: Sequence[Measured]) -> float:
    """For each success, all repetitions together; where there was none, as many as there are."""
    count = sum(one.count for one in measured)
    return sum(sum(one.errors.values()) for one in measured) / max(count, 1)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median=median(values), low=min(values), high=max(values), repetitions=len(values))


def _times(a: Sequence[Measured], b: Sequence[Measured]) -> list[Figure]:
    found = []
    for name in NAMES:
        left, right = _known(a, name), _known(b, name)
        if left or right:
            one, other = _spread(left) if left else None, _spread(right) if right else None
            ratio = other.median / one.median if one and other and one.median else None
            found.append(Figure(name=name, a=one, b=other, ratio=ratio))
    return found


def _known(measured: Sequence[Measured], name: str) -> list[float]:
    return [value for one in measured if (value := getattr(one, name)) is not None]


def _equal(
    a: Chosen, b: Chosen, operation: Operation, ours: Cell, theirs: Cell, mine: float, other: float, *, same: bool
) -> Equal | None:
    """Both sides at the larger of the two throughputs; None where one cannot get there.

    Args:
        same: their difference is within the noise: then both need what they have, for one node more of few would say
            much of costs where nothing is known to differ.
    """
    target = max(mine, other)
    needs = [
        equal.need(equal.measured(side.report.cells, cell, operation), equal.nodes_of(cell), 0.0 if same else target)
        for side, cell in ((a, ours), (b, theirs))
    ]
    left, right = needs
    if left is None or right is None:
        return None
    ratio = right.hourly / left.hourly if left.hourly and right.hourly is not None else None
    return Equal(per_second=target, a=left, b=right, hourly_ratio=ratio)


def _without_ratio(found: Equal | None) -> Equal | None:
    return found and found.model_copy(update={"hourly_ratio": None})


# The sides


def _side(side: Chosen, variants: Mapping[str, _Cells]) -> Side:
    cells = [cell for one in variants.values() for cell in one.cells]
    return Side(
        name=side.name,
        run=side.report.run.run,
        benchmark=side.report.run.name,
        cells=len(cells),
        fleets=_fleets(cells),
    )


def _fleets(cells: Sequence[Cell]) -> str:
    """``3 to 12 servers (i4i.large), 2 drivers (c7g.large)``."""
    roles: dict[str, tuple[set[int], dict[str, None]]] = {}
    for cell in cells:
        for fleet in cell.fleets:
            counts, types = roles.setdefault(fleet.role, (set(), {}))
            counts.add(fleet.nodes)
            types[fleet.instance_type] = None
    return ", ".join(f"{_range(counts)} {role} ({', '.join(types)})" for role, (counts, types) in roles.items())


def _range(counts: set[int]) -> str:
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
