"""Compares two reports, or two variants of one. Pure: the same documents give the same comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from cli.bench import compared_searches
from cli.bench import pricing as prices
from cli.bench.compared_row import NARROW, named, row_of
from cli.bench.pairing import Cells, Chosen, IncomparableError, cells_of, example, is_one_run, matched, same, variants
from cli.bench.pricing import AS_BOUGHT, Pricing
from troop.bench.records.record import CellStatus
from troop.measure.operations import TOTAL
from troop.report.comparison import Basis, Comparison, Equal, Row, Side
from troop.report.document import Cell, Fleet, Report
from troop.shared.formatting import count_of_role

UNSURE = (
    "the noise is unknown, as with one repetition on a side: what a side needs at equal throughput, and its cost, may "
    "be chance. Before money depends on the result, measure both sides as variants of one run, with repetitions"
)

WIDE = (
    f"a difference is within the noise, and its interval exceeds {NARROW[0]:g} to {NARROW[1]:g}: what a side "
    "needs at equal throughput, and its cost, may be chance. Run more repetitions"
)


_VERSIONS = ("image", "kernel", "agent")
_PLACES: tuple[tuple[str, Callable[[Fleet], Iterable[str]]], ...] = (
    ("instance type", lambda fleet: [fleet.instance_type]),
    ("zone", lambda fleet: fleet.zones),
)

_MOST_NAMED = 4
"""The most values to name of a side."""


def compare(
    a: Chosen,
    b: Chosen,
    *,
    now: datetime,
    version: str,
    confidence: float = 0.95,
    fail_below: float | None = None,
    pricing: Pricing = AS_BOUGHT,
) -> Comparison:
    """Compares two sides by variant and operation.

    Args:
        now: the time of the comparison.
        version: the version of Troop that makes it.
        confidence: the confidence level of the intervals, between 0 and 1.
        fail_below: rows with a lower ratio are regressions, unless the difference is within the noise. Points of a
            search are none: the answers of searches count in their place.
        pricing: the roles and prices of the cost.

    Raises:
        BadPriceError: the roles or types of ``pricing`` do not exist.
        IncomparableError: a side lacks the variant or has no succeeded cell, both sides are the same, or they share
            no operation.
    """
    # First, because it refuses an unknown variant, for which ``same`` would have no meaning.
    left_out = [*_not_counted(a, "A"), *_not_counted(b, "B")]
    if same(a, b):
        raise IncomparableError(
            f"{a.name} and {b.name} are the same: name two runs, or two variants of one as RUN:VARIANT, such as "
            f"{example(a.report)}"
        )
    a, b = compared_searches.with_answers(a), compared_searches.with_answers(b)
    answered = compared_searches.answer_labels(a, b)
    mine, other = variants(a), variants(b)
    warnings = [*left_out, *_different(a.report, b.report), *_other_differences(a.report, b.report, mine, other)]
    cells = [[cell for one in side.values() for cell in one.cells] for side in (mine, other)]
    prices.refuse_unknown(pricing, *cells)
    for name, each in zip("AB", cells, strict=True):
        warnings += pricing.remarks(name, each)
    pairs, unmatched = matched(mine, other)
    rows: list[Row] = []
    lost: list[str] = []
    for label, (ours, theirs) in pairs:
        answers = compared_searches.compare(label, ours, theirs, confidence, fail_below)
        rows += answers.rows
        lost += answers.lost
        warnings += answers.warnings
        for operation in ours.operations():
            is_searched = operation[0] in answers.phases
            if operation[-1] == TOTAL and ours.parts(operation) != theirs.parts(operation):
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
            factors = compared_searches.factors(operation, ours, theirs)
            row, more = row_of(a, b, label, operation, ours, theirs, confidence, least, pricing, factors)
            rows += [one.model_copy(update={"is_answer": operation[:2] in answered}) for one in row]
            warnings += more
        unmatched += [
            f"only B has {named(operation, label)}"
            for operation in theirs.operations()
            if operation not in ours.operations() and operation[-1] != TOTAL and operation[0] not in answers.phases
        ]
    if not rows:
        explanation = "; ".join([*unmatched, *warnings]) or "neither side has measured an operation"
        raise IncomparableError(f"nothing of {a.name} can be compared with anything of {b.name}: {explanation}")
    if any(row.equal and row.exceeds_noise is None for row in rows):
        warnings.append(UNSURE)
    if any(row.equal and row.exceeds_noise is False and row.equal.doubt(row) for row in rows):
        warnings.append(WIDE)
    if a.report.money.currency != b.report.money.currency:
        rows = [row.model_copy(update={"equal": _without_ratio(row.equal), "affordable": None}) for row in rows]
    return Comparison(
        created_at=now,
        created_by=version,
        confidence=confidence,
        fail_below=fail_below,
        currency=a.report.money.currency,
        basis=_basis(pricing, *cells),
        a=_side(a, mine),
        b=_side(b, other),
        apart=_apart(a, b),
        rows=rows,
        lost=lost,
        unmatched=unmatched,
        warnings=warnings,
    )


# Warnings


def _not_counted(side: Chosen, name: str) -> Iterator[str]:
    for cell in cells_of(side):
        if cell.status != CellStatus.SUCCEEDED:
            label = f" ({cell.label})" if cell.label else ""
            yield f"{cell.cell}{label} of {name} is {cell.status} and does not count"


def _different(a: Report, b: Report) -> Iterator[str]:
    if a.run.name != b.run.name:
        yield f"A is a run of the benchmark {a.run.name}, and B of {b.run.name}: they may measure different things"
    if a.run.size != b.run.size:
        yield f"A was run in the size {a.run.size or 'of the file'}, and B in the size {b.run.size or 'of the file'}"
    if a.money.currency != b.money.currency:
        yield f"A's costs are in {a.money.currency} and B's in {b.money.currency}, so costs have no ratio"


def _without_ratio(equal: Equal | None) -> Equal | None:
    return equal and equal.model_copy(update={"hourly_ratio": None})


# The sides


def _apart(a: Chosen, b: Chosen) -> Literal["runs", "days"] | None:
    if is_one_run(a, b):
        return None
    days = {run.at.astimezone(UTC).date() for run in (a.report.run, b.report.run) if run.at}
    return "days" if len(days) > 1 else "runs"


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


def _side(side: Chosen, counted: Mapping[str, Cells]) -> Side:
    cells = [cell for one in counted.values() for cell in one.cells]
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


def _other_differences(a: Report, b: Report, mine: Mapping[str, Cells], other: Mapping[str, Cells]) -> Iterator[str]:
    """Yields a warning for each difference besides what the sides compare: images, kernels, agents, instance types and
    zones. What a side does not know is not compared.

    Args:
        mine, other: the cells that count, by variant.
    """
    for subject in _VERSIONS:
        yield from _differs(subject, *({v.version for v in report.versions if v.what == subject} for report in (a, b)))
    ours, theirs = _fleets_by_role(mine), _fleets_by_role(other)
    for role in ours:
        for subject, values in _PLACES:
            sides = (ours[role], theirs.get(role, []))
            yield from _differs(
                f"{subject} of {role}", *({one for fleet in side for one in values(fleet)} for side in sides)
            )


def _fleets_by_role(variants: Mapping[str, Cells]) -> dict[str, list[Fleet]]:
    by_role: dict[str, list[Fleet]] = {}
    for fleet in (fleet for cells in variants.values() for cell in cells.cells for fleet in cell.fleets):
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
