"""Where change points are, and where none is. How often they are missed is measured in perf/change_points.py."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.statistics.change_points import LEAST, change_points, strength_among

positive = st.floats(0.001, 1e6)


def noise(count: int, *, seed: int = 7, deviation: float = 0.01) -> list[float]:
    source = random.Random(seed)
    return [100 * math.exp(source.gauss(0, deviation)) for _ in range(count)]


def stepped(count: int, *steps: tuple[int, float]) -> list[float]:
    """Returns noise of 1 % whose level has these factors from these places on."""
    values = noise(count)
    for place, factor in steps:
        values[place:] = [factor * value for value in values[place:]]
    return values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(noise(200), [], id="noise"),
        pytest.param([*noise(100)[:50], 40.0, *noise(100)[50:]], [], id="one outlier"),
        pytest.param([*noise(100)[:50], 40.0, 41.0, 39.0, 40.0, *noise(100)[50:]], [], id="four outliers in a row"),
        pytest.param(stepped(60, (40, 0.9)), [40], id="one step"),
        pytest.param(stepped(60, (55, 0.9)), [55], id="a step before the last five"),
        pytest.param(stepped(60, (57, 0.9)), [], id="a step before the last three"),
        pytest.param(stepped(10, (5, 1.3)), [5], id="ten values"),
        pytest.param(stepped(90, (30, 1.2), (60, 1.2)), [30, 60], id="two steps upwards"),
        pytest.param(stepped(200, (100, 0.9), (108, 1 / 0.9)), [100, 108], id="a level that returns"),
        pytest.param([100.0] * 8 + [50.0] * 8, [8], id="a step without noise"),
        pytest.param([100.0] * 30 + [0.9 * value for value in noise(30)], [30], id="noise begins with the step"),
        pytest.param([0.1 + 0.2] * 10 + [0.3] * 10, [], id="noise of arithmetic"),
    ],
)
def test_change_points_are_where_the_level_changes(values: list[float], expected: list[int]) -> None:
    assert [point.index for point in change_points(values)] == expected


def test_change_point_states_levels_on_both_sides() -> None:
    [point] = change_points(stepped(60, (40, 0.9)))
    assert point.before == pytest.approx(100, rel=0.005)
    assert point.after == pytest.approx(90, rel=0.005)
    assert point.ratio == pytest.approx(0.9, rel=0.005)


def test_outlier_hardly_moves_the_level() -> None:
    values = stepped(60, (40, 0.9))
    values[50] = 5.0
    [point] = change_points(values)
    assert point.after == pytest.approx(90, rel=0.005)


@pytest.mark.parametrize("count", range(10))
def test_fewer_than_ten_values_have_no_change_point(count: int) -> None:
    assert change_points([100.0, 1.0] * 5) == change_points([*range(1, 11)][:count]) == []


def test_slow_waves_are_no_steps() -> None:
    source = random.Random(3)
    wave = [source.gauss(0, 0.03)]
    while len(wave) < 200:
        wave.append(0.6 * wave[-1] + source.gauss(0, 0.024))
    assert change_points([math.exp(one) for one in wave]) == []


def test_among_many_series_a_step_must_be_surer() -> None:
    values = stepped(60, (40, 0.988))
    assert [point.index for point in change_points(values)] == [40]
    assert change_points(values, strength_among(1000)) == []
    assert change_points(stepped(60, (40, 0.95)), strength_among(1000))


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_values_without_logarithm_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        change_points([1.0] * 20 + [value])


@given(positive, st.integers(10, 100))
def test_constant_series_have_no_change_point(value: float, count: int) -> None:
    assert change_points([value] * count) == []


@given(st.lists(positive, max_size=120))
def test_no_part_is_shorter_than_five(values: list[float]) -> None:
    points = change_points(values)
    assert all(
        end - begin >= LEAST for begin, end in pairwise((0, *(one.index for one in points), len(values))) if points
    )
    assert all(before.after == after.before for before, after in pairwise(points))


@given(st.integers(0, 1000), st.floats(1e-3, 1e3))
def test_factor_moves_levels_and_no_change_point(seed: int, factor: float) -> None:
    values = noise(60, seed=seed)
    values[40:] = [0.93 * value for value in values[40:]]
    points, scaled = change_points(values), change_points([factor * value for value in values])
    assert [one.index for one in scaled] == [one.index for one in points]
    assert [one.before for one in scaled] == pytest.approx([factor * one.before for one in points])
    assert [one.ratio for one in scaled] == pytest.approx([one.ratio for one in points])


@given(st.integers(0, 1000))
def test_inverse_values_have_inverse_ratios(seed: int) -> None:
    """A rate and the time that it takes tell the same."""
    values = noise(60, seed=seed)
    values[40:] = [0.9 * value for value in values[40:]]
    points, inverse = change_points(values), change_points([1 / value for value in values])
    assert [one.index for one in inverse] == [one.index for one in points]
    assert [1 / one.ratio for one in inverse] == pytest.approx([one.ratio for one in points])
