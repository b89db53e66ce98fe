"""Compares a run with its baseline, two of its variants, or two runs. Pure: the same documents, the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from cli.bench import compared_searches
from cli.bench import pricing as prices
from cli.bench.compared_row import NARROW, named, row_of
from cli.bench.pairing import (
    Chosen,
    IncomparableError,
    Sides,
    cells_of,
    incomplete,
    matched,
    sides_of,
    succeeded,
)
from cli.bench.pricing import AS_BOUGHT, Pricing
from troop.bench.records.record import CellStatus
from troop.measure.operations import TOTAL
from troop.report import failures, points
from troop.report.comparison import Basis, Comparison, Row, Side
from troop.report.document import Cell, Fleet
from troop.shared.formatting import count_of_role

UNSURE = (
    "the noise is unknown with one pair: what a side needs at equal throughput, and its cost, may be chance. Before "
    "money depends on the result, run more repetitions"
)

WIDE = (
    f"a difference is within the noise, and its interval exceeds {NARROW[0]:g} to {NARROW[1]:g}: what a side "
    "needs at equal throughput, and its cost, may be chance. Run more repetitions"
)


_VERSIONS = ("image", "kernel", "agent")
_PLACES: tuple[tuple[str, str, Callable[[Fleet], Iterable[str]]], ...] = (
    ("instance type", "instance_type", lambda fleet: [fleet.instance_type]),
    ("zone", "zones", lambda fleet: fleet.zones),
    ("purchase", "purchase", lambda fleet: [name for name, number in fleet.purchase.items() if number]),
)
"""What of a fleet can differ: in words, as a key of the file, and its values."""

_MOST_NAMED = 4
"""The most values to name of a side."""


def compare(
    a: Chosen,
    b: Chosen | None = None,
    *,
    now: datetime,
    version: str,
    fail_below: float | None = None,
    pricing: Pricing = AS_BOUGHT,
) -> Comparison:
    """Compares two sides by variant and operation.

    Args:
        b: None to compare the candidate of ``a`` with its baseline.
        now: the time of the comparison.
        version: the version of Troop that makes it.
        fail_below: rows with a lower ratio are regressions, if the difference exceeds the noise. Points of a search
            are none: the answers of searches count in their place.
        pricing: the roles and prices of the cost.

    Raises:
        BadPriceError: the roles or types of ``pricing`` do not exist.
        IncomparableError: a side lacks the variant or has no succeeded cell, both sides are the same, or they share
            no operation.
    """
    sides = sides_of(a, b)
    sides = replace(sides, a=compared_searches.with_answers(sides.a), b=compared_searches.with_answers(sides.b))
    a, b = sides.a, sides.b
    answered = compared_searches.answer_labels(a, b)
    warnings = [*dict.fromkeys(_not_counted(sides)), *_different(sides)]
    variants, unmatched = matched(sides)
    cells = [succeeded(side) for side in (a, b)]
    warnings += _other_differences(sides, *cells)
    prices.refuse_unknown(pricing, *cells)
    for name, each in zip("AB", cells, strict=True):
        warnings += pricing.remarks(name, each)
    rows: list[Row] = []
    lost: list[str] = []
    undecided: list[str] = []
    for one in variants:
        warnings += incomplete(one)
        answers = compared_searches.compare(one, fail_below)
        rows += answers.rows
        lost += answers.lost
        undecided += [
            *answers.undecided,
            *(f"the {row.operation} of {row.phase}" for row in answers.rows if row.low is None),
        ]
        warnings += answers.warnings
        ours, theirs, label = one.ours, one.theirs, one.label
        for operation in ours.operations():
            is_searched = operation[0] in answers.phases
            if operation[-1] == TOTAL and points.parts(ours.operations(), operation) != points.parts(
                theirs.operations(), operation
            ):
                continue  # totals of different operations
            if is_searched and operation not in theirs.operations():
                continue  # each search chooses its own points
            if operation not in theirs.operations():
                unmatched.append(f"only A has {named(operation, label)}")
                lost.append(named(operation, label))
                continue
            if ours.measured(operation) and not theirs.measured(operation) and not is_searched:
                lost.append(named(operation, label))
            least = None if is_searched else fail_below
            row, more = row_of(sides, one, operation, least, pricing, compared_searches.factors(operation, one))
            rows += [each.model_copy(update={"is_answer": operation[:2] in answered}) for each in row]
            if not is_searched and not any(each.exceeds_noise is not None or not each.ratio for each in row):
                undecided.append(named(operation, label))
            warnings += more
        unmatched += [
            f"only B has {named(operation, label)}"
            for operation in theirs.operations()
            if operation not in ours.operations() and operation[-1] != TOTAL and operation[0] not in answers.phases
        ]
    faults = failures.compared(*cells)
    if not rows and (fail_below is not None or not faults):
        nothing = "neither side has measured an operation without planned faults"
        explanation = "; ".join([*unmatched, *warnings]) or nothing
        raise IncomparableError(f"nothing of {a.name} can be compared with anything of {b.name}: {explanation}")
    if sides.source != "runs" and any(row.equal and row.exceeds_noise is None for row in rows):
        warnings.append(UNSURE)
    if any(row.equal and row.exceeds_noise is False and row.equal.doubt(row) for row in rows):
        warnings.append(WIDE)
    return Comparison(
        created_at=now,
        created_by=version,
        source=sides.source,
        baseline=sides.baseline,
        reason=sides.reason,
        fail_below=fail_below,
        currency=a.report.money.currency,
        basis=_basis(pricing, *cells),
        a=_side(a, cells[0]),
        b=_side(b, cells[1]),
        rows=rows,
        faults=faults,
        lost=lost,
        undecided=undecided,
        unmatched=unmatched,
        warnings=warnings,
    )


# Warnings


def _not_counted(sides: Sides) -> Iterator[str]:
    names = [f" of {name}" for name in "AB"] if sides.source != "cell" else ["", ""]
    for name, side in zip(names, (sides.a, sides.b), strict=True):
        for cell in cells_of(side):
            if cell.status != CellStatus.SUCCEEDED:
                label = f" ({cell.label})" if cell.label else ""
                yield f"{cell.cell}{label}{name} is {cell.status} and does not count"


def _different(sides: Sides) -> Iterator[str]:
    a, b = sides.a.report, sides.b.report
    if a.run.name != b.run.name:
        yield f"A is a run of the benchmark {a.run.name}, and B of {b.run.name}: they may measure different things"
    if a.run.size != b.run.size:
        yield f"A was run in the size {a.run.size or 'of the file'}, and B in the size {b.run.size or 'of the file'}"
    if not sides.is_one_currency:
        yield f"A's costs are in {a.money.currency} and B's in {b.money.currency}, so costs have no ratio"


# The sides


def _basis(pricing: Pricing, a: Sequence[Cell], b: Sequence[Cell]) -> Basis:
    every = [dict.fromkeys(fleet.role for cell in cells for fleet in cell.fleets) for cells in (a, b)]
    roles = [dict.fromkeys(role for cell in cells for role in pricing.counted(cell)) for cells in (a, b)]
    return Basis(
        roles_a=list(roles[0]),
        roles_b=list(roles[1]),
        left_out_a=[role for role in every[0] if role not in roles[0]],
        left_out_b=[role for role in every[1] if role not in roles[1]],
        prices=pricing.source,
        term=pricing.term,
        types={
            kind: float(price.an_hour(pricing.term) if pricing.term else price.hourly)
            for kind, price in pricing.types.items()
        },
    )


def _side(side: Chosen, cells: Sequence[Cell]) -> Side:
    return Side(
        name=side.name,
        run=side.report.run.run,
        benchmark=side.report.run.name,
        cells=len(cells),
        fleets=_fleets(cells),
    )


def _fleets(cells: Sequence[Cell]) -> str:
    """Describes the fleets of cells: ``3 to 12 servers (i4i.large), 2 drivers (c7g.large)``."""
    roles: dict[str, tuple[set[int], dict[str, None]]] = {}
    for cell in cells:
        for fleet in cell.fleets:
            counts, types = roles.setdefault(fleet.role, (set(), {}))
            counts.add(fleet.nodes)
            types[fleet.instance_type] = None
    return ", ".join(f"{_range(counts, role)} ({', '.join(types)})" for role, (counts, types) in roles.items())


def _range(counts: set[int], role: str) -> str:
    most = count_of_role(max(counts), role)
    return most if len(counts) == 1 else f"{min(counts)} to {most}"


def _other_differences(sides: Sides, mine: Sequence[Cell], other: Sequence[Cell]) -> Iterator[str]:
    """Yields a warning for each difference besides what the sides compare: images, kernels, agents, instance types,
    zones and purchases. What a side does not know is not compared.

    Args:
        mine, other: the cells that count.
    """
    reports = sides.a.report, sides.b.report
    for subject in _VERSIONS:
        yield from _differs(subject, *({v.version for v in report.versions if v.what == subject} for report in reports))
    compared: set[str] = set()
    if sides.source in ("cell", "round"):
        compared = {*reports[0].baseline, *(key for cell in (*mine, *other) for key in cell.values)}
    ours, theirs = _fleets_by_role(mine), _fleets_by_role(other)
    for role in ours:
        for subject, key, values in _PLACES:
            if f"fleets.{role}.{key}" not in compared:
                yield from _differs(
                    f"{subject} of {role}",
                    *({one for fleet in side for one in values(fleet)} for side in (ours[role], theirs.get(role, []))),
                )


def _fleets_by_role(cells: Sequence[Cell]) -> dict[str, list[Fleet]]:
    by_role: dict[str, list[Fleet]] = {}
    for fleet in (fleet for cell in cells for fleet in cell.fleets):
        by_role.setdefault(fleet.role, []).append(fleet)
    return by_role


def _differs(subject: str, a: set[str], b: set[str]) -> Iterator[str]:
    if a and b and a != b:
        sides = f"{_named_values(a)} in A, {_named_values(b)} in B"
        yield f"the {subject} differs: {sides}; a difference of the results may come from it"


def _named_values(values: set[str]) -> str:
    named = sorted(values)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more
