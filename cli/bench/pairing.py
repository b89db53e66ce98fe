"""Pairs the cells of two sides: by cell, by round, or by the baseline that both have.

Variants match regardless of the order of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from troop.bench.definition.definition import identity
from troop.bench.records.record import CellStatus
from troop.report import points
from troop.report.baseline import Halves, halves, in_pairs, label_of, variant_of
from troop.report.comparison import Source
from troop.report.document import Cell, Report
from troop.report.document import Operation as Measured
from troop.report.points import Key, middle
from troop.shared.errors import TroopError
from troop.statistics import pairs as statistics
from troop.statistics.pairs import Ratio

ADD = (
    'Give the benchmark\'s file a `baseline:`, such as `{parameters.version: "1.2"}`, and compare the run with it: '
    "`troop bench compare RUN`; or two runs that both have it. Variants of one run are comparable, too"
)
"""What makes runs comparable."""

SAME = "Compare each run with its own baseline, `troop bench compare RUN`, or two candidates with the same baseline"
"""What is comparable with different baselines."""


class IncomparableError(TroopError):
    """Nothing to compare; the message says why, and what to do."""


@dataclass(frozen=True)
class Chosen:
    """One side of a comparison.

    Attributes:
        name: as the user typed it.
        label: the chosen variant, without repetition; None for all.
        baseline: the report with the cells of its baseline, relative to which its results count; None for results as
            they are.
    """

    name: str
    report: Report
    label: str | None = None
    baseline: Report | None = None

    @cached_property
    def by_key(self) -> dict[Key, list[tuple[Cell, Measured]]]:
        """What all cells have measured, by operation."""
        return points.by_key(self.report.cells)


@dataclass(frozen=True)
class Sides:
    """Both sides of a comparison, and how their measurements become pairs.

    Attributes:
        reason: why there are no pairs, and what to add; "" with pairs.
        baseline: the baseline in short; "" without one.
    """

    a: Chosen
    b: Chosen
    source: Source
    reason: str = ""
    baseline: str = ""
    on_same_nodes: bool = False

    @property
    def is_one_currency(self) -> bool:
        return self.a.report.money.currency == self.b.report.money.currency


@dataclass
class Cells:
    """The cells of one variant: its repetitions."""

    label: str
    cells: list[Cell] = field(default_factory=list)

    @cached_property
    def _by_key(self) -> dict[Key, list[tuple[Cell, Measured]]]:
        return points.by_key(self.cells)

    def operations(self) -> list[Key]:
        """Lists the measured operations, in order."""
        return [*self._by_key]

    def measured(self, operation: Key) -> list[tuple[Cell, Measured]]:
        """Lists the results of an operation, one for each cell that measured its rate: the repeats of a point share
        the cell's nodes, and are combined.
        """
        return [(cell, one) for cell, one in self._by_key.get(operation, []) if one.per_second is not None]


Values = Sequence[tuple[Cell, float]]
"""A figure of one variant by cell."""


@dataclass(frozen=True)
class Compared:
    """A figure on both sides.

    Attributes:
        a, b: its values in complete pairs; without pairs, all values.
        ratio: B to A; None without a value, or with a 0 to divide by. Without pairs it has no interval.
    """

    a: list[float]
    b: list[float]
    ratio: Ratio | None


@dataclass(frozen=True)
class Variant:
    """One variant on both sides.

    Attributes:
        bases: the same variant of the baselines of A and B; None for results as they are.
    """

    label: str
    ours: Cells
    theirs: Cells
    source: Source
    bases: tuple[Cells, Cells] | None = None
    on_same_nodes: bool = False

    def every(self) -> list[Cells]:
        """Lists the cells of both sides, and of their baselines."""
        return [self.ours, self.theirs, *(self.bases or ())]

    def compared(self, read: Callable[[Cells], Values]) -> Compared:
        """Compares a figure.

        Args:
            read: reads the figure of one side.
        """
        a, b = read(self.ours), read(self.theirs)
        if self.bases:
            bases = map(read, self.bases)
            both = [self._pairs(base, its) for its, base in zip((a, b), bases, strict=True)]
            left, right = ([own for _, own in side] for side in both)
            relative = [[own / base for base, own in side] for side in both]
            return _compared(left, right, lambda: statistics.ratio_of_ratios(*relative))
        if self.source == "runs":
            left, right = [value for _, value in a], [value for _, value in b]
            return _compared(left, right, lambda: Ratio(middle(right) / middle(left)))
        pairs = self._pairs(a, b)
        left, right = [one for one, _ in pairs], [one for _, one in pairs]
        return _compared(left, right, lambda: statistics.paired(left, right))

    def references(self) -> list[tuple[str, Cells]]:
        """Lists the sides to which ratios of pairs are, with their names; none without pairs."""
        if self.bases:
            return [("the baseline of A", self.bases[0]), ("the baseline of B", self.bases[1])]
        return [] if self.source == "runs" else [("A", self.ours)]

    def _pairs(self, reference: Values, other: Values) -> list[tuple[float, float]]:
        """Returns the complete pairs. A reference of 0 has no ratio: its pair is incomplete."""
        return [pair for pair in in_pairs(reference, other, self.on_same_nodes) if pair[0] > 0]


def _compared(a: list[float], b: list[float], estimate: Callable[[], Ratio]) -> Compared:
    return Compared(a, b, estimate() if a and b and min(a) > 0 else None)


# The sides


def sides_of(a: Chosen, b: Chosen | None) -> Sides:
    """Decides what is compared, and by which pairs.

    Args:
        b: None to compare the candidate of ``a`` with its baseline, which is then A.

    Raises:
        IncomparableError: there is nothing to compare ``a`` with, or both are the same.
    """
    split = halves(a.report.cells, a.report.baseline)
    if b is None:
        return _against_baseline(a, split)
    if is_one_run(a, b):
        for side in (a, b):
            cells_of(side)  # refuses an unknown variant
        if a.label is None or b.label is None or a.label == b.label:
            alone = f"leave {b.name} out to compare the run with its baseline, " if split else ""
            raise IncomparableError(
                f"{a.name} and {b.name} are the same: {alone}name two runs, or two variants of one as RUN:VARIANT, "
                f"such as {example(a.report)}"
            )
        return Sides(a, b, "round")
    other = halves(b.report.cells, b.report.baseline)
    is_shared = identity(a.report.baseline) == identity(b.report.baseline)
    reason = _lacking(split, other, is_shared)
    a, b = _relative(a, split), _relative(b, other)
    if split and is_shared and a.baseline and b.baseline:
        return Sides(a, b, "baseline", baseline=split.names[1], on_same_nodes=split.on_same_nodes)
    return Sides(replace(a, baseline=None), replace(b, baseline=None), "runs", reason)


def _against_baseline(run: Chosen, split: Halves | None) -> Sides:
    if split is None:
        raise IncomparableError(f"{run.name} has no baseline: name a second run or variant to compare. {ADD}")
    reports = [run.report.model_copy(update={"cells": cells}) for cells in (split.baseline, split.candidate)]
    label, place = _shared_label(run, [*split.candidate, *split.baseline]), run.name
    if label != run.label:  # the baseline's values are in the other part of the name
        place = ":".join(filter(None, (run.report.run.run or "RUN", label)))
    names = [f"{place}, {its}" if its else place for its in reversed(split.names)]
    a, b = (Chosen(name, one, label) for name, one in zip(names, reports, strict=True))
    source: Source = "cell" if split.on_same_nodes else "round"
    return Sides(a, b, source, baseline=split.names[1], on_same_nodes=split.on_same_nodes)


def _relative(side: Chosen, split: Halves | None) -> Chosen:
    """Returns a side relative to its baseline; as it is without one, and if the chosen variant is the baseline."""
    label = _shared_label(side, split.candidate) if split else None
    if split is None or (label is None and side.label is not None):
        return side
    report, base = (side.report.model_copy(update={"cells": cells}) for cells in (split.candidate, split.baseline))
    return replace(side, report=report, label=label, baseline=base)


def _lacking(split: Halves | None, other: Halves | None, is_shared: bool) -> str:
    """Says why two runs have no pairs, and what has."""
    without = [name for name, its in (("A", split), ("B", other)) if its is None]
    if split is None or other is None:
        return f"{' and '.join(without)} {'has' if len(without) == 1 else 'have'} no baseline. {ADD}"
    if is_shared:
        return f"A side is the baseline itself. {SAME}"
    return f"A has the baseline {split.names[1]}, and B {other.names[1]}. {SAME}"


def _shared_label(side: Chosen, cells: Sequence[Cell]) -> str | None:
    """Returns the label of the chosen variant as candidate and baseline share it, if it is among some cells.

    Raises:
        IncomparableError: the variant does not exist.
    """
    if side.label is None or side.label in map(label_of, cells):
        return side.label
    chosen = {cell.cell for cell in cells_of(side)}
    return next((label_of(cell) for cell in cells if cell.cell in chosen), None)


def is_one_run(a: Chosen, b: Chosen) -> bool:
    """Checks whether both sides are of the same run. Runs without an id are compared by content."""
    if a.report.run.run or b.report.run.run:
        return a.report.run.run == b.report.run.run
    return a.report.cells == b.report.cells


def example(report: Report) -> str:
    """Returns an example of how to name a variant of the report."""
    labels = [label for label in dict.fromkeys(map(label_of, report.cells)) if label]
    return f"{report.run.run or 'RUN'}:'{labels[0]}'" if labels else "RUN:n6"


def cells_of(side: Chosen) -> list[Cell]:
    """Lists the cells of the side, whatever their status.

    Raises:
        IncomparableError: the variant does not exist.
    """
    if side.label is None:
        return side.report.cells
    cells = [cell for cell in side.report.cells if label_of(cell) == side.label]
    if not cells:
        labels = ", ".join(repr(label) for label in dict.fromkeys(map(label_of, side.report.cells)) if label)
        there = f"it has {labels}" if labels else "it has only one, without a name"
        alone = ". `troop bench compare RUN` compares it with its baseline" if side.report.baseline else ""
        raise IncomparableError(f"{side.name} has no variant {side.label!r}: {there}{alone}")
    return cells


def succeeded(side: Chosen) -> list[Cell]:
    """Lists the cells of the side that count."""
    return [cell for cell in cells_of(side) if cell.status == CellStatus.SUCCEEDED]


# Variants


def variants(side: Chosen) -> dict[str, Cells]:
    """Groups the cells that succeeded by variant: by scale step and values, in any order.

    Raises:
        IncomparableError: no cell succeeded.
    """
    cells_by_values: dict[str, Cells] = {}
    for cell in succeeded(side):
        cells_by_values.setdefault(variant_of(cell), Cells(label_of(cell))).cells.append(cell)
    if not cells_by_values:
        raise IncomparableError(f"nothing to compare: no cell of {side.name} has SUCCEEDED")
    return cells_by_values


def matched(sides: Sides) -> tuple[list[Variant], list[str]]:
    """Returns the variants that both sides have, and sentences about those that only one side has.

    Raises:
        IncomparableError: no cell of a side succeeded.
    """
    mine, other = variants(sides.a), variants(sides.b)
    bases = [variants(replace(side, report=side.baseline)) if side.baseline else {} for side in (sides.a, sides.b)]
    keys = [(*mine, *other)] if len(mine) == len(other) == 1 else [(key, key) for key in mine if key in other]
    pairs = [
        Variant(
            label=mine[ours].label if ours == theirs else "",
            ours=mine[ours],
            theirs=other[theirs],
            source=sides.source,
            bases=(bases[0].get(ours, Cells("")), bases[1].get(theirs, Cells(""))) if any(bases) else None,
            on_same_nodes=sides.on_same_nodes,
        )
        for ours, theirs in keys
    ]
    alone = [
        f"only {name} has {one.label or 'a cell without a name'}"
        for name, its, place in (("A", mine, 0), ("B", other, 1))
        for key, one in its.items()
        if key not in {pair[place] for pair in keys}
    ]
    return pairs, alone


def incomplete(one: Variant) -> Iterator[str]:
    """Yields a warning for each side of a variant that lacks partners."""
    if one.source == "runs":
        return
    sides = [("A", one.ours, one.theirs), ("B", one.theirs, one.ours)]
    if one.bases:
        sides = [("A", one.ours, one.bases[0]), ("B", one.theirs, one.bases[1])]
        sides += [(f"the baseline of {name}", base, its) for name, its, base in sides]
    for name, its, other in sides:
        there = {cell.repetition for cell in other.cells}
        if lacking := [f"#{cell.repetition}" for cell in its.cells if cell.repetition not in there]:
            subject = f"{one.label}: " if one.label else ""
            yield f"{subject}repetition {', '.join(lacking)} of {name} has no partner and is left out"
