"""Compares a run's candidate, which is its file as it is, with the baseline of the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from pydantic import JsonValue

from troop.bench.definition import baseline as sides
from troop.bench.definition.definition import parameter_of
from troop.bench.definition.plan import Variant
from troop.bench.records.record import CellStatus
from troop.measure.operations import MIXED, TOTAL
from troop.report import points
from troop.report.document import Against, Cell, Figure, Operation, Phase, Ratio
from troop.report.open_loop import word
from troop.statistics import pairs as statistics

FIGURES: tuple[Figure, ...] = get_args(Figure)

_T = TypeVar("_T")


@dataclass(frozen=True)
class Halves:
    """The cells of a run as two sides. Labels and values are without those of the baseline, so that they are the same
    on both sides.

    Attributes:
        candidate, baseline: all cells of each side, whatever their status. On the same nodes, both have all cells, with
            the points of one side each.
        on_same_nodes: whether the two of a pair are points of one cell; otherwise they are cells of one round.
        names: what distinguishes the candidate and the baseline: ``version=1.3``, ``version=1.2``.
    """

    candidate: list[Cell]
    baseline: list[Cell]
    on_same_nodes: bool
    names: tuple[str, str]


@dataclass(frozen=True)
class Pairs:
    """The complete pairs of one operation.

    Attributes:
        variant: its label, without repetition.
        key: of the operation.
        each: candidate and baseline of each pair, in the order of repetitions.
    """

    variant: str
    key: points.Key
    each: list[tuple[Operation, Operation]]


def halves(cells: Sequence[Cell], baseline: Mapping[str, JsonValue]) -> Halves | None:
    """Tells the candidate and the baseline of a run apart; None without a baseline.

    Args:
        baseline: of the report.
    """
    if not baseline:
        return None

    def side(is_theirs: bool) -> list[Cell]:
        if on_same_nodes:
            return [_with_points(cell, baseline, is_theirs) for cell in cells]
        return [_stripped(cell, baseline) for cell in cells if sides.is_baseline(baseline, cell.values) is is_theirs]

    on_same_nodes = sides.on_same_nodes(baseline)
    return Halves(side(False), side(True), on_same_nodes, (_candidate_name(cells, baseline), name_of(baseline)))


def candidate(cells: Sequence[Cell], baseline: Mapping[str, JsonValue]) -> Sequence[Cell]:
    """Returns the cells of what the run is about: the candidate, or all without a baseline."""
    split = halves(cells, baseline)
    return cells if split is None else split.candidate


def name_of(baseline: Mapping[str, Any]) -> str:
    """Returns a baseline in short: ``version=1.2``."""
    return Variant(values={key: parameter_of(value) for key, value in baseline.items()}).label


def pairs(cells: Sequence[Cell], baseline: Mapping[str, JsonValue]) -> Iterator[Pairs]:
    """Yields the complete pairs of each operation whose rate both sides measured, in cells that SUCCEEDED. Searches
    are compared by their answers: each chooses its own points. An answer that is an interval makes no pair.
    """
    split = halves([_with_answers(cell) if cell.searches else cell for cell in cells], baseline)
    if split is None:
        return
    theirs = _by_variant(split.baseline)
    for variant, ours in _by_variant(split.candidate).items():
        other = points.by_key(theirs.get(variant, []))
        measured_by_key = points.by_key(ours)
        for key, measured in measured_by_key.items():
            if key[-1] == TOTAL and points.parts(measured_by_key, key) != points.parts(other, key):
                continue  # totals of different operations
            matched = in_pairs(_known(measured), _known(other.get(key, [])), split.on_same_nodes)
            if matched:
                yield Pairs(label_of(ours[0]), key, matched)


def ratios(cells: Sequence[Cell], baseline: Mapping[str, JsonValue]) -> list[Against]:
    """Returns the ratios of all operations, candidate to baseline; none without a baseline."""
    return [
        Against(
            label=", ".join(part for part in (one.variant, setting) if part),
            phase=phase,
            role=role,
            operation=operation,
            figures=figures,
        )
        for one in pairs(cells, baseline)
        for phase, setting, role, operation in [one.key]
        if (figures := [ratio for name in FIGURES if (ratio := _ratio(name, one.each))])
        and figures[0].figure == FIGURES[0]
    ]


def in_pairs(a: Iterable[tuple[Cell, _T]], b: Iterable[tuple[Cell, _T]], on_same_nodes: bool) -> list[tuple[_T, _T]]:
    """Joins what two sides of one variant have measured, in the order of repetitions: by cell on the same nodes,
    otherwise by round. Leaves incomplete pairs out.
    """
    its, other = (
        {(cell.repetition, cell.cell if on_same_nodes else ""): value for cell, value in side} for side in (a, b)
    )
    return [(its[key], other[key]) for key in sorted(its.keys() & other.keys())]


def label_of(cell: Cell) -> str:
    """Returns the label of a cell's variant, such as ``n3, threads=4``, without its repetition."""
    return Variant(cell.scale, {key: parameter_of(value) for key, value in cell.values.items()}).label


def variant_of(cell: Cell) -> str:
    """Returns what is the same for all repetitions of a cell, whatever the order of its values."""
    return json.dumps([cell.scale, cell.values], sort_keys=True)


def _by_variant(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    by_variant: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.status == CellStatus.SUCCEEDED:
            by_variant.setdefault(variant_of(cell), []).append(cell)
    return by_variant


def _known(measured: Iterable[tuple[Cell, Operation]]) -> list[tuple[Cell, Operation]]:
    return [(cell, one) for cell, one in measured if one.per_second is not None]


def _ratio(name: Figure, each: Sequence[tuple[Operation, Operation]]) -> Ratio | None:
    if name.endswith("_ms"):
        each = [(ours, theirs) for ours, theirs in each if word(ours.timing) == word(theirs.timing) != MIXED]
    values = [(getattr(ours, name), getattr(theirs, name)) for ours, theirs in each]
    known = [(ours, theirs) for ours, theirs in values if theirs and (ours or (ours == 0 and name == FIGURES[0]))]
    if not known:
        return None
    candidate, baseline = ([values[side] for values in known] for side in (0, 1))
    estimate = statistics.paired(baseline, candidate)
    return Ratio(
        figure=name,
        candidate=points.middle(candidate),
        baseline=points.middle(baseline),
        ratio=estimate.ratio,
        low=estimate.low,
        high=estimate.high,
        exceeds_noise=estimate.exceeds_noise,
        method=estimate.method,
        pairs=[ours / theirs for ours, theirs in known],
    )


def _with_answers(cell: Cell) -> Cell:
    searched = {one.phase for one in cell.searches}
    phases = [one for one in cell.phases if one.phase not in searched]
    return cell.model_copy(update={"phases": [*phases, *points.answers(cell, exact=True)]})


def _with_points(cell: Cell, baseline: Mapping[str, JsonValue], is_theirs: bool) -> Cell:
    phases = [
        _unnamed(phase, baseline) for phase in cell.phases if sides.is_baseline(baseline, phase.parameters) is is_theirs
    ]
    return cell.model_copy(update={"phases": phases})


def _unnamed(phase: Phase, baseline: Mapping[str, JsonValue]) -> Phase:
    """Returns the phase with the label and parameters that candidate and baseline share. A label has its values in any
    order: databases do not keep it.
    """
    label = f", {phase.label}, "
    for key in baseline:
        name = key.removeprefix(sides.PARAMETERS)
        label = label.replace(f", {name_of({name: phase.parameters.get(name)})}, ", ", ", 1)
    update = {"label": label[2:-2], "parameters": sides.without_baseline(baseline, phase.parameters)}
    return phase.model_copy(update=update)


def _stripped(cell: Cell, baseline: Mapping[str, JsonValue]) -> Cell:
    phases = [
        phase.model_copy(update={"parameters": sides.without_baseline(baseline, phase.parameters)})
        for phase in cell.phases
    ]
    values = sides.without_baseline(baseline, cell.values)
    return cell.model_copy(update={"values": values, "phases": phases})


def _candidate_name(cells: Sequence[Cell], baseline: Mapping[str, JsonValue]) -> str:
    """Returns the candidate in short; without the values in which its cells differ."""
    its = [cell for cell in cells if not sides.is_baseline(baseline, cell.values)]
    named: dict[str, JsonValue] = {}
    for key in baseline:
        values = [cell.values.get(key, cell.parameters.get(key.removeprefix(sides.PARAMETERS))) for cell in its]
        if values and values[0] is not None and all(value == values[0] for value in values):
            named[key] = values[0]
    return name_of(named)
