"""Compares one operation of one variant on two sides: rates, times, noise and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, get_args

from cli.bench import equal_throughput, timings
from cli.bench.pairing import Cells, Chosen, Compared, Sides, Values, Variant
from cli.bench.pricing import AS_BOUGHT, Pricing
from troop.bench.results.operations import cost_per_million
from troop.report.comparison import COST, Affordable, Equal, Figure, Row, Spread
from troop.report.document import Cell
from troop.report.document import Operation as Measured
from troop.report.points import Key, middle
from troop.shared.formatting import counted
from troop.statistics.pairs import Ratio

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
    sides: Sides,
    one: Variant,
    operation: Key,
    fail_below: float | None,
    pricing: Pricing = AS_BOUGHT,
    factors: tuple[float, float] = (1.0, 1.0),
) -> tuple[list[Row], list[str]]:
    """Returns a row for the operation (none if there is no ratio) and warnings about it.

    Args:
        factors: widen the interval, see :meth:`troop.statistics.pairs.Ratio.widened`.
    """
    subject = named(operation, one.label)
    measured = [side.measured(operation) for side in one.every()]
    rates = one.compared(lambda side: [(cell, its.per_second or 0.0) for cell, its in side.measured(operation)])
    if not measured[0] or not measured[1]:
        return [], [f"{subject}: no rate was measured on {'A' if not measured[0] else 'B'}"]
    if rates.ratio is None:
        zero = (
            "a repetition of A did nothing" if rates.a and min(rates.a) <= 0 else "no complete pair has rates above 0"
        )
        return [], [f"{subject}: {zero}, so there is no ratio"]
    estimate = rates.ratio.widened(*factors)
    left, right = ([its for _, its in side] for side in measured[:2])
    bases = [[its for _, its in side] for side in measured[2:]] or [[], []]
    timing, remark = timings.common([*left, *bases[0]], [*right, *bases[1]])
    warnings = [*_warnings(subject, one, operation), *([f"{subject}: {remark}"] if remark else [])]
    phase, setting, role, name = operation
    needs = _Needs(sides, one, operation, pricing, rates, estimate)
    row = Row(
        label=with_setting(one.label, setting),
        phase=phase,
        role=role,
        operation=name,
        a=spread(rates.a).model_copy(update={"geometric_mean": middle(rates.a)}),
        b=spread(rates.b).model_copy(update={"geometric_mean": middle(rates.b)}),
        **ratio_fields(estimate, fail_below),
        times=_times(one, operation, timing),
        timing=timing,
        cost=_cost(sides, one, operation, pricing),
        errors_a=errors(left),
        errors_b=errors(right),
        equal=needs.equal(),
        affordable=needs.affordable(),
    )
    return [row], warnings


def ratio_fields(estimate: Ratio, fail_below: float | None) -> dict[str, Any]:
    """Returns the fields of a row that follow from its ratio. Only a ratio with an interval is a regression, or one of
    a side that did nothing.
    """
    proven = estimate.exceeds_noise or estimate.ratio == 0
    return {
        "ratio": estimate.ratio,
        "low": estimate.low,
        "high": estimate.high,
        "exceeds_noise": estimate.exceeds_noise,
        "method": estimate.method,
        "regression": None if fail_below is None else estimate.ratio < fail_below and bool(proven),
    }


def _warnings(subject: str, one: Variant, operation: Key) -> Iterator[str]:
    for name, cells in one.references():
        if still := [cell for cell, its in cells.measured(operation) if its.per_second == 0]:
            yield f"{subject}: {name} did nothing in {counted(len(still), 'repetition')}; a pair with it is left out"
    for name, cells in zip(("A", "B", "the baseline of A", "the baseline of B"), one.every(), strict=False):
        measured = [its for _, its in cells.measured(operation)]
        if len(measured) < len(cells.cells):
            lacking = f"{len(cells.cells) - len(measured)} of {len(cells.cells)}"
            yield f"{subject}: {lacking} repetitions of {name} measured no rate"
        if (share := errors(measured)) > MANY_ERRORS:
            yield f"{subject}: {name} has {share:.3g} errors per success; rates count only successes"
    seconds = [
        {phase.measured_seconds for cell in side.cells for phase in cell.phases if phase.phase == operation[0]}
        for side in (one.ours, one.theirs)
    ]
    if max(seconds[0] | seconds[1]) > 1.1 * min(seconds[0] | seconds[1]):
        durations = " and ".join(f"{min(some):g} s" for some in seconds)
        yield f"{subject}: A and B were measured for different lengths of time ({durations})"


def errors(measured: Sequence[Measured]) -> float:
    """Returns the errors per success of all repetitions together; without a success, the number of errors."""
    count = sum(one.count for one in measured)
    return sum(sum(one.errors.values()) for one in measured) / max(count, 1)


def spread(values: Sequence[float]) -> Spread:
    return Spread(median=median(values), low=min(values), high=max(values), repetitions=len(values))


def _times(one: Variant, operation: Key, timing: timings.Common) -> list[Figure]:
    """Returns the times of both sides; without ratios if they do not mean the same."""
    compared = (
        (name, one.compared(lambda side, name=name: timings.known(side.measured(operation), name, timing)))  # type: ignore[misc]
        for name in NAMES
        if name.endswith("_ms")
    )
    return [_figure(name, its, bool(timing)) for name, its in compared if its.a or its.b]


def _cost(sides: Sides, one: Variant, operation: Key, pricing: Pricing) -> Figure | None:
    """Returns the cost of a million operations at the measured rate; None if it is unknown on a side."""

    def read(side: Cells) -> Values:
        each = [(cell, pricing.hourly(cell), its.per_second) for cell, its in side.measured(operation)]
        return [(cell, cost) for cell, hourly, rate in each if (cost := cost_per_million(hourly, rate)) is not None]

    its = one.compared(read)
    return _figure(COST, its, sides.is_one_currency) if its.a and its.b else None


def _figure(name: str, its: Compared, is_comparable: bool) -> Figure:
    ratio = its.ratio if is_comparable else None
    fields = {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high} if ratio else {"ratio": None}
    a, b = (spread(values) if values else None for values in (its.a, its.b))
    return Figure.model_validate({"name": name, "a": a, "b": b, **fields})


def _is_narrow(estimate: Ratio) -> bool:
    """Checks whether the sides are known to be equal, within :data:`NARROW`."""
    if estimate.low is None or estimate.high is None or estimate.exceeds_noise:
        return False
    return estimate.low >= NARROW[0] and estimate.high <= NARROW[1]


class _Needs:
    """The nodes and cost of both sides, from all that each side has measured with the same values.

    The steps of a side are scaled by what its pairs differ from all its repetitions, so that B does ``ratio`` times as
    much as A.
    """

    def __init__(
        self, sides: Sides, one: Variant, operation: Key, pricing: Pricing, rates: Compared, estimate: Ratio
    ) -> None:
        self._pricing, self._rates, self._estimate = pricing, [middle(rates.a), middle(rates.b)], estimate
        self._mine = self._rates[0]
        self._other = self._mine * estimate.ratio
        self._is_one_currency = sides.is_one_currency
        self._sides = [
            _steps(side, cells.cells[0], operation, pricing, rate)
            for side, cells, rate in (
                (sides.a, one.ours, self._mine),
                (sides.b, one.theirs, self._other),
            )
        ]

    def equal(self) -> Equal | None:
        """Computes what both sides need for the larger of the two throughputs; None if one cannot reach it.

        If both sides are known to be equal, each needs the nodes that it has: one more node of few would suggest a
        difference in cost that does not exist.

        The interval of the ratio of costs is that of the ratio of rates: the costs if B did as much as its bounds.
        """
        target, same, estimate = max(self._mine, self._other), _is_narrow(self._estimate), self._estimate
        left, right = (
            equal_throughput.need(steps, nodes, 0.0 if same else target, roles) for steps, nodes, roles in self._sides
        )
        if left is None or right is None:
            return None
        bounds = []
        for bound in (estimate.high, estimate.low):
            factor = bound / estimate.ratio if bound and estimate.ratio else None
            bounds.append(factor and equal_throughput.cost_ratio(self._sides, self._mine, self._other * factor, factor))
        if same:
            left, right = (
                one.model_copy(update={"scaled": "alike", "per_second": rate})
                for one, rate in zip((left, right), self._rates, strict=True)
            )
        else:
            left, right = (one.model_copy(update={"per_second": target}) for one in (left, right))
        ratio = right.hourly / left.hourly if left.hourly and right.hourly is not None else None
        left, right = (equal_throughput.with_totals(one, self._pricing.term) for one in (left, right))
        low, high = (None, None) if None in bounds or ratio is None else bounds
        if same and ratio is not None and estimate.low and estimate.high:  # the same work, without whole nodes
            low, high = ratio / estimate.high, ratio / estimate.low
        if not self._is_one_currency:
            ratio = low = high = None
        return Equal(per_second=target, a=left, b=right, hourly_ratio=ratio, hourly_low=low, hourly_high=high)

    def affordable(self) -> Affordable | None:
        """Computes what both sides do for the cost of the more expensive one; None if prices or rates are unknown."""
        own = [equal_throughput.need(steps, nodes, 0.0, roles) for steps, nodes, roles in self._sides]
        costs = [one.hourly for one in own if one and one.hourly]
        if len(costs) < len(self._sides) or not self._is_one_currency:
            return None
        hourly = max(costs)
        left, right = (equal_throughput.afford(steps, nodes, hourly, roles) for steps, nodes, roles in self._sides)
        if left is None or right is None or not left.per_second or right.per_second is None:
            return None
        left, right = (equal_throughput.with_totals(one, self._pricing.term) for one in (left, right))
        return Affordable(hourly=hourly, a=left, b=right, ratio=(right.per_second or 0) / (left.per_second or 1))


def _steps(
    side: Chosen, cell: Cell, operation: Key, pricing: Pricing, rate: float
) -> tuple[list[equal_throughput.Measured], dict[str, int], tuple[str, ...]]:
    """Returns what a side has measured, its nodes, and the roles whose cost counts.

    Args:
        rate: of the compared cells, to which all steps are scaled.
    """
    nodes = equal_throughput.nodes_of(cell)
    steps = equal_throughput.measured(side.report.cells, cell, side.by_key.get(operation, ()), pricing)
    own = next((step.per_second for step in steps if step.nodes == nodes), 0.0)
    if own:
        steps = [replace(step, per_second=step.per_second * rate / own) for step in steps]
    return steps, nodes, pricing.counted(cell)
