"""Measures the search for change points: false alarms, steps that it finds, and its processor time.

    python -m perf.change_points [--series 200] [--nights 365]

The series are made here, from fixed seeds, as logarithms: noise of 3 %, which is normal, heavy-tailed (Student's t with
3 degrees of freedom), normal with 3 % of the values 15 % too small, or normal with autocorrelation 0.3. A false alarm
is a series of 200 values without a step in which a change point is reported. A step is 5 %, after 100 values and with
15 values after it; it is found if a change point is at most 2, or 5, values away. A bump is 5 % for 15 of 200 values;
both of its ends must be found within 5.

Nights have a level of deviation 2 % with autocorrelation 0.5, and nodes of deviation 2 %. Candidate and baseline have
errors of 1 % and drifts of 0.5 % of their own. Their step is 3 %. *Every night* is a year's beginning: the series is
searched anew after each of 200 values, and an alarm in any of the searches counts.

Notifications are those of a schedule, decided after each of 365 nights: rate, mean and p99 of three operations, each
with noise of its own. A step is 5 %, from the 146th night on. It counts if it notifies exactly once within 50 nights.

Apache Otava 0.8.0 searched the same series (of 200). Its results are recorded, because Troop does not depend on it.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median

from troop.bench.records.line import Figures, Line, Values
from troop.report.change_news import Announcement, alike, news
from troop.statistics.change_points import change_points

NOISE = 0.03
SEEDS = {"false": 1, "steps": 2, "bumps": 3, "nights": 4, "every night": 5, "notifications": 6}
"""Fixed before the first run."""

SERIES, NIGHTS, WITHIN = 200, 365, 50
OTAVA = {
    "false alarms, normal": "21",
    "false alarms, heavy tails": "57",
    "false alarms, 3 % outliers": "55",
    "false alarms, autocorrelation 0.3": "121",
    "5 % found within 2 / 5, normal": "174 / 187",
    "5 % found within 2 / 5, heavy tails": "183 / 191",
    "5 % found within 2 / 5, 3 % outliers": "142 / 158",
    "5 % found within 2 / 5, autocorrelation 0.3": "142 / 171",
    "5 % for 15 values, both ends": "132",
    "false alarms, nights, raw": "101",
    "3 % found within 5, nights, raw": "103",
    "false alarms, nights, ratios": "30",
    "3 % found within 5, nights, ratios": "196",
    "any alarm in 191 searches, normal": "26 of 50",
    "any alarm in 191 searches, heavy tails": "49 of 50",
    "ms": "6.4",
}
"""Row -> what Otava 0.8.0 gave with its defaults (window 50, p < 0.001)."""


def normal(source: random.Random, count: int) -> list[float]:
    return [source.gauss(0, NOISE) for _ in range(count)]


def heavy(source: random.Random, count: int) -> list[float]:
    """Student's t with 3 degrees of freedom, of the same deviation."""
    return [source.gauss(0, NOISE) / math.sqrt(source.gammavariate(1.5, 2)) for _ in range(count)]


def outliers(source: random.Random, count: int) -> list[float]:
    return [source.gauss(0, NOISE) - 0.15 * (source.random() < 0.03) for _ in range(count)]


def correlated(source: random.Random, count: int, factor: float = 0.3, deviation: float = NOISE) -> list[float]:
    values = [source.gauss(0, deviation)]
    while len(values) < count:
        values.append(factor * values[-1] + source.gauss(0, deviation * math.sqrt(1 - factor * factor)))
    return values


NOISES = {"normal": normal, "heavy tails": heavy, "3 % outliers": outliers, "autocorrelation 0.3": correlated}


Series = Callable[[random.Random], list[float]]
Search = Callable[[Sequence[float]], list[int]]


def stepped(noise: Callable[[random.Random, int], list[float]], count: int, step: float, end: int = 0) -> Series:
    """Returns what makes series of so much noise, with a factor from the 100th value to an end."""

    def series(source: random.Random) -> list[float]:
        logs = noise(source, count)
        return [100 * math.exp(one) * (step if 100 <= place < end else 1) for place, one in enumerate(logs)]

    return series


def raw(source: random.Random, count: int) -> list[float]:
    """The figure of each night, of one cell."""
    return [candidate for candidate, _ in nights(source, count)]


def ratios(source: random.Random, count: int) -> list[float]:
    """Its ratio to the baseline on the same nodes."""
    return [candidate - baseline for candidate, baseline in nights(source, count)]


def nights(source: random.Random, count: int) -> Iterator[tuple[float, float]]:
    error = math.hypot(0.01, 0.005)
    for level in correlated(source, count, 0.5, 0.02):
        shared = level + source.gauss(0, 0.02)
        yield shared + source.gauss(0, error), shared + source.gauss(0, error)


def search(values: Sequence[float]) -> list[int]:
    return [point.index for point in change_points(values)]


def near(places: Sequence[int], place: int, most: int) -> bool:
    return any(abs(one - place) <= most for one in places)


def searched(kind: str, count: int, series: Series, find: Search) -> list[list[int]]:
    """Returns the places that a search gives in so many series."""
    source = random.Random(SEEDS[kind])
    return [find(series(source)) for _ in range(count)]


def rows(count: int, find: Search) -> Iterator[tuple[str, str]]:
    """Measures with so many series; yields what was measured and the result."""
    for name, noise in NOISES.items():
        places = searched("false", count, stepped(noise, 200, 1), find)
        yield f"false alarms, {name}", str(sum(map(bool, places)))
    for name, noise in NOISES.items():
        places = searched("steps", count, stepped(noise, 115, 0.95, 115), find)
        within = [sum(near(one, 100, most) for one in places) for most in (2, 5)]
        yield f"5 % found within 2 / 5, {name}", f"{within[0]} / {within[1]}"
    places = searched("bumps", count, stepped(normal, 200, 0.95, 115), find)
    yield "5 % for 15 values, both ends", str(sum(near(one, 100, 5) and near(one, 115, 5) for one in places))
    for figure in (raw, ratios):
        places = searched("nights", count, stepped(figure, 200, 1), find)
        yield f"false alarms, nights, {figure.__name__}", str(sum(map(bool, places)))
        places = searched("nights", count, stepped(figure, 115, 0.97, 115), find)
        yield f"3 % found within 5, nights, {figure.__name__}", str(sum(near(one, 100, 5) for one in places))


def sequential(count: int, find: Search) -> Iterator[tuple[str, str]]:
    """Searches after each value, as a schedule does; a quarter of the series, because each is searched 191 times."""

    def ever(values: Sequence[float]) -> list[int]:
        return next(filter(None, (find(values[:end]) for end in range(10, len(values) + 1))), [])

    count = max(1, count // 4)
    for name in ("normal", "heavy tails"):
        places = searched("every night", count, stepped(NOISES[name], 200, 1), ever)
        yield f"any alarm in 191 searches, {name}", f"{sum(map(bool, places))} of {count}"


def notifications(count: int, nights: int) -> Iterator[tuple[str, str]]:
    """Decides after each night whether to notify; a tenth of the series, because each has nine figures.

    Args:
        nights: of noise. A step comes after two fifths of them.
    """
    count, step = max(1, count // 10), 2 * nights // 5
    for name in ("normal", "heavy tails", "3 % outliers"):
        source = random.Random(SEEDS["notifications"])
        years = [_announced(source, NOISES[name], nights, nights) for _ in range(count)]
        yield f"{nights} nights of noise notify, {name}", f"{sum(map(bool, years))} of {count}"
    for name in ("normal", "heavy tails", "3 % outliers"):
        source = random.Random(SEEDS["notifications"])
        years = [_announced(source, NOISES[name], step + WITHIN, step) for _ in range(count)]
        waits = [last - step for (last, first), *more in filter(None, years) if abs(first - step) <= 15 and not more]
        middle = f", after {median(waits):g}" if waits else ""
        yield f"5 % notifies once, nights, {name}", f"{len(waits)} of {count}{middle}"


def _announced(
    source: random.Random, noise: Callable[[random.Random, int], list[float]], count: int, step: int
) -> list[tuple[int, int]]:
    """Returns the nights that announce a change, each with the first night after the change.

    Args:
        step: the night from which on the rates are 5 % lower, and the times higher.
    """
    series = [[noise(source, count) for _ in ("per_second", "mean_ms", "p99_ms")] for _ in range(3)]
    lines, announcements, every = list[Line](), tuple[Announcement, ...](), list[tuple[int, int]]()
    for night in range(count):
        slower = math.log(0.95) if night >= step else 0
        figures = []
        for place, (rate, mean, p99) in enumerate(series):
            times = (5 * math.exp(mean[night] - slower), None, 20 * math.exp(p99[night] - slower))
            values = (Values(1000 * math.exp(rate[night] + slower), *times),)
            figures.append(Figures("", "measure", "", "drivers", f"op{place}", values))
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=night)
        line = Line(str(night), "nightly", at, None, "SUCCEEDED", "", schedule="nightly", figures=tuple(figures))
        if new := news(alike(reversed(lines), line), announcements):
            announcements = new.announcements
            every.append((night, int(new.change.run)))
        lines.append(line)
    return every


def milliseconds(find: Search) -> float:
    """Returns the processor time of a search of 500 values, of which 250 are 5 % lower; the fastest of five."""
    values = stepped(normal, 500, 0.95, 350)(random.Random(5))
    times = []
    for _ in range(5):
        began = time.process_time()
        find(values)
        times.append(time.process_time() - began)
    return 1000 * min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=SERIES, help="series of each row (default 200)")
    parser.add_argument("--nights", type=int, default=NIGHTS, help="nights of each schedule (default 365)")
    options = parser.parse_args()
    print(f"{f'of {options.series} series':<42}{'Troop':>12}{f'Otava, of {SERIES}':>18}")
    for measure in (rows, sequential):
        for row, result in measure(options.series, search):
            print(f"{row:<42}{result:>12}{OTAVA.get(row, ''):>18}", flush=True)
    for row, result in notifications(options.series, options.nights):
        print(f"{row:<48}{result:>24}", flush=True)
    print(f"{'ms of one core for 500 values':<42}{milliseconds(search):>12.1f}{OTAVA.get('ms', ''):>18}")


if __name__ == "__main__":
    main()
