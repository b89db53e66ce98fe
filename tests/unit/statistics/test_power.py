"""What a comparison finds: held against comparisons of simulated pairs."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.statistics.pairs import paired
from troop.statistics.power import MOST_PAIRS, needed, power, spread

changes = st.floats(-0.2, 0.2)
scatters = st.floats(0.003, 0.1)


@pytest.mark.parametrize("pairs", [2, 3, 5, 6, 8, 15])
@pytest.mark.parametrize(("change", "scatter"), [(0.03, 0.015), (-0.03, 0.03), (0.0, 0.02)])
def test_power_is_the_share_of_comparisons_that_find_the_change(pairs: int, change: float, scatter: float) -> None:
    dice, comparisons, hits = random.Random(pairs), 2000, 0
    for _ in range(comparisons):
        b = [math.exp(dice.gauss(math.log1p(change), scatter)) for _ in range(pairs)]
        hits += paired([1.0] * pairs, b).exceeds_noise is True
    expected = power(change, pairs, scatter)
    error = math.sqrt(max(expected * (1 - expected), 0.01) / comparisons)
    assert hits / comparisons == pytest.approx(expected, abs=3.5 * error)


def test_power_of_the_t_test_is_that_of_the_noncentral_distribution() -> None:
    """By SciPy 1.17.1, for five pairs, t = 2.776, and an effect of one and of two deviations."""
    assert power(math.expm1(0.01), 5, 0.01) == pytest.approx(0.40150, abs=1e-5)
    assert power(math.expm1(0.02), 5, 0.01) == pytest.approx(0.90895, abs=1e-5)


@given(changes, scatters)
def test_more_pairs_find_more(change: float, scatter: float) -> None:
    shares = [power(change, pairs, scatter) for pairs in range(1, 21)]
    assert all(more >= fewer - 0.005 for fewer, more in pairwise(shares))
    assert 0 <= shares[0] < shares[-1] <= 1


@given(changes, scatters, st.integers(2, 60))
def test_larger_changes_and_less_spread_are_easier(change: float, scatter: float, pairs: int) -> None:
    assert power(change, pairs, scatter) <= power(change * 1.5, pairs, scatter) + 1e-9
    assert power(change, pairs, scatter) >= power(change, pairs, scatter * 1.5) - 1e-9
    assert power(change, pairs, scatter) == pytest.approx(power(1 / (1 + change) - 1, pairs, scatter))


@given(changes, scatters, st.sampled_from([0.5, 0.8, 0.95]))
def test_needed_is_the_least_number_of_pairs(change: float, scatter: float, share: float) -> None:
    pairs = needed(change, scatter, share)
    if pairs is None:
        assert power(change, MOST_PAIRS, scatter) < share
    else:
        assert power(change, pairs, scatter) >= share
        assert pairs == 2 or power(change, pairs - 1, scatter) < share


def test_pairs_without_any_spread_find_every_change() -> None:
    assert [power(0.01, pairs, 0) for pairs in (1, 2, 9)] == [0, 1, 1]
    assert power(0, 9, 0) == 0
    assert (needed(0.01, 0), needed(0, 0)) == (2, None)


def test_power_of_very_many_pairs_exists() -> None:
    """Their mean is known to 0.003 %, so a change of 0.006 % is 1.9 of these errors; judged as with 50 pairs."""
    assert power(0.00006, 100_000, 0.01) == pytest.approx(0.45, abs=0.02)


def test_changes_and_spreads_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="above -1"):
        power(-1, 5, 0.01)
    with pytest.raises(ValueError, match="at least 0"):
        needed(0.1, -0.01)


def test_spread_pools_runs_without_their_means() -> None:
    """Logs 1, 3 and 10, 13, 16: squares of 2 and 18 in one and two degrees of freedom, and 4, 4 has none in one."""
    runs = [[math.exp(log) for log in run] for run in ((1, 3), (10, 13, 16), (4, 4), (7,), ())]
    assert spread(runs) == pytest.approx(math.sqrt(20 / 4))


def test_few_pairs_have_no_spread() -> None:
    assert spread([[1.0, 1.1], [1.0, 1.1, 1.2]]) is None
    assert spread([[1.0, 1.1, 1.2, 1.0, 1.1]]) is not None
    assert spread([]) is None
