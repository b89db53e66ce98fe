"""What is announced of the runs of a schedule: one notification for a change of the level, and none for noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from troop.bench.records.line import Figures, Line, Values
from troop.report.change_news import FEWEST, MOST_NAMED, NEWEST, RECENT, Announcement, News, alike, findings, news
from troop.shared.benchmark_change import BenchmarkChange

AT = datetime(2026, 1, 1, 3, tzinfo=UTC)
NOISE = 0.03

KINDS: Mapping[str, Callable[[random.Random], float]] = {
    "normal": lambda dice: dice.gauss(0, 1),
    "heavy tails": lambda dice: dice.gauss(0, 1) / math.sqrt(3 * dice.gammavariate(1.5, 2 / 3)),
    "outliers": lambda dice: dice.gauss(0, 10 if dice.random() < 0.03 else 1),
}


def night(number: int, rate: float = 1000.0, operations: int = 1, **more: Any) -> Line:
    """A line of a night whose operations have all this rate, and times that follow from it."""
    values = (Values(rate, 5000 / rate, None, 20_000 / rate),)
    figures = tuple(Figures("", "measure", "", "drivers", f"op{n}", values) for n in range(operations))
    line = Line(f"r{number:03}", "reads", AT + timedelta(days=number), None, "SUCCEEDED", "1.2", figures=figures)
    return replace(line, **{"schedule": "nightly", **more})


def announced(lines: Sequence[Line]) -> list[tuple[int, BenchmarkChange]]:
    """What is announced as one line comes after the other, with the number of the line whose report does it."""
    announcements: tuple[Announcement, ...] = ()
    every = []
    for number, line in enumerate(lines):
        if new := news(alike(reversed(lines[:number]), line), announcements):
            announcements = new.announcements
            assert news(alike(reversed(lines[:number]), line), announcements) is None, "as if the report were repeated"
            every.append((number, new.change))
    return every


def noisy(kind: str, seed: int, nights: int, level: Callable[[int], float] = lambda _: 1.0) -> list[Line]:
    dice = random.Random(f"{kind} {seed}")
    lines = [night(n, 1000 * level(n) * math.exp(NOISE * KINDS[kind](dice))) for n in range(nights)]
    only_rates = [Values(line.figures[0].values[0].per_second) for line in lines]
    return [
        replace(line, figures=(replace(line.figures[0], values=(rate,)),))
        for line, rate in zip(lines, only_rates, strict=True)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_year_of_noise_announces_nothing(kind: str) -> None:
    assert announced(noisy(kind, 1, 365)) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0.95, 1.05])
def test_a_step_is_announced_once(kind: str, level: float) -> None:
    ((number, change),) = announced(noisy(kind, 2, 150, lambda n: level if n >= 60 else 1.0))
    assert 60 < number < 60 + RECENT
    assert abs(int(change.run[1:]) - 60) <= 5
    (rate,) = change.figures
    assert (change.reporting_run, rate.figure) == (f"r{number:03}", "throughput")
    assert rate.after / rate.before == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_says_nothing_of_noise(kind: str) -> None:
    assert findings(noisy(kind, 3, 100)) == []


def test_a_report_says_since_when_a_figure_is_another_and_what_else_changed() -> None:
    lines = exact(40, since=25)
    lines = [replace(line, version="1.2" if n < 25 else "1.3") for n, line in enumerate(lines)]
    texts = [one.text for one in findings(lines)]
    assert (
        "Since the run r025 of 2026-01-26, the throughput of measure · drivers · op0 is 5.0% lower than before."
        " What else changed there: version from 1.2 to 1.3."
    ) in texts
    assert findings(lines[:25]) == []


def exact(count: int, since: int, rate: float = 950.0, **more: Any) -> list[Line]:
    """Lines with hardly any noise, whose rate changes."""
    return [night(n, (rate if n >= since else 1000.0) * (1 + 0.001 * (n % 3)), **more) for n in range(count)]


def last(lines: Sequence[Line], announcements: Sequence[Announcement] = ()) -> News | None:
    return news(alike(reversed(lines[:-1]), lines[-1]), announcements)


def test_news_says_what_changed_and_what_else_changed() -> None:
    lines = [
        replace(one, size="small", version=f"commit-{n}" if n >= 30 else "", versions={"kernel": f"6.{n // 30}"})
        for n, one in enumerate(exact(40, 30))
    ]
    new = last(lines)
    assert new
    change = new.change
    assert (change.benchmark, change.size, change.schedule) == ("reads", "small", "nightly")
    assert (change.run, change.run_before, change.reporting_run) == ("r030", "r029", "r039")
    assert {one.figure: round(one.after / one.before, 3) for one in change.figures} == {
        "throughput": 0.95, "mean": 1.053, "p99": 1.053
    }  # fmt: skip
    assert {one.measurement for one in change.figures} == {"measure/drivers/op0"}
    assert (change.differences["kernel"], change.differences["version"][0]) == (("6.0", "6.1"), "")
    assert not change.has_baseline
    assert new.announcements == (Announcement("r030", True),)


def test_ratios_to_a_baseline_count_where_there_is_one() -> None:
    """Both get slower with the nights, and the candidate once more."""
    lines = []
    for n, one in enumerate(exact(60, 50)):
        (figures,) = one.figures
        rate = figures.values[0].per_second
        day = 1 - 0.01 * (n % 20)
        pairs = replace(figures, values=(Values(rate * day),), baseline=(Values(1000.0 * day),))
        lines.append(replace(one, baseline={"parameters.version": "1"}, figures=(pairs,)))
    new = last(lines)
    assert new
    (figure,) = new.change.figures
    assert (new.change.run, new.change.has_baseline) == ("r050", True)
    assert figure.before == pytest.approx(1.001, abs=0.001)
    assert figure.after == pytest.approx(0.951, abs=0.001)


def test_many_measurements_that_change_together_are_one_notification() -> None:
    ((_, change),) = announced(exact(60, 30, operations=4))
    assert (len(change.figures), change.more) == (MOST_NAMED, 3 * 4 - MOST_NAMED)


def test_way_back_is_announced_too() -> None:
    lines = exact(30, 20)
    back = [night(n, 1000.0 * (1 + 0.001 * (n % 3))) for n in range(30, 60)]
    assert [change.run for _, change in announced([*lines, *back])] == ["r020", "r030"]


def test_measurements_that_change_apart_are_announced_once_each() -> None:
    lines = [
        replace(line, figures=(line.figures[0], replace(later.figures[0], operation="op1")))
        for line, later in zip(exact(60, 20), exact(60, 45), strict=True)
    ]
    assert [(change.run, change.figures[0].measurement) for _, change in announced(lines)] == [
        ("r020", "measure/drivers/op0"),
        ("r045", "measure/drivers/op1"),
    ]


def test_known_change_is_no_news_although_a_later_search_places_it_elsewhere() -> None:
    lines = exact(40, 30)
    assert last(lines, [Announcement("r028", True)]) is None
    assert last(lines, [Announcement("r030", False)]), "another direction is another change"
    assert last(lines, [Announcement("r004", True)]), "that was another one"
    assert last(lines, [Announcement("forgotten", True)])


@pytest.mark.parametrize(
    "lines",
    [
        exact(40, 30, 1005.0),  # too small
        exact(40 + RECENT, 30),  # too long ago
        exact(FEWEST - 1, 12),  # too few runs
        exact(36, 30),  # only the last search sees it
        [*exact(45, 30)[:-1], night(44, operations=0)],  # not measured
        [],
    ],
    ids=["small", "old", "few", "one look", "not measured", "none"],
)
def test_no_news(lines: list[Line]) -> None:
    assert not lines or last(lines) is None


def test_only_runs_of_the_same_schedule_size_and_baseline_are_alike() -> None:
    one = night(5)
    others = [
        night(0),
        night(1, schedule=""),
        night(2, size="large"),
        night(3, baseline={"parameters.version": "1"}),
        night(4),
        one,
        night(6),
    ]
    assert [line.run for line in alike(reversed(others), one)] == ["r000", "r004", "r005"]
    endless = (night(n) for n in range(NEWEST + 50, -1, -1))
    many = alike(endless, night(NEWEST + 50))
    assert (len(many), many[0].run, many[-1].run) == (NEWEST, "r051", "r250")
    assert next(endless).run == "r050", "it reads no more than it needs"
