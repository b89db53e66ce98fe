"""The history of a benchmark: which figures form a series, where it changes, and what else changed there."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from troop.bench.records.history import Figure, Series, histories, main
from troop.bench.records.line import Figures, Line, Values

FIRST = datetime(2026, 10, 1, 1, tzinfo=UTC)
BASELINE = {"parameters.version": "1.2"}


def figures(*values: Values, **more: Any) -> Figures:
    key = {"variant": "n3", "phase": "measure", "point": "", "role": "drivers", "operation": "read"}
    return Figures(**(key | more), values=values)


def line(night: int, *every: Figures, **more: Any) -> Line:
    at = FIRST + timedelta(days=night)
    one = Line(f"{at:%Y%m%d-%H%M%S}-{night:08x}", "reads", at, None, "SUCCEEDED", "0.1.0", figures=every)
    return replace(one, **more)


def nights(
    count: int, values: Callable[[int, float], Values], versions: Callable[[int], Mapping[str, str]] | None = None
) -> list[Line]:
    """Returns the lines of nights; ``values`` gets the night and noise of 1 % around 1."""
    source = random.Random(5)
    return [
        line(night, figures(values(night, source.gauss(1, 0.01))), versions=versions(night) if versions else {})
        for night in range(count)
    ]


def sole(lines: list[Line], figure: Figure = Figure.THROUGHPUT) -> Series:
    (one,) = histories(lines, figure)
    return one


def step(night: int, noise: float) -> Values:
    """Is 10 % slower from the night 20 on."""
    rate = 1000 * noise * (0.9 if night >= 20 else 1)
    return Values(
        rate, mean_ms=1000 / rate, p50_ms=900 / rate, p99_ms=3000 / rate, cost_per_million=500 / rate, errors=0.0
    )


@pytest.mark.parametrize("figure", [Figure.THROUGHPUT, Figure.MEAN, Figure.P50, Figure.P99, Figure.COST])
def test_slower_runs_are_worse_in_each_figure(figure: Figure) -> None:
    (change,) = sole(nights(40, step), figure).changes
    assert change.index == 20
    assert (change.last.run, change.first.run) == ("20261020-010000-00000013", "20261021-010000-00000014")
    assert change.after / change.before == pytest.approx(0.9 if figure is Figure.THROUGHPUT else 1 / 0.9, rel=0.01)
    assert change.is_worse
    assert change.lasts


def test_faster_runs_are_better() -> None:
    one = sole(nights(40, lambda night, noise: Values(1000 * noise * (1.1 if night >= 20 else 1))))
    assert [change.is_worse for change in one.changes] == [False]
    assert one.regression is None


def test_change_that_is_undone_does_not_last() -> None:
    one = sole(nights(60, lambda night, noise: Values(1000 * noise * (0.9 if 20 <= night < 40 else 1))))
    assert [(change.index, change.is_worse, change.lasts) for change in one.changes] == [
        (20, True, False),
        (40, False, True),
    ]
    assert one.regression is None


def test_oldest_lasting_change_towards_worse_is_the_regression() -> None:
    one = sole(nights(60, lambda night, noise: Values(1000 * noise * 0.9 ** (night // 20))))
    assert one.regression is one.changes[0]
    assert [change.index for change in one.changes] == [20, 40]


def test_run_is_the_geometric_mean_of_its_cells() -> None:
    one = sole([line(0, figures(Values(100.0), Values(400.0)))])
    assert [value.own for value in one.values] == [pytest.approx(200)]


def test_shares_of_errors_may_be_nothing_and_change_in_points() -> None:
    one = sole(
        nights(40, lambda night, noise: Values(1000.0, errors=0.02 * noise if night >= 20 else 0.0)), Figure.ERRORS
    )
    (change,) = one.changes
    assert (change.index, change.before, change.after) == (20, 0.0, pytest.approx(0.02, rel=0.05))
    assert change.is_worse
    assert one.values[0].own == 0.0


def test_everything_failed_is_still_a_share() -> None:
    every = nights(40, lambda night, noise: Values(1000.0, errors=1.0 if night >= 20 else 0.01 * noise))
    assert [change.index for change in sole(every, Figure.ERRORS).changes] == [20]


def with_baseline(night: int, noise: float, slower: float) -> Line:
    day = 1000 * (0.7 if night % 2 else 1)
    one = figures(Values(day * noise * slower), baseline=(Values(day),))
    return line(night, one, baseline=BASELINE)


def test_ratio_to_the_baseline_counts_and_hides_what_both_share() -> None:
    source = random.Random(5)
    one = sole([with_baseline(night, source.gauss(1, 0.01), 0.95 if night >= 20 else 1) for night in range(40)])
    assert one.against == "version=1.2"
    assert [change.index for change in one.changes] == [20]
    assert one.changes[0].after == pytest.approx(0.95, rel=0.01)
    assert one.values[1].own == pytest.approx(700, rel=0.05)


def test_runs_without_the_baseline_or_with_another_one_are_series_of_their_own() -> None:
    one = figures(Values(1.0), baseline=(Values(2.0),))
    lines = [
        line(0, figures(Values(1.0))),
        line(1, one, baseline=BASELINE),
        line(2, one, baseline={"parameters.version": "1.3"}),
        line(3, one, baseline=BASELINE),
    ]
    assert {(each.against, len(each.values)) for each in histories(lines, Figure.THROUGHPUT)} == {
        ("", 1), ("version=1.2", 2), ("version=1.3", 1)
    }  # fmt: skip


def test_sizes_and_measurements_are_series_of_their_own() -> None:
    lines = [
        line(0, figures(Values(1.0)), figures(Values(1.0), operation="write"), figures(Values(1.0), point="threads=8")),
        line(1, figures(Values(1.0)), size="smoke"),
        line(2, figures(Values(1.0))),
    ]
    assert {one.name: len(one.values) for one in histories(lines, Figure.THROUGHPUT)} == {
        "n3 · measure · drivers · read": 2,
        "n3 · measure · drivers · write": 1,
        "n3 · measure · threads=8 · drivers · read": 1,
        "smoke · n3 · measure · drivers · read": 1,
    }


def test_runs_without_the_figure_are_left_out() -> None:
    lines = [line(0), line(1, figures(Values(1.0)))]
    assert histories(lines, Figure.P99) == []
    assert len(sole(lines).values) == 1


def test_change_names_what_else_changed_there_and_how_far_away() -> None:
    def versions(night: int) -> dict[str, str]:
        return {
            "image": "b" if night >= 20 else "a",
            "kernel": "6.2" if night >= 22 else "6.1",
            "agent": "2" if night >= 30 else "1",
        }

    lines = nights(40, step, versions)
    (change,) = sole(lines).changes
    assert [(one.name, one.before, one.after, one.distance) for one in change.beside] == [
        ("image", "a", "b", 0),
        ("kernel", "6.1", "6.2", 2),
    ]
    assert change.beside[1].run == lines[22].run


def test_version_of_each_run_is_named_once() -> None:
    every = [line(night, figures(step(night, 1)), version=f"c{night}") for night in range(40)]
    (change,) = sole(every).changes
    assert [(one.name, one.before, one.after) for one in change.beside] == [("version", "c19", "c20")]


def test_many_series_have_as_few_false_alarms_as_one() -> None:
    """Of noise alone, one of 250 series has a change point; of 400 in one history, about as many histories."""
    source = random.Random(1)
    lines = [
        line(night, *(figures(Values(source.gauss(1000, 30)), operation=f"o{n}") for n in range(400)))
        for night in range(60)
    ]
    assert not [one.name for one in histories(lines, Figure.THROUGHPUT) if one.changes]


def test_noise_is_what_runs_differ_by_without_the_change() -> None:
    one = sole(nights(60, step))
    assert one.noise == pytest.approx(0.01, rel=0.3)
    assert sole([line(0, figures(Values(1.0)))]).noise is None
    assert sole(nights(20, step), Figure.ERRORS).noise is None


def test_main_series_is_that_of_nodes_which_generate_load() -> None:
    every = [
        figures(Values(900.0), role="servers"),
        figures(Values(100.0)),
        figures(Values(300.0), operation="all operations"),
    ]
    chosen = main(histories([line(0, *every)], Figure.THROUGHPUT))
    assert chosen is not None
    assert chosen.name == "n3 · measure · drivers · all operations"
    assert main([]) is None
