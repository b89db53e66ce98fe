"""Composes the beginning of a report: a sentence about the run, and the key figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from troop.measure.operations import RESPONSE
from troop.report import limit_rows, points, processors, verdicts
from troop.report.baseline import candidate, name_of
from troop.report.charts import measured
from troop.report.document import (
    Attempt,
    Capacity,
    Cell,
    Fleet,
    Interruption,
    Operation,
    Phase,
    ReplacedNode,
    Report,
    Scaling,
)
from troop.report.formatting import cell_name
from troop.report.scaling import combination
from troop.report.totals import leading
from troop.report.trust import generators
from troop.shared import formatting

GOOD = "SUCCEEDED"


@dataclass(frozen=True)
class Key:
    """A key figure: label, value, and the operation or variant it belongs to."""

    label: str
    value: str
    note: str = ""


def answer(report: Report) -> str:
    """Returns what the run has shown, such as ``Largest rate: 800 (900 does not hold the limits). Highest throughput
    93.5k/s (write, n12): mean 1.2 ms, p99 6.3 ms, no errors. 88 % of ideal growth at 12 servers.`` Empty if it is
    nothing.
    """
    ratios, name, report = report.ratios, name_of(report.baseline), _within_limits(report)
    lead = _lead(report)
    best = max(_variants(report, lead), key=lambda one: one.per_second, default=None)
    sentences = (
        [text] if (text := verdicts.against([one for one in ratios if (one.phase, one.role) == lead], name)) else []
    )
    sentences += [
        f"{label}: {value} ({note})."
        for label, value, note in limit_rows.keys(report)
        if label not in limit_rows.VERDICTS
    ]
    if best is not None and best.per_second:
        times = (("mean", best.mean_ms), ("p99", best.p99_ms))
        parts = [f"{name} {formatting.plain(value)} ms" for name, value in times if value is not None]
        parts.append(f"{formatting.share(best.errors) if best.errors else 'no'} errors")
        rate = f"Highest throughput {formatting.short(best.per_second)}/s ({best.name}{best.timing})"
        sentences.append(f"{rate}: {', '.join(parts)}.")
    for one in _growth(report, lead):
        sentences.append(f"{one.value} of ideal growth {one.label.removeprefix('Efficiency ')}.")
    return " ".join(sentences)


def headline(report: Report) -> str:
    """Returns a sentence such as ``3 cells of servers (up to 6 x i4i.large) and drivers (up to 2 x c7g.large), in 3
    zones, spot.``
    """
    largest: dict[str, int] = {}
    types: dict[str, dict[str, None]] = {}
    zones: set[str] = set()
    purchases: dict[str, None] = {}
    for cell in report.cells:
        for fleet in cell.fleets:
            largest[fleet.role] = max(largest.get(fleet.role, 0), fleet.nodes)
            types.setdefault(fleet.role, {})[fleet.instance_type] = None
            zones.update(fleet.zones)
            purchases.update(dict.fromkeys(name for name, number in fleet.purchase.items() if number))
    text = formatting.counted(len(report.cells), "cell") if report.cells else "No cells"
    if largest:
        most = "up to " if _sizes_differ(report) else ""
        fleets = [f"{role} ({most}{number:,} x {' or '.join(types[role])})" for role, number in largest.items()]
        text += f" of {formatting.sentence(fleets)}"
    if zones:
        text += f", in {formatting.counted(len(zones), 'zone')}" if len(zones) > 1 else f", in {next(iter(zones))}"
    if purchases:
        text += f", {formatting.sentence(list(purchases))}"
    return text + "."


def cost(report: Report) -> str:
    """Returns a sentence such as ``It cost $3.21; $3.60 were expected, and at most $12.10.``"""
    money = report.money
    parts = []
    if money.actual is not None:
        more = " (and what has no price)" if money.actual.unknown else ""
        parts.append(f"It cost {formatting.money(money.actual.amount, money.currency)}{more}")
    if money.of_file is not None:
        parts.append(f"by the benchmark's prices {formatting.money(money.of_file.amount, money.currency)}")
    if money.expected is not None:
        most = "" if money.most is None else f", and at most {formatting.money(money.most, money.currency)}"
        parts.append(f"{formatting.money(money.expected, money.currency)} were expected{most}")
    return f"{'; '.join(parts)}." if parts else "The cost is unknown."


def keys(report: Report) -> list[Key]:
    """Returns the key figures from the known values: at most nine, and one for each search. Points of a search that
    did not hold the limits are left out, and so is the baseline.
    """
    good = all(cell.status == GOOD for cell in report.cells)
    cells = [_succeeded(report)] if report.cells else []
    report = _within_limits(report)
    keys = [*([] if good else cells), *(Key(*one) for one in limit_rows.keys(report))]
    lead = _lead(report)
    variants = _variants(report, lead)
    best = max(variants, key=lambda one: one.per_second, default=None)
    if best is not None and best.per_second:
        keys.append(Key("Highest throughput", f"{formatting.short(best.per_second)}/s", best.name))
        if best.mean_ms is not None:
            keys.append(
                Key("Mean at highest throughput", f"{formatting.plain(best.mean_ms)} ms", best.name + best.timing)
            )
        if best.p99_ms is not None:
            keys.append(
                Key("p99 at highest throughput", f"{formatting.plain(best.p99_ms)} ms", best.name + best.timing)
            )
    keys += _errors(report, lead)
    keys += _processors(report, lead)
    keys += _growth(report, lead)
    keys += _price(report, variants)
    return [*keys, *(cells if good else [])]


def _within_limits(report: Report) -> Report:
    """Returns the report with what the run is about: the candidate, if there is a baseline."""
    cells = list(candidate(report.cells, report.baseline))
    return points.within_limits(report.model_copy(update={"cells": cells}))


def _succeeded(report: Report) -> Key:
    good = sum(cell.status == GOOD for cell in report.cells)
    value = "all" if good == len(report.cells) > 1 else f"{good} of {len(report.cells)}"
    again = sum(bool(cell.earlier) for cell in report.cells)
    return Key("Cells succeeded", value, f"{again} after a further attempt" if again else "")


def _errors(report: Report, lead: _Lead | None) -> Iterator[Key]:
    """Yields the errors of the leading role: other roles may count the same operations once more."""
    successes = errors = 0
    for phase, operation in _rows(report):
        if (phase.phase, operation.role) == lead:
            successes += operation.count
            errors += sum(operation.errors.values())
    if lead and successes + errors:
        part = f"{_count(errors)} of {_count(successes + errors)} operations of {lead[1]}"
        yield Key("Errors", formatting.share(errors / (successes + errors)) if errors else "none", part)


def _processors(report: Report, lead: _Lead | None) -> Iterator[Key]:
    """Yields the CPU of all roles in the leading phase: the highest of its cells and points."""
    good = [cell for cell in report.cells if cell.status == GOOD]
    uses = [use for cell in good for phase in cell.phases if lead and phase.phase == lead[0] for use in phase.use]
    ordered = sorted(processors.loads(uses), key=lambda one: -(one.busy or 0))
    first, *others = [f"{one.role} {formatting.percent(one.busy)}" for one in ordered if one.busy is not None] or [""]
    if first:
        yield Key(
            "Highest CPU",
            formatting.percent(ordered[0].busy),
            "; ".join(filter(None, [ordered[0].role, ", ".join(others)])),
        )


def _count(number: int) -> str:
    return formatting.short(number) if number >= 1000 else formatting.whole(number)


def _growth(report: Report, lead: _Lead | None = None) -> Iterator[Key]:
    """Yields the efficiency at the most nodes: of the leading role's operation with the highest throughput, which is
    its total if it has one. It is the mean of the repetitions.
    """
    every = [one for one in report.scaling if len({point.nodes for point in one.points}) > 1]
    leading = [one for one in every if (one.phase, one.role) == lead] or every
    most = max(leading, key=_nodes_and_rate, default=None)
    if most is None:
        return
    nodes, _ = _nodes_and_rate(most)
    known = [point.efficiency for point in most.points if point.nodes == nodes and point.efficiency is not None]
    if known:
        note = f"{most.operation}, relative to ideal growth" + (f", {most.label}" if most.label else "")
        yield Key(f"Efficiency at {nodes:,} {most.counted}", formatting.share(fmean(known)), note)


def _nodes_and_rate(one: Scaling) -> tuple[int, float]:
    """Returns the most nodes, and the mean throughput at them."""
    nodes = max(point.nodes for point in one.points)
    return nodes, fmean(point.per_second for point in one.points if point.nodes == nodes)


def _price(report: Report, variants: Sequence[_Variant]) -> Iterator[Key]:
    priced = [(one.cost_per_million, one.name) for one in variants if one.cost_per_million is not None]
    if priced:
        amount, name = min(priced)
        yield Key("Lowest cost per million", formatting.money(amount, report.money.currency), name)


@dataclass(frozen=True)
class _Variant:
    """The results of a variant over all its repetitions, because the best repetition is merely the luckiest.

    Attributes:
        name: of the operation and the variant.
        per_second: geometric mean.
        errors: their share of all that ended.
        mean_ms, p99_ms, cost_per_million: medians; None if unknown.
        timing: what follows the name of a response time.
    """

    name: str
    per_second: float
    errors: float
    mean_ms: float | None
    p99_ms: float | None
    cost_per_million: float | None
    timing: str = ""


_Lead = tuple[str, str]
"""A phase and a role."""


def _lead(report: Report) -> _Lead | None:
    """Returns the phase and the role whose operations are the run's subject; None without results. Phases with planned
    faults are no such subject.

    It is the role that generates the load and has the most operations: servers may count each operation several times.
    """
    counts: dict[_Lead, tuple[bool, int]] = {}
    for cell in report.cells:
        for phase in cell.phases if cell.status == GOOD else []:
            for one in () if phase.faults else leading(phase):
                generating, count = counts.get((phase.phase, one.role), (False, 0))
                generating = generating or bool(one.count and one.role in generators(cell, phase))
                counts[phase.phase, one.role] = generating, count + one.count
    return max(counts, key=lambda key: counts[key], default=None)


def _variants(report: Report, lead: _Lead | None) -> list[_Variant]:
    """Returns the variants of all operations of the leading role, because others are not comparable.

    A cell contributes one value to each variant and point: the repeats of a point share its nodes.
    """
    good = [cell for cell in report.cells if cell.status == GOOD]
    by_variant: dict[str, list[tuple[Cell, Operation]]] = {}
    for (name, label, role, _), each in points.by_key(good, leading).items():
        if (name, role) == lead:
            for cell, one in each:
                parts = _variant_of(cell), label
                by_variant.setdefault(", ".join(part for part in parts if part), []).append((cell, one))
    return [_variant(each[0][1].operation, label, each) for label, each in by_variant.items()]


def _variant(operation: str, label: str, each: Sequence[tuple[Cell, Operation]]) -> _Variant:
    rates = [one.per_second for _, one in each if one.per_second is not None]
    means = [one.mean_ms for _, one in each if one.mean_ms is not None]
    times = [one.p99_ms for _, one in each if one.p99_ms is not None]
    costs = [one.cost_per_million for _, one in each if one.cost_per_million is not None]
    errors, successes = sum(sum(one.errors.values()) for _, one in each), sum(one.count for _, one in each)
    variant = label or (each[0][0].cell if len(each) == 1 else "")
    is_response = all(one.timing == RESPONSE for _, one in each)
    return _Variant(
        f"{operation}, {variant}" if variant else operation,
        points.middle(rates) if rates else 0.0,
        errors / (errors + successes) if errors else 0.0,
        median(means) if means else None,
        median(times) if times else None,
        median(costs) if costs else None,
        ", response time" if is_response else "",
    )


def _variant_of(cell: Cell) -> str:
    """Returns a cell's label without its repetition."""
    return ", ".join(part for part in (cell.scale, combination(cell.values, None)) if part)


def fleets(report: Report) -> list[tuple[list[str], list[Fleet]]]:
    """Returns the distinct fleets, each with the cells that had them."""
    cells: dict[str, list[str]] = {}
    same: dict[str, list[Fleet]] = {}
    for cell in report.cells:
        key = repr(cell.fleets)
        cells.setdefault(key, []).append(cell.cell)
        same[key] = cell.fleets
    return [(named, same[key]) for key, named in cells.items() if same[key]]


def capacities(report: Report) -> list[tuple[list[str], list[Capacity]]]:
    """Returns the distinct capacities, each with the cells that had them: repetitions mostly have the same."""
    cells: dict[str, list[str]] = {}
    same: dict[str, list[Capacity]] = {}
    for cell in report.cells:
        key = repr(cell.capacity)
        cells.setdefault(key, []).append(cell_name(cell))
        same[key] = cell.capacity
    return [(named, same[key]) for key, named in cells.items() if same[key]]


def interruptions(report: Report) -> list[tuple[str, Interruption]]:
    """Returns the interruptions of all attempts, each with the name of its cell or attempt."""
    return [(name, one) for name, attempt in _attempts(report) for one in attempt.interruptions]


def replaced_nodes(report: Report) -> list[tuple[str, ReplacedNode]]:
    """Returns the replaced nodes of all attempts, each with the name of its cell or attempt."""
    return [(name, one) for name, attempt in _attempts(report) for one in attempt.replaced_nodes]


def _attempts(report: Report) -> Iterator[tuple[str, Attempt | Cell]]:
    """Yields all attempts at all cells with a name of each."""
    for cell in report.cells:
        yield from ((f"{attempt.cell} (attempt of {cell_name(cell)})", attempt) for attempt in cell.earlier)
        yield cell_name(cell), cell


def _rows(report: Report) -> Iterator[tuple[Phase, Operation]]:
    for cell in report.cells:
        if cell.status == GOOD:
            yield from measured(cell)


def _sizes_differ(report: Report) -> bool:
    return len({tuple((fleet.role, fleet.nodes) for fleet in cell.fleets) for cell in report.cells if cell.fleets}) > 1
