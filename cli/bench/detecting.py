"""Says from recorded runs which changes a comparison with a baseline detects, and at which cost. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from troop.bench.definition.baseline import on_same_nodes, without_baseline
from troop.bench.definition.definition import Point, is_load, rates
from troop.bench.definition.plan import Plan, Variant
from troop.bench.records.line import FIGURES, Figures, Line
from troop.measure.operations import TOTAL
from troop.shared import formatting
from troop.shared.formatting import counted
from troop.statistics import power as powers

CHANGES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The relative changes of which a sentence speaks."""

SHOWN = (0.05, 0.03, 0.01)
"""The changes for which a table has the number of pairs."""

OFTEN = 0.8
"""The share of comparisons that must find a change, for it to count as detected."""

RATE, *_ = FIGURES
SPREADS = {RATE: "rate", "mean_ms": "mean", "p50_ms": "p50", "p99_ms": "p99"}
"""The figures of which a spread is shown, with their short names."""

MOST_OF_100 = 99
"""A share is known to a percent at best, so no change counts as found in 100 of 100."""

Key = tuple[str, str, str, str, str]


class Source(StrEnum):
    """What a spread was measured with."""

    CELL = "cell"
    ROUND = "round"
    ALONE = "alone"

    @property
    def noun(self) -> str:
        return "cell" if self is Source.ALONE else "pair"

    @property
    def where(self) -> str:
        return {
            Source.CELL: "on the same nodes",
            Source.ROUND: "on different nodes",
            Source.ALONE: "on different nodes, without a baseline",
        }[self]


@dataclass(frozen=True)
class Noise:
    """How much the pairs of a measurement differ from each other, in the runs on record.

    Attributes:
        size: of the file; None for none.
        key: as of :class:`troop.bench.records.line.Figures`.
        source: what the spreads are from.
        is_bound: whether pairs of the design differ less: on the same nodes they share the nodes, which cells do not.
        runs, values: how many runs with how many pairs (or cells) the spread is from.
        spreads: the standard deviation of a pair's log ratio by figure; None with too few pairs.
        figure: the one of which changes are to be detected.
    """

    size: str | None
    key: Key
    source: Source
    is_bound: bool
    runs: int
    values: int
    spreads: Mapping[str, float | None]
    figure: str = RATE

    @property
    def measurement(self) -> list[str]:
        """Size and key, without empty parts."""
        return [part for part in (self.size, *self.key) if part]

    @property
    def name(self) -> str:
        return " · ".join(self.measurement)

    @property
    def spread(self) -> float | None:
        """The spread of the figure."""
        return self.spreads[self.figure]

    @property
    def origin(self) -> str:
        """What the spread is from: ``12 pairs on the same nodes in 2 runs``."""
        return f"{counted(self.values, self.source.noun)} {self.source.where} in {counted(self.runs, 'run')}"

    def needed(self, change: float) -> int | None:
        """Returns how many pairs detect a change of the figure; None if it is unknown, or if 50 are not enough."""
        return None if self.spread is None else _needed(change, self.spread)


class Figure(StrEnum):
    """A figure of which changes are to be detected."""

    RATE = "rate"
    MEAN = "mean"
    P50 = "p50"
    P99 = "p99"

    @property
    def field(self) -> str:
        """Its name in a line."""
        return next(name for name, short in SPREADS.items() if short == self)


def figure_of(plan: Plan) -> str:
    """Returns the figure that a file's comparison is about: the rate, or where the file sets the rate, the p99."""
    settings = [
        rates(phase, {**one.benchmark.parameters, **point.parameters})
        for one in plan.cells
        for phase in one.benchmark.phases
        if phase.is_measured and not phase.faults
        for point in phase.points or (Point(),)
    ]
    return Figure.P99.field if settings and all(settings) else RATE


@dataclass(frozen=True)
class Design:
    """How runs compare with a baseline.

    Attributes:
        pairs: of each measurement.
        on_same_nodes: whether both sides of a pair share their nodes.
        unit: what one more pair is: ``cell`` or ``round``.
        size: of the file; None for none.
        cost: of a run; None if unknown.
        run: the recorded run with this design; "" for that of a file.
    """

    pairs: int
    on_same_nodes: bool
    unit: str
    size: str | None = None
    cost: float | None = None
    run: str = ""

    def cost_of(self, pairs: int) -> float | None:
        """Returns the cost of a run with another number of pairs."""
        return None if self.cost is None else self.cost / self.pairs * pairs


@dataclass(frozen=True)
class Finding:
    """What a design detects.

    Attributes:
        change: the smallest of :data:`CHANGES` that it detects; None for none.
        share: of the comparisons that find this change.
        finer: a smaller change; None if there is none.
        needed: pairs that detect it; None if 50 are not enough.
    """

    change: float | None
    share: float
    finer: float | None
    needed: int | None


def design_of(plan: Plan) -> Design:
    """Returns the design of a file; that of a file without a baseline is on the same nodes."""
    pairs = max(one.variant.repetition for one in plan.cells)
    same = not plan.has_pairs
    return Design(pairs, same, "cell" if same and len(plan.cells) == pairs else "round", size_of(plan))


def plan_filter(plan: Plan) -> Callable[[Line, Figures], bool]:
    """Returns a test of whether a recorded measurement is one of a plan."""
    variants = {
        Variant(one.variant.scale, without_baseline(plan.baseline, one.variant.values)).label for one in plan.cells
    }
    phases = {phase.name for one in plan.cells for phase in one.benchmark.phases}
    size = size_of(plan)
    return lambda line, its: line.size == size and its.variant in variants and its.phase in phases


def size_of(plan: Plan) -> str | None:
    return next((one.benchmark.size for one in plan.cells), None)


def last_design(lines: Sequence[Line]) -> Design | None:
    """Returns the design of the newest run that has a baseline and figures; of one without a baseline, if none has.

    Args:
        lines: newest first.
    """
    for line in sorted((one for one in lines if one.figures), key=lambda one: not one.baseline):
        pairs = max(len(its.values) for its in line.figures)
        if pairs:
            same = not line.baseline or on_same_nodes(line.baseline)
            unit = "cell" if same and len({its.variant for its in line.figures}) == 1 else "round"
            cost = None if line.cost is None else float(line.cost)
            return Design(pairs, same, unit, line.size, cost, line.run)
    return None


@dataclass
class _Collected:
    """The values of a measurement from one source: of each run, by figure."""

    runs: list[dict[str, list[float]]] = field(default_factory=list)

    def spread(self, figure: str, factor: float) -> float | None:
        known = powers.spread(values[figure] for values in self.runs)
        return None if known is None else known * factor


def noises(
    lines: Iterable[Line],
    same_nodes: bool,
    figure: str = RATE,
    keep: Callable[[Line, Figures], bool] = lambda _line, _its: True,
) -> list[Noise]:
    """Computes the noise of each measurement from the best source on record: pairs as the design has them. Without
    enough of these, pairs or cells on different nodes give a bound.

    Args:
        same_nodes: whether the design's pairs are on the same nodes.
        figure: one of :data:`SPREADS`.
        keep: chooses the measurements that count.
    """
    collected: dict[tuple[str | None, Key], dict[Source, _Collected]] = {}
    for line in lines:
        for its in line.figures:
            if keep(line, its) and its.values:
                place = collected.setdefault((line.size, its.key), {})
                place.setdefault(_source(line, its), _Collected()).runs.append(_values(its))
    allowed = [Source.CELL, Source.ROUND, Source.ALONE] if same_nodes else [Source.ROUND, Source.ALONE]
    return [
        _best(_noise(size, key, figure, one, sources[one], one is not allowed[0]) for one in allowed if one in sources)
        for (size, key), sources in sorted(collected.items(), key=lambda one: (one[0][0] or "", one[0][1]))
        if any(source in sources for source in allowed)
    ]


def _source(line: Line, its: Figures) -> Source:
    if not its.baseline:
        return Source.ALONE
    return Source.CELL if on_same_nodes(line.baseline) else Source.ROUND


def _values(its: Figures) -> dict[str, list[float]]:
    """Returns by figure the ratios to the baseline; without a baseline the values themselves."""
    sides = [(own, base) for own, base in zip(its.values, its.baseline or its.values, strict=True)]
    values: dict[str, list[float]] = {}
    for figure in SPREADS:
        known = [(getattr(own, figure), getattr(base, figure)) for own, base in sides]
        values[figure] = [own / base if its.baseline else own for own, base in known if own and base]
    return values


def _best(from_best: Iterable[Noise]) -> Noise:
    every = list(from_best)
    return next((one for one in every if one.spread is not None), every[0])


def _noise(size: str | None, key: Key, figure: str, source: Source, collected: _Collected, is_bound: bool) -> Noise:
    factor = math.sqrt(2) if source is Source.ALONE else 1.0  # a pair has the noise of two cells
    runs = [values[figure] for values in collected.runs if len(values[figure]) > 1]  # one alone has no spread
    spreads = {each: collected.spread(each, factor) for each in SPREADS}
    return Noise(size, key, source, is_bound, len(runs), sum(map(len, runs)), spreads, figure)


def deciding(every: Collection[Noise]) -> Noise | None:
    """Returns the noisiest of the measurements that count for a verdict; None if no noise is known.

    These are those of nodes that generate load, as others count operations several times, and of all their operations
    together where there are several.
    """
    known = [one for one in every if one.spread is not None]
    known = [one for one in known if is_load(one.key[3], None)] or known
    totals = {(one.size, one.key[:4]) for one in known if one.key[4] == TOTAL}
    whole = (one for one in known if one.key[4] == TOTAL or (one.size, one.key[:4]) not in totals)
    return max(whole, key=lambda one: one.spread or 0.0, default=None)


def lacking(lines: Iterable[Line], design: Design, every: Collection[Noise]) -> str:
    """Says that too few pairs are on record for a spread, how many are, and which other sizes have some."""
    its = [one for one in every if one.size == design.size and one.source is not Source.ALONE]
    pairs = max((one.values for one in its), default=0)
    there = f"{pairs:,} of {powers.LEAST_DEGREES + 1}" if pairs else "none"
    sizes = dict.fromkeys(one.size for one in lines if one.size != design.size and one.baseline and one.figures)
    others = [f"`--size {shlex.quote(size)}`" if size else "the file without a size" for size in sizes]
    more = f", but there are some of {formatting.sentence(others)}" if others else ""
    return f"too few pairs are on record: {there}{more}"


def finding(spread: float, pairs: int) -> Finding:
    """Says which change so many pairs detect, and how many detect a finer one.

    Args:
        spread: the standard deviation of a pair's log ratio.
    """
    for place, change in enumerate(CHANGES):
        share = powers.power(change, pairs, spread)
        if share >= OFTEN:
            finer = CHANGES[place - 1] if place else None
            return Finding(change, share, finer, None if finer is None else powers.needed(finer, spread, OFTEN))
    for change in CHANGES[CHANGES.index(SHOWN[0]) :]:
        if needed := powers.needed(change, spread, OFTEN):
            return Finding(None, 0.0, change, needed)
    return Finding(None, 0.0, CHANGES[-1], None)


def sentence(noise: Noise, design: Design, money: Callable[[float], str]) -> str:
    """Says what a design detects at which cost: ``3 cells find 5 % in 81 of 100, $1.20; for 3 % use 5, $2.00``, and
    from which measurement it is known. "" if the noise is unknown.

    Args:
        money: formats an amount.
    """
    if noise.spread is None:
        return ""
    its, pairs = finding(noise.spread, design.pairs), counted(design.pairs, design.unit)
    finds, least = "finds" if design.pairs == 1 else "find", "at least " if noise.is_bound else ""
    if its.change is not None:
        hits = min(MOST_OF_100, math.floor(100 * its.share + 0.5))
        text = f"{pairs} {finds} {percent(its.change)} in {least}{hits} of 100{_cost(design, design.pairs, money)}"
    elif design.pairs == 1:
        text = f"{pairs} {finds} nothing: one pair has no interval{_cost(design, 1, money)}"
    else:
        text = f"{pairs} {finds} no change of up to {percent(CHANGES[-1])}{_cost(design, design.pairs, money)}"
    if its.finer is not None:
        most = "at most " if noise.is_bound else ""
        use = "more than 50" if its.needed is None else f"use {most}{its.needed}{_cost(design, its.needed, money)}"
        text += f"; for {percent(its.finer)} {use}"
    return f"{text} ({SPREADS[noise.figure]} of {noise.name}; from {noise.origin})"


def _cost(design: Design, pairs: int, money: Callable[[float], str]) -> str:
    cost = design.cost_of(pairs)
    return "" if cost is None else f", {money(cost)}"


def percent(change: float) -> str:
    """Formats a round change: ``5 %``."""
    return f"{100 * change:g} %"


def document(every: Sequence[Noise], design: Design | None, currency: str) -> dict[str, Any]:
    """Returns design, noises and findings as JSON values. Changes, shares and spreads are fractions."""
    decider = deciding([one for one in every if design and one.size == design.size])
    result = finding(decider.spread, design.pairs) if design and decider and decider.spread is not None else None
    return {
        "design": design and {**vars(design), "currency": currency},
        "detects": result
        and decider
        and design
        and {
            "measurement": decider.measurement,
            "figure": decider.figure,
            **vars(result),
            "cost_of_finer": None if result.needed is None else design.cost_of(result.needed),
        },
        "measurements": [
            {
                "measurement": one.measurement,
                "source": one.source.value,
                "is_bound": one.is_bound,
                "runs": one.runs,
                "values": one.values,
                "spreads": dict(one.spreads),
                "needed": {percent(change): one.needed(change) for change in SHOWN},
            }
            for one in every
        ],
    }


def _needed(change: float, spread: float) -> int | None:
    """Returns the pairs for a spread that is rounded up to two digits: many measurements then share an answer, which
    takes milliseconds.
    """
    if spread == 0:
        return powers.needed(change, 0.0, OFTEN)
    unit = 10.0 ** (math.floor(math.log10(spread)) - 1)
    return _needed_of_rounded(change, round(math.ceil(round(spread / unit, 9)) * unit, 12))


@lru_cache(maxsize=1024)
def _needed_of_rounded(change: float, spread: float) -> int | None:
    return powers.needed(change, spread, OFTEN)
