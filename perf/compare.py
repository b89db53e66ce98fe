"""Counts how often comparisons of simulated benchmarks are wrong, and how often they find a true change of 3 %.

    python -m perf.compare [--comparisons 5000] [--workers 2]

A comparison without any true difference (A/A) is wrong if its interval of 95 % excludes 1. A true change of 3 % is
found if the interval excludes 1. "foreseen" is what `troop.statistics.power` says of it, from the spread of all A/A
pairs. Each share has its own interval of 95 % (Wilson's). The seeds are fixed, so each run has the same numbers.

The logarithm of a rate is a sum, in percent: what the host of a cell adds (deviation 2), drift (deviation 2, with a
correlation of 0.9 from cell to cell, and 0.97 from point to point), what a day adds to a run (deviation 1.5), and the
error of a measurement (deviation 1). The noise is normal; or 3 % of hosts are slower by 8; or hosts and errors have
heavy tails, those of Student's t with 3 degrees of freedom; or both. A cell takes each node 4 minutes, and each point
6.5.

"Before" is Welch's interval, which Troop had before there was a baseline: over repetitions on different nodes, in
rounds of one run, or in two runs on two days. Its node time for a change of 3 % is that of the fewest repetitions in
rounds that find it in 80 % of comparisons.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from random import Random

from troop.statistics.pairs import paired, ratio_of_ratios
from troop.statistics.power import power, spread

SEED = 20261127
"""Fixed before the first run."""

CHANGE = 0.03
WRONG, HITS, TIME = 0.07, 0.90, 0.35
"""The goals: the most wrong A/A comparisons, the fewest found changes, and the most of the node time before."""
HITS_BEFORE = 0.80

CELL, POINT = 4.0, 6.5
"""Minutes of a node: its boot and removal; the warm-up, measured time and margin of a point."""

Sides = tuple[list[float], list[float]]


@dataclass(frozen=True)
class Noise:
    """The noise of rates, in percent.

    Attributes:
        slow: the share of hosts that are slower by 8.
        heavy: whether hosts and errors have Student's t with 3 degrees of freedom.
        error: the deviation of a measurement's error.
        favour: the deviation of what a host adds to the candidate alone.
        second: what the second point of a cell has less, because the first one leaves something behind.
        near: the correlation of drift between two points of a cell.
    """

    slow: float = 0.0
    heavy: bool = False
    error: float = 1.0
    favour: float = 0.0
    second: float = 0.0
    near: float = 0.97


NORMAL, SLOW, HEAVY = Noise(), Noise(slow=0.03), Noise(heavy=True)
NOISES = {
    "normal": NORMAL,
    "slow hosts": SLOW,
    "heavy tails": HEAVY,
    "slow hosts, heavy tails": replace(HEAVY, slow=0.03),
}

SECOND = "second point slower by 2"
WEAKER = {
    "drift of 1 between two points": replace(SLOW, near=0.87),
    "hosts favour a version by 1": replace(SLOW, favour=1.0),
    "hosts favour a version by 2": replace(SLOW, favour=2.0),
    "error of 2": replace(SLOW, error=2.0),
    SECOND: replace(SLOW, second=2.0),
}
WEAKER_PAIRS = (5, 6, 8, 12)


@dataclass(frozen=True)
class Design:
    """A way to compare.

    Attributes:
        measure: simulates the rates of A and B, from dice, noise, pairs and a change in percent.
        judge: whether the rates of A and B differ.
        minutes: node-minutes of a pair.
    """

    name: str
    measure: Callable[[Random, Noise, int, float], Sides]
    judge: Callable[[Sequence[float], Sequence[float]], bool]
    minutes: float


@dataclass(frozen=True)
class Task:
    """Comparisons of one kind: without a change, and as many with one."""

    noise: str
    design: Design
    pairs: int
    comparisons: int


@dataclass(frozen=True)
class Row:
    """What came of a task.

    Attributes:
        wrong: A/A comparisons that exceed the noise.
        hits: comparisons that find the change.
        spread: that of the pairs without a change; None for a design without pairs.
    """

    task: Task
    wrong: int
    hits: int
    spread: float | None

    @property
    def minutes(self) -> float:
        return self.task.pairs * self.task.design.minutes

    def line(self, before: float | None) -> str:
        """Formats the row, with its part of the node time before."""
        task, most = self.task, self.task.comparisons
        part = f"{100 * self.minutes / before:5.1f}" if before else ""
        foreseen = "" if self.spread is None else f"{100 * power(CHANGE, task.pairs, self.spread):.1f}"
        shares = f"{percent(self.wrong, most):>20} {percent(self.hits, most):>20}"
        return f"{task.design.name:36} {task.pairs:>5} {self.minutes:>8.0f} {part:>8} {shares} {foreseen:>8}"


def deviate(dice: Random, heavy: bool, deviation: float) -> float:
    value = dice.gauss(0, deviation)
    # Student's t has a variance of 3, so this has the same deviation as the normal one.
    return value / math.sqrt(dice.gammavariate(1.5, 2)) if heavy else value


def host(dice: Random, noise: Noise) -> float:
    return deviate(dice, noise.heavy, 2) - (8 if dice.random() < noise.slow else 0)


def drifted(dice: Random, before: float, correlation: float) -> float:
    return correlation * before + dice.gauss(0, 2 * math.sqrt(1 - correlation**2))


def rates(percents: Sequence[float]) -> list[float]:
    return [1000 * math.exp(percent / 100) for percent in percents]


def candidate_first(dice: Random, pairs: int, order: str) -> list[bool]:
    """Says of each pair whether the candidate is first: balanced by a key, by chance, or never."""
    key = dice.random() < 0.5
    if order == "balanced":
        return [key ^ (pair % 2 == 1) for pair in range(pairs)]
    return [order == "chance" and dice.random() < 0.5 for _ in range(pairs)]


def same_nodes(dice: Random, noise: Noise, pairs: int, change: float, order: str = "balanced") -> Sides:
    """Measures baseline and candidate one after the other in each cell."""
    day, drift = dice.gauss(0, 1.5), dice.gauss(0, 2)
    baseline, candidate = [], []
    for swapped in candidate_first(dice, pairs, order):
        later = drifted(dice, drift, noise.near)
        node = day + host(dice, noise)
        first = node + drift + deviate(dice, noise.heavy, noise.error)
        second = node + later + deviate(dice, noise.heavy, noise.error) - noise.second
        if swapped:
            first, second = second, first
        baseline.append(first)
        candidate.append(second + change + dice.gauss(0, noise.favour))
        drift = drifted(dice, later, 0.9)
    return rates(baseline), rates(candidate)


def by_chance(dice: Random, noise: Noise, pairs: int, change: float) -> Sides:
    return same_nodes(dice, noise, pairs, change, "chance")


def baseline_first(dice: Random, noise: Noise, pairs: int, change: float) -> Sides:
    return same_nodes(dice, noise, pairs, change, "never")


def rounds(dice: Random, noise: Noise, pairs: int, change: float) -> Sides:
    """Measures both in each round of one run, each on nodes of its own, one after the other."""
    day, drift = dice.gauss(0, 1.5), dice.gauss(0, 2)
    sides: Sides = ([], [])
    for swapped in candidate_first(dice, pairs, "balanced"):
        for side in (1, 0) if swapped else (0, 1):
            error = deviate(dice, noise.heavy, noise.error)
            sides[side].append(day + drift + host(dice, noise) + error + side * change)
            drift = drifted(dice, drift, 0.9)
    return rates(sides[0]), rates(sides[1])


def two_days(dice: Random, noise: Noise, pairs: int, change: float) -> Sides:
    """Measures each in a run of its own, on another day and on nodes of its own."""
    sides: Sides = ([], [])
    for side in (0, 1):
        day, drift = dice.gauss(0, 1.5), dice.gauss(0, 2)
        for _ in range(pairs):
            error = deviate(dice, noise.heavy, noise.error)
            sides[side].append(day + drift + host(dice, noise) + error + side * change)
            drift = drifted(dice, drift, 0.9)
    return rates(sides[0]), rates(sides[1])


def two_ratios(dice: Random, noise: Noise, pairs: int, change: float) -> Sides:
    """Measures each in a run of its own with the same baseline on the same nodes, and returns ratios to it."""
    return ratios(*same_nodes(dice, noise, pairs, 0)), ratios(*same_nodes(dice, noise, pairs, change))


def ratios(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [late / early for early, late in zip(a, b, strict=True)]


def pairs_differ(a: Sequence[float], b: Sequence[float]) -> bool:
    return paired(a, b).exceeds_noise is True


def ratios_differ(a: Sequence[float], b: Sequence[float]) -> bool:
    return ratio_of_ratios(a, b).exceeds_noise is True


def welch_differs(a: Sequence[float], b: Sequence[float]) -> bool:
    """Compares logarithms by Welch's interval, as Troop did before."""
    means, parts = [], []
    for side in (a, b):
        logs = [math.log(rate) for rate in side]
        mean = math.fsum(logs) / len(logs)
        means.append(mean)
        parts.append(math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1) / len(logs))
    degrees = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    return abs(means[1] - means[0]) > student(round(degrees, 2)) * math.sqrt(sum(parts))


@cache
def student(degrees: float) -> float:
    """Returns Student's t for an interval of 95 %.

    With ``t = sqrt(degrees) * tan(x)``, the density of ``x`` is proportional to ``cos(x) ** (degrees - 1)``.
    """
    steps = 2000
    density = [math.cos(math.pi / 2 * step / steps) ** (degrees - 1) for step in range(steps + 1)]
    areas = [(left + right) / 2 for left, right in pairwise(density)]
    inside = 0.95 * math.fsum(areas)
    step = 0
    while inside > areas[step]:
        inside -= areas[step]
        step += 1
    return math.sqrt(degrees) * math.tan(math.pi / 2 * (step + inside / areas[step]) / steps)


OWN, SAME = 2 * (CELL + POINT), CELL + 2 * POINT
BALANCED = Design("same nodes, paired", same_nodes, pairs_differ, SAME)
CHANCE = Design("same nodes, order by chance", by_chance, pairs_differ, SAME)
FIRST = Design("same nodes, baseline always first", baseline_first, pairs_differ, SAME)
ROUNDS = Design("other nodes, paired by round", rounds, pairs_differ, OWN)
RATIOS = Design("two days, ratio of two ratios", two_ratios, ratios_differ, 2 * SAME)
BEFORE = Design("before: one run in rounds, Welch", rounds, welch_differs, OWN)
DAYS = Design("before: two runs on two days, Welch", two_days, welch_differs, OWN)

DESIGNS = (BALANCED, ROUNDS, RATIOS, BEFORE, DAYS)
SHOWN = [
    *((BALANCED, pairs) for pairs in (3, 4, 5, 6, 8)),
    *((ROUNDS, pairs) for pairs in (6, 12)),
    *((RATIOS, pairs) for pairs in (5, 6, 8)),
    *((DAYS, pairs) for pairs in (3, 5, 10)),
    *((BEFORE, pairs) for pairs in (3, 5, 10)),
]
MANY = range(11, 26)
"""Repetitions of which one may be the fewest that find the change as before."""


def simulate(task: Task) -> Row:
    """Makes the comparisons of a task, from a seed of its own."""
    noise = {**NOISES, **WEAKER}[task.noise]
    dice = Random(f"{SEED} {task.noise} {task.design.name} {task.pairs}")
    exceeding, pairs = [0, 0], []
    for index, change in enumerate((0.0, 100 * math.log1p(CHANGE))):
        for _ in range(task.comparisons):
            a, b = task.design.measure(dice, noise, task.pairs, change)
            exceeding[index] += task.design.judge(a, b)
            if index == 0 and task.design.judge is pairs_differ:
                pairs.append(ratios(a, b))
    return Row(task, exceeding[0], exceeding[1], spread(pairs))


def tasks(comparisons: int) -> Iterator[Task]:
    for noise in NOISES:
        for design, pairs in (*SHOWN, *((BEFORE, pairs) for pairs in MANY)):
            yield Task(noise, design, pairs, comparisons)
    for noise in WEAKER:
        for design in (BALANCED, CHANCE, FIRST) if noise == SECOND else (BALANCED,):
            for pairs in WEAKER_PAIRS:
                yield Task(noise, design, pairs, comparisons)


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Returns Wilson's interval of 95 % of a share."""
    z, share = 1.96, hits / trials
    middle = share + z * z / 2 / trials
    half = z * math.sqrt(share * (1 - share) / trials + z * z / 4 / trials**2)
    return max(0.0, middle - half) / (1 + z * z / trials), (middle + half) / (1 + z * z / trials)


def percent(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{100 * hits / trials:5.1f} ({100 * low:4.1f}-{100 * high:5.1f})"


def fewest(rows: Sequence[Row], design: Design, share: float) -> Row | None:
    """Returns the row of a design with the fewest pairs that find the change in a share of comparisons."""
    return next((row for row in rows if row.task.design == design and row.hits >= share * row.task.comparisons), None)


def show(title: str, rows: Sequence[Row], before: float | None = None) -> None:
    heads = ("design", "pairs", "node-min", "% before", "A/A wrong, %", "3 % found, %", "foreseen")
    print("\n{}\n{:36} {:>5} {:>8} {:>8} {:>20} {:>20} {:>8}".format(title, *heads))
    for row in rows:
        print(row.line(before))


def show_goals(rows: Sequence[Row], before: Row | None) -> None:
    """Prints whether the fewest pairs on the same nodes that find the change meet the goals."""
    best = fewest(rows, BALANCED, HITS)
    if best is None or before is None:
        print(f"goals: missed: no design finds it in {HITS:.0%}" if best is None else "goals: before, nothing finds it")
        return
    wrong, part = best.wrong / best.task.comparisons, best.minutes / before.minutes
    verdict = "met" if wrong <= WRONG and part <= TIME else "missed"
    print(f"goals: {verdict}: {best.task.pairs} pairs, {wrong:.1%} wrong (at most {WRONG:.0%}), ", end="")
    print(f"{part:.1%} of the node time of {before.task.pairs} repetitions before (at most {TIME:.0%})")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.compare", description=__doc__.splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=5000, help="A/A comparisons of each row (default 5000)")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count(), help="processes (default: cores)")
    chosen = parser.parse_args()
    began = time.monotonic()
    with multiprocessing.Pool(chosen.workers) as pool:
        rows = pool.map(simulate, tasks(chosen.comparisons), chunksize=1)
    print(f"{chosen.comparisons} comparisons for each share, seed {SEED}, {time.monotonic() - began:.0f} s")
    for noise in NOISES:
        mine = [row for row in rows if row.task.noise == noise and row.task.design in DESIGNS]
        mine.sort(key=lambda row: (DESIGNS.index(row.task.design), row.task.pairs))
        before = fewest(mine, BEFORE, HITS_BEFORE)
        shown = [
            row
            for row in mine
            if (row.task.design, row.task.pairs) in SHOWN or row in (before, fewest(mine, BEFORE, HITS))
        ]
        show(f"## {noise}", shown, before.minutes if before else None)
        show_goals(mine, before)
    for noise in WEAKER:
        show(f"## weaker: slow hosts, {noise}", [row for row in rows if row.task.noise == noise])
    return 0


if __name__ == "__main__":
    sys.exit(main())
