"""Compares one operation of one variant on two sides: rates, times, noise and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import get_args

from cli.bench import equal_throughput, noise, timings
from cli.bench.pairing import Cells, Chosen
from cli.bench.pricing import AS_BOUGHT, Pricing
from troop.report.comparison import Affordable, Equal, Figure, Row, Spread
from troop.report.document import Cell
from troop.report.document import Operation as Measured
from troop.report.points import Key, middle

NAMES = get_args(Figure.model_fields["name"].annotation)

MANY_ERRORS = 0.01
"""Errors per success above which the throughput of successes alone is misleading."""

NARROW = (0.9, 1.1)
"""Both sides count as equal if the interval is within these bounds. A wider interval that contains 1 proves nothing."""


def named(operation: Key, label: str) -> str:
    """Returns an operation in words: ``read of drivers in measure (n3, threads=4)``."""
    phase, setting, role, name = operation
    both = with_setting(label, setting)
    return f"{name} of {role} in {phase}" + (f" ({both})" if both else "")


def with_setting(label: str, setting: str) -> str:
    """Returns the label of a variant with that of a point."""
    return ", ".join(part for part in (label, setting) if part)


def row_of(
    a: Chosen,
    b: Chosen,
    label: str,
    operation: Key,
    ours: Cells,
    theirs: Cells,
    confidence: float,
    fail_below: float | None,
    pricing: Pricing = AS_BOUGHT,
    factors: tuple[float, float] = (1.0, 1.0),
) -> tuple[list[Row], list[str]]:
    """Returns a row for the operation (none if there is no ratio) and warnings about it.

    Args:
        factors: widen the interval, see :meth:`cli.bench.noise.Ratio.widened`.
    """
    subject = named(operation, label)
    left, right = ours.measured(operation), theirs.measured(operation)
    rates, others = [one.per_second or 0.0 for one in left], [one.per_second or 0.0 for one in right]
    if not rates or not others:
        return [], [f"{subject}: no rate was measured on {'A' if not rates else 'B'}"]
    if min(rates) <= 0:
        return [], [f"{subject}: a repetition of A did nothing, so there is no ratio"]
    estimate = noise.ratio(rates, others, confidence).widened(*factors)
    timing, remark = timings.common(left, right)
    warnings = [*_warnings(subject, ours, theirs, operation), *([f"{subject}: {remark}"] if remark else [])]
    regression = None
    if fail_below is not None:
        regression = estimate.ratio < fail_below and estimate.exceeds_noise is not False
    phase, setting, role, name = operation
    row = Row(
        label=with_setting(label, setting),
        phase=phase,
        role=role,
        operation=name,
        a=_spread(rates).model_copy(update={"geometric_mean": middle(rates)}),
        b=_spread(others).model_copy(update={"geometric_mean": middle(others)}),
        ratio=estimate.ratio,
        low=estimate.low,
        high=estimate.high,
        exceeds_noise=estimate.exceeds_noise,
        regression=regression,
        times=_times(left, right, timing),
        timing=timing,
        errors_a=errors(left),
        errors_b=errors(right),
        equal=_equal(
            a,
            b,
            operation,
            ours.cells[0],
            theirs.cells[0],
            middle(rates),
            middle(others),
            pricing,
            estimate,
        ),
        affordable=_affordable(a, b, operation, ours.cells[0], theirs.cells[0], pricing),
    )
    return [row], warnings


def _warnings(subject: str, ours: Cells, theirs: Cells, operation: Key) -> Iterator[str]:
    left, right = ours.measured(operation), theirs.measured(operation)
    for name, measured, cells in (("A", left, ours.cells), ("B", right, theirs.cells)):
        if len(measured) < len(cells):
            yield f"{subject}: {len(cells) - len(measured)} of {len(cells)} repetitions of {name} measured no rate"
        if (share := errors(measured)) > MANY_ERRORS:
            yield f"{subject}: {name} has {share:.3g} errors per success; rates count only successes"
    seconds = [
        {phase.measured_seconds for cell in side.cells for phase in cell.phases if phase.phase == operation[0]}
        for side in (ours, theirs)
    ]
    if max(seconds[0] | seconds[1]) > 1.1 * min(seconds[0] | seconds[1]):
        durations = " and ".join(f"{min(some):g} s" for some in seconds)
        yield f"{subject}: A and B were measured for different lengths of time ({durations})"


def errors(measured: Sequence[Measured]) -> float:
    """Returns the errors per success of all repetitions together; without a success, the number of errors."""
    count = sum(one.count for one in measured)
    return sum(sum(one.errors.values()) for one in measured) / max(count, 1)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median=median(values), low=min(values), high=max(values), repetitions=len(values))


def _times(a: Sequence[Measured], b: Sequence[Measured], timing: timings.Common) -> list[Figure]:
    """Returns the times of both sides; without ratios if they do not mean the same."""
    figures = []
    for name in NAMES:
        left, right = (timings.known(side, name, timing) for side in (a, b))
        if left or right:
            one, other = _spread(left) if left else None, _spread(right) if right else None
            ratio = other.median / one.median if one and other and one.median and timing else None
            figures.append(Figure(name=name, a=one, b=other, ratio=ratio))
    return figures


def _is_narrow(estimate: noise.Ratio) -> bool:
    """Checks whether the sides are known to be equal, within :data:`NARROW`."""
    if estimate.low is None or estimate.high is None or estimate.exceeds_noise:
        return False
    return estimate.low >= NARROW[0] and estimate.high <= NARROW[1]


def _equal(
    a: Chosen,
    b: Chosen,
    operation: Key,
    ours: Cell,
    theirs: Cell,
    mine: float,
    other: float,
    pricing: Pricing,
    estimate: noise.Ratio,
) -> Equal | None:
    """Computes what both sides need for the larger of the two throughputs; None if one cannot reach it.

    If both sides are known to be equal, each needs the nodes that it has: one more node of few would suggest a
    difference in cost that does not exist.

    The interval of the ratio of costs is that of the ratio of throughputs: the costs if B did as much as its bounds.
    """
    sides = [
        (
            equal_throughput.measured(side.report.cells, cell, operation, pricing),
            equal_throughput.nodes_of(cell),
            pricing.counted(cell),
        )
        for side, cell in ((a, ours), (b, theirs))
    ]
    target, same = max(mine, other), _is_narrow(estimate)
    left, right = (equal_throughput.need(steps, nodes, 0.0 if same else target, roles) for steps, nodes, roles in sides)
    if left is None or right is None:
        return None
    bounds = []
    for bound in (estimate.high, estimate.low):
        factor = bound / estimate.ratio if bound and estimate.ratio else None
        bounds.append(factor and equal_throughput.cost_ratio(sides, mine, other * factor, factor))
    if same:
        left, right = (
            one.model_copy(update={"scaled": "alike", "per_second": rate})
            for one, rate in ((left, mine), (right, other))
        )
    else:
        left, right = (one.model_copy(update={"per_second": target}) for one in (left, right))
    ratio = right.hourly / left.hourly if left.hourly and right.hourly is not None else None
    left, right = (equal_throughput.with_totals(one, pricing.term) for one in (left, right))
    low, high = (None, None) if None in bounds or ratio is None else bounds
    if same and ratio is not None and estimate.low and estimate.high:  # costs of the same work, without whole nodes
        low, high = ratio / estimate.high, ratio / estimate.low
    return Equal(per_second=target, a=left, b=right, hourly_ratio=ratio, hourly_low=low, hourly_high=high)


def _affordable(a: Chosen, b: Chosen, operation: Key, ours: Cell, theirs: Cell, pricing: Pricing) -> Affordable | None:
    """Computes what both sides do for the cost of the more expensive one; None if prices or rates are unknown."""
    sides = [
        (
            equal_throughput.measured(side.report.cells, cell, operation, pricing),
            equal_throughput.nodes_of(cell),
            pricing.counted(cell),
        )
        for side, cell in ((a, ours), (b, theirs))
    ]
    own = [equal_throughput.need(steps, nodes, 0.0, roles) for steps, nodes, roles in sides]
    costs = [one.hourly for one in own if one and one.hourly]
    if len(costs) < len(sides):
        return None
    hourly = max(costs)
    left, right = (equal_throughput.afford(steps, nodes, hourly, roles) for steps, nodes, roles in sides)
    if left is None or right is None or not left.per_second or right.per_second is None:
        return None
    left, right = (equal_throughput.with_totals(one, pricing.term) for one in (left, right))
    return Affordable(hourly=hourly, a=left, b=right, ratio=(right.per_second or 0) / (left.per_second or 1))
