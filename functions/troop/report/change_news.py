"""Decides which change of a benchmark is news: its runs measure another level than before. Pure.

A search for change points looks once at a history. A schedule looks after each run, so noise has many more chances. So
several looks, one after another, must find a change before anybody hears of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from troop.bench.measuring.verdicts import name_some
from troop.bench.records.history import Change, Figure, Series, histories
from troop.bench.records.line import Line
from troop.report.document import Finding
from troop.shared.benchmark_change import BenchmarkChange, ChangedFigure

NEWEST = 200
"""The most runs that are considered, the newest."""

FEWEST = 20
"""The fewest runs with a figure: with fewer, the noise is not known well enough."""

RECENT = 40
"""The most runs since a change that is news."""

LOOKS = 3
"""So many looks must find a change. In simulations of 365 nights, the third one leaves out most of what is noise."""

NEAR = 15
"""Changes in the same direction whose first runs are nearer are the same: a later look may place it elsewhere."""

LEAST_RATIO = 1.01
"""A smaller change is no news: a rate that is set has so little noise that any change of it is clear."""

MOST_NAMED = 5
"""The most figures that one notification names."""

YEAR = 300
"""The looks of a year at all figures count as so many that are independent: neighbouring nights share most runs."""

JUDGED = (Figure.THROUGHPUT, Figure.MEAN, Figure.P99)


@dataclass(frozen=True)
class Announcement:
    """A change that was announced: its first run, and whether a figure got worse."""

    run: str
    is_worse: bool


@dataclass(frozen=True)
class News:
    """A change to announce, and with it all announcements about the runs that are considered."""

    change: BenchmarkChange
    announcements: tuple[Announcement, ...]


def alike(lines: Iterable[Line], line: Line) -> list[Line]:
    """Returns the newest lines that can be compared with one, oldest first, up to that one: those of the same schedule,
    size and baseline.

    Args:
        lines: of the same benchmark, newest first, with or without that one. No more are read than needed.
    """

    def is_alike(one: Line) -> bool:
        is_earlier = (one.at, one.run) < (line.at, line.run)
        return is_earlier and (one.schedule, one.size, one.baseline) == (line.schedule, line.size, line.baseline)

    return [*[*islice(filter(is_alike, lines), NEWEST - 1)][::-1], line]


def news(lines: Sequence[Line], announcements: Sequence[Announcement]) -> News | None:
    """Returns the change to announce after the last of some runs; None for none.

    Args:
        lines: of :func:`alike`.
        announcements: about these runs, so far.
    """
    places = {line.run: place for place, line in enumerate(lines)}
    announcements = [one for one in announcements if one.run in places]

    def is_near(one: Change, run: str) -> bool:
        return abs(places[one.first.run] - places[run]) < NEAR

    def is_known(one: Change) -> bool:
        return any(is_near(one, known.run) and one.is_worse is known.is_worse for known in announcements)

    pairs = [pair for pair in _newest(lines) if not is_known(pair[1])]
    for missing in range(1, LOOKS) if pairs else ():
        earlier = [(series, one) for series in _every(lines[:-missing]) for one in series.changes]
        pairs = [pair for pair in pairs if any(_is_same(pair, one) for one in earlier)]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: -round(_size(pair[1]), 2))
    largest = pairs[0][1]
    after, pairs = largest.first, [pair for pair in pairs if is_near(pair[1], largest.first.run)]
    change = BenchmarkChange(
        benchmark=after.name,
        size=after.size,
        schedule=after.schedule,
        run=after.run,
        run_before=largest.last.run,
        reporting_run=lines[-1].run,
        has_baseline=bool(after.baseline),
        figures=tuple(_changed(*pair) for pair in pairs[:MOST_NAMED]),
        more=len(pairs[MOST_NAMED:]),
        differences={one.name: (one.before, one.after) for one in largest.beside},
    )
    new = dict.fromkeys(Announcement(after.run, one.is_worse) for _, one in pairs)
    return News(change, (*announcements, *new))


def findings(lines: Sequence[Line]) -> list[Finding]:
    """Says in the report of the last of some runs which of its figures have changed lately, the largest change first.

    Args:
        lines: of :func:`alike`.
    """
    pairs = sorted(_newest(lines), key=lambda pair: -_size(pair[1]))
    return [
        Finding(severity="note", cause="The benchmark has changed", text=_sentence(*pair))
        for pair in pairs[:MOST_NAMED]
    ]


def _sentence(series: Series, one: Change) -> str:
    ratio = one.after / one.before
    words = f"{abs(ratio - 1):.1%} {'higher' if ratio > 1 else 'lower'} than before"
    if series.baseline:
        words += f", relative to {series.against}"
    beside = [f"{its.name} from {its.before or 'none'} to {its.after or 'none'}" for its in one.beside]
    also = f" What else changed there: {name_some(beside)}." if beside else ""
    return (
        f"Since the run {one.first.run} of {one.first.at:%Y-%m-%d}, the {series.figure.value} of "
        f"{' · '.join(part for part in series.key if part)} is {words}.{also}"
    )


def _every(lines: Sequence[Line]) -> Iterator[Series]:
    for figure in JUDGED:
        yield from histories(lines, figure, YEAR)


def _newest(lines: Sequence[Line]) -> Iterator[tuple[Series, Change]]:
    """Yields the newest change of each series of the last run, if it is recent and large enough."""
    for series in _every(lines):
        if series.changes and len(series.values) >= FEWEST and series.values[-1].line is lines[-1]:
            newest = series.changes[-1]
            if newest.index >= len(series.values) - RECENT and _size(newest) >= LEAST_RATIO:
                yield series, newest


def _is_same(newest: tuple[Series, Change], earlier: tuple[Series, Change]) -> bool:
    """Checks whether it is the same change, as an earlier look has placed it."""
    (series, one), (other, before) = newest, earlier
    same = (series.figure, series.key) == (other.figure, other.key) and one.is_worse is before.is_worse
    return same and abs(one.index - before.index) < NEAR


def _size(one: Change) -> float:
    return max(one.before, one.after) / min(one.before, one.after)


def _changed(series: Series, one: Change) -> ChangedFigure:
    return ChangedFigure("/".join(part for part in series.key if part), series.figure.value, one.before, one.after)
