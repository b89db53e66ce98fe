"""Measures how often the window before a planned fault is called unsteady, if it is steady and if it is not.

    python -m perf.failure [--windows 50] [--rates 20 100 500 5000]

The loads are made here, from a fixed seed: open loops of 20 to 5,000 operations a second, whose p99 is 2 to 500 ms,
with 10 to 120 seconds before the fault. Times are lognormal (p99 is ten times the median). The slowest twentieth is
drawn, also with a Pareto tail (exponent 1.5). Or there are pauses of 2 to 100 ms for a twenty-fifth of the time, at
whose end all operations end that were due in them. *Random* operations are due at random moments.

*Disturbed* loads are like those of a loaded machine. The three numbers after those that are called unsteady are of the
others: a fault that does nothing, but rate or p99 is not back in its first second and for all of the 60 s after it; or
both are, but only chance explains one of them for 10 s, so that an expectation of 10 s would be UNKNOWN.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from troop.bench.results.fault_windows import HOLD, Counted
from troop.bench.results.steadiness import is_p99_back, is_rate_back, unsteady
from troop.measure.windows import Windows

SEED = 20
"""Fixed before the first run."""
RATES, P99S, LENGTHS = (20, 100, 500, 5000), (2, 20, 100, 500), (10, 20, 30, 60, 120)
AFTER, WITHIN = 60, 10

LOGNORMAL, PARETO, PAUSES = "lognormal", "Pareto tail", "pauses"
DEVIATION = math.log(10) / 2.3263
"""Of the logarithms of times: p99 is ten times the median."""
GROUPS = 8
"""The number of different times of operations that are not drawn."""
SLOW = 0.05
"""The part of the operations whose times are drawn."""
LEAD = 3
"""Seconds of load before the first that counts."""

Slower = Callable[[float], float]
"""By how much operations that are due at a second of the window are slower than others."""


@dataclass(frozen=True)
class Shape:
    """A load: operations a second, p99 in milliseconds, what is slow, whether the moments at which operations are due
    are random, and what disturbs it.

    Attributes:
        stall: two moments, between which no operation ends.
        part: of the operations that are sent.
    """

    rate: int
    p99: int
    tail: str = LOGNORMAL
    is_random: bool = False
    slower: Slower = lambda _: 1.0
    stall: tuple[float, float] = (0.0, 0.0)
    part: float = 1.0

    def load(self, seconds: int, dice: random.Random) -> Counted:
        """Makes so many seconds, from second 0 on."""
        counts, times = [0] * (seconds + LEAD), Windows(0, 1)

        def end(due: float, took: float, number: int = 1) -> None:
            took *= self.slower(due)
            if self.stall[0] <= due + took < self.stall[1]:
                took = self.stall[1] - due
            if 0 <= (second := math.floor(due + took)) < seconds:
                counts[second] += number
                times.record(second, round(took * 1e6), number)

        pauses = list(self._pauses(seconds, dice)) if self.tail == PAUSES else []
        ordinary = [self._time(1 - (1 - SLOW) * (group + 0.5) / GROUPS) for group in range(GROUPS)]
        for second in range(-LEAD, seconds):
            sent = self.part * self.rate
            number = round(dice.gauss(sent, math.sqrt(sent))) if self.is_random else rounded(sent, dice)
            drawn = [end for end in pauses if end[1] > second and end[0] < second + 1]
            for begin, until in drawn:
                low, high = max(begin, second), min(until, second + 1)
                for _ in range(rounded(sent * (high - low), dice)):
                    due = dice.uniform(low, high)
                    end(due, until - due)
                    number -= 1
            for _ in range(0 if self.tail == PAUSES else binomial(number, SLOW, dice)):
                end(second + dice.random(), self._slow(dice))
                number -= 1
            if self.stall[0] - 1 < second < self.stall[1]:
                for _ in range(max(0, number)):
                    end(second + dice.random(), dice.choice(ordinary))
            for group in range(GROUPS if self.stall[1] <= second or self.stall[0] - 1 >= second else 0):
                if (its := (number + group) // GROUPS) > 0:
                    end(second, ordinary[group], its)
        return Counted(0, counts[:seconds], {}, times)

    def _slow(self, dice: random.Random) -> float:
        """Draws the seconds of one of the slowest."""
        part = SLOW * (1 - dice.random())
        if self.tail == PARETO:
            return float(self.p99 / 1000 * min(100.0, (0.01 / part) ** (1 / 1.5)))
        return self._time(part)

    def _time(self, part: float) -> float:
        """Returns the seconds that a part of the lognormal times exceeds."""
        return float(self.p99 / 10_000 * math.exp(DEVIATION * deviate(part)))

    def _pauses(self, seconds: int, dice: random.Random) -> Iterator[tuple[float, float]]:
        length, at = self.p99 / 1000, float(-LEAD)
        while at < seconds:
            at += dice.expovariate(1 / (24 * length))
            yield at, at + length
            at += length


def deviate(part: float) -> float:
    """Returns the normal deviate that a part exceeds (Abramowitz and Stegun, 26.2.23)."""
    if part > 0.5:
        return -deviate(1 - part)
    t = math.sqrt(-2 * math.log(part))
    return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))


def rounded(number: float, dice: random.Random) -> int:
    return math.floor(number + dice.random())


def binomial(number: int, part: float, dice: random.Random) -> int:
    if number > 400:
        return max(0, round(dice.gauss(number * part, math.sqrt(number * part * (1 - part)))))
    return sum(dice.random() < part for _ in range(number))


DISTURBED: dict[str, Callable[[Shape, int], Shape]] = {
    "half of the rate": lambda one, _: replace(one, part=0.5),
    "97 % of the rate": lambda one, _: replace(one, part=0.97),
    "a stall of 2 s": lambda one, n: replace(one, stall=(n / 2, n / 2 + 2)),
    "a stall of 0.5 s": lambda one, n: replace(one, stall=(n / 2, n / 2 + 0.5)),
    "4 times as slow, last 5 s": lambda one, n: replace(one, slower=lambda at: 4 if at >= n - 5 else 1),
    "4 times as slow, 5 s": lambda one, n: replace(one, slower=lambda at: 4 if n / 3 <= at < n / 3 + 5 else 1),
    "twice as slow, second half": lambda one, n: replace(one, slower=lambda at: 2 if at >= n / 2 else 1),
    "3 times as slow, first half": lambda one, n: replace(one, slower=lambda at: 3 if at < n / 2 else 1),
    "up to 3 times as slow": lambda one, n: replace(one, slower=lambda at: 1 + 2 * at / n),
}


def is_left_to_chance(load: Counted, length: int) -> bool:
    checks = (is_rate_back(load, 0, length, 0.95, deviations=0), is_p99_back(load, 0, length, deviations=0))
    return not all(any(check(at, at + HOLD) for at in range(length, length + WITHIN + 1)) for check in checks)


def is_back_at_once(load: Counted, length: int) -> tuple[bool, bool]:
    checks = is_rate_back(load, 0, length, 0.95), is_p99_back(load, 0, length)
    over = length + AFTER
    rate, p99 = (all(check(at, at + HOLD) for at in range(length, over - HOLD + 1)) for check in checks)
    rate, p99 = (one and check(length, over) for one, check in zip((rate, p99), checks, strict=True))
    return rate and checks[0](length, length + 1), p99


def print_steady(rates: Sequence[int], windows: int) -> None:
    columns = ((LOGNORMAL, False), (PARETO, False), (PAUSES, False), (LOGNORMAL, True))
    print(f"{'steady: rate':16}" + "".join(f"{'random' if is_random else tail:>28}" for tail, is_random in columns))
    for rate in rates:
        cells = []
        for tail, is_random in columns:
            dice = random.Random(f"{SEED} {rate} {tail} {is_random}")
            number = Counter[str]()
            for p99, length, _ in product(P99S[:3] if tail == PAUSES else P99S, LENGTHS, range(windows)):
                load = Shape(rate, p99, tail, is_random).load(length + AFTER, dice)
                number["all"] += 1
                if unsteady(load, 0, length, rate):
                    number["unsteady"] += 1
                else:
                    rate_is_back, p99_is_back = is_back_at_once(load, length)
                    number.update(rate=not rate_is_back, p99=not p99_is_back)
                    number["chance"] += rate_is_back and p99_is_back and is_left_to_chance(load, length)
            cells.append(
                " ".join(
                    f"{100 * number[name] / number['all']:.1f} %" for name in ("unsteady", "rate", "p99", "chance")
                )
            )
        print(f"{rate:<16}" + "".join(f"{cell:>28}" for cell in cells), flush=True)


def print_disturbed(rates: Sequence[int], windows: int) -> None:
    print(f"\n{'disturbed, called steady: rate':32}" + "".join(f"{rate:>8}" for rate in rates))
    for name, disturbed in DISTURBED.items():
        cells = []
        for rate in rates:
            dice = random.Random(f"{SEED} {rate} {name}")
            judged = [
                unsteady(disturbed(Shape(rate, p99, tail), length).load(length, dice), 0, length, rate)
                for p99, length, tail, _ in product(P99S, LENGTHS[1:], (LOGNORMAL, PARETO), range(windows))
            ]
            cells.append(f"{100 * judged.count(None) / len(judged):.0f} %")
        print(f"{name:32}" + "".join(f"{cell:>8}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=50, help="of each steady load and length (default: 50)")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="operations a second")
    options = parser.parse_args()
    print_steady(options.rates, options.windows)
    print_disturbed(options.rates, max(1, options.windows // 5))


if __name__ == "__main__":
    main()
