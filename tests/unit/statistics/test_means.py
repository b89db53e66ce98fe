"""The mean with its interval by Student's t."""

from __future__ import annotations

import random

import pytest

from troop.statistics.means import mean_interval, student


@pytest.mark.parametrize(
    ("degrees", "published"), [(1, 12.706), (4, 2.776), (5, 2.571), (9, 2.262), (19, 2.093), (60, 2.0), (100, 1.984)]
)
def test_student_is_that_of_the_published_table(degrees: int, published: float) -> None:
    assert student(degrees) == pytest.approx(published, abs=0.001)


def test_the_interval_contains_the_mean_in_nineteen_of_twenty_cases() -> None:
    dice = random.Random(3)
    for number in (3, 8):
        intervals = [mean_interval([dice.gauss(10, 2) for _ in range(number)]) for _ in range(4000)]
        assert sum(low <= 10 <= high for _, low, high in intervals) / len(intervals) == pytest.approx(0.95, abs=0.012)


def test_equal_values_have_no_spread() -> None:
    assert mean_interval([4.0, 4.0]) == (4.0, 4.0, 4.0)
