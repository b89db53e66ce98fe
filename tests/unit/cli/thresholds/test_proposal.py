"""Thresholds proposed from a history: the value, the alarms that it would have raised, and days it did not see."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.thresholds.history import DAY, History, PastAlarm, Point, spacing
from cli.thresholds.metric import Side
from cli.thresholds.proposal import LEAST_POINTS, TooLittleError, outward, propose
from cli.thresholds.weekly import differ, hours_of_week

START = 1_795_392_000
"""A Monday at midnight, UTC."""
PERIOD = 300
A_DAY = DAY // PERIOD


def history(values: Iterable[float | None], period: int = PERIOD) -> History:
    """Returns a history with a value each period; None for a gap."""
    return History([Point(START + n * period, v) for n, v in enumerate(values) if v is not None], period)


FINITE = st.floats(-1e12, 1e12, allow_nan=False)
SIDES = st.sampled_from(Side)
SERIES = st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=1, max_size=300)


@given(SERIES, st.floats(0, 100), SIDES, st.integers(1, 5))
def test_alarms_agree_with_a_machine_that_sees_one_period_at_a_time(
    values: list[float | None], threshold: float, side: Side, in_a_row: int
) -> None:
    on, row, began, peak, alarms = False, 0, 0, threshold, []
    for n, value in enumerate([*values, None]):
        bad = value is not None and (value > threshold if side is Side.ABOVE else value < threshold)
        row = row + 1 if bad else 0
        if row == in_a_row:
            on, began = True, n + 1
        if on and not bad:
            on = False
            alarms.append(PastAlarm(START + began * PERIOD, (n - began + 1) * PERIOD, peak))
        peak = (max if side is Side.ABOVE else min)(peak, value) if bad and value is not None else threshold
    assert list(history(values).alarms(threshold, side, in_a_row)) == alarms


@given(FINITE, SIDES)
def test_rounding_moves_a_threshold_outward_by_less_than_one_percent(value: float, side: Side) -> None:
    rounded = outward(value, side)
    assert rounded >= value if side is Side.ABOVE else rounded <= value
    assert abs(rounded - value) <= abs(value) / 100
    assert float(f"{rounded:.3g}") == rounded


@pytest.mark.parametrize(
    ("value", "side", "rounded"),
    [
        (0.0, Side.ABOVE, 0.0),
        (12345.0, Side.ABOVE, 12400.0),
        (12345.0, Side.BELOW, 12300.0),
        (-0.0012341, Side.ABOVE, -0.00123),
        (0.123, Side.ABOVE, 0.123),
        (99.91, Side.ABOVE, 100.0),
        (5e-324, Side.ABOVE, 5e-324),
        (1.7976931348623157e308, Side.ABOVE, 1.7976931348623157e308),
    ],
)
def test_a_threshold_has_three_digits(value: float, side: Side, rounded: float) -> None:
    assert outward(value, side) == rounded


def test_the_value_is_the_lowest_with_one_alarm_a_week_at_most() -> None:
    """A fault of an hour each day: 95 % of the values are not part of one."""
    quiet, fault = [10.0] * (A_DAY - 12), [20.0] * 12
    values = (quiet + fault) * 28
    values[100:106] = [50.0] * 6  # the one that is worth an alarm
    proposal = propose(history(values), Side.ABOVE, 3)
    assert [(one.value, len(one.alarms)) for one in proposal.candidates] == [(10, 29), (20, 1), (20, 1), (50, 0)]
    assert (proposal.chosen.value, proposal.chosen.share) == (20, 0.99)
    (alarm,) = proposal.chosen.alarms
    assert (alarm.at, alarm.seconds, alarm.peak) == (START + 103 * PERIOD, 4 * PERIOD, 50)
    assert proposal.chosen.seconds == 4 * PERIOD
    assert proposal.trial is not None
    assert (proposal.trial.learnt, proposal.trial.judged, proposal.trial.alarms) == (21, 7, ())


def test_days_that_became_worse_are_alarms_of_the_trial_alone() -> None:
    """In-sample, the rise of the last week is part of what is usual: a flattering look."""
    calm, busy = [float(n % 10) for n in range(A_DAY)], [30.0 + n % 10 for n in range(A_DAY)]
    proposal = propose(history(calm * 21 + busy * 7), Side.ABOVE, 3)
    assert not proposal.chosen.alarms
    trial = proposal.trial
    assert trial is not None
    assert (trial.value, len(trial.alarms)) == (9, 1)
    assert trial.alarms[0].seconds == 7 * DAY - 2 * PERIOD


def test_values_below_are_judged_like_their_mirror_image() -> None:
    values = [float((n * 7919) % 997) for n in range(A_DAY * 10)]
    above, below = propose(history(values), Side.ABOVE, 2), propose(history([-v for v in values]), Side.BELOW, 2)
    assert [-one.value for one in below.candidates] == [one.value for one in above.candidates]
    assert [len(one.alarms) for one in below.candidates] == [len(one.alarms) for one in above.candidates]


@given(st.integers(0, 2**32), SIDES, st.integers(1, 4), st.integers(300, 3000))
def test_the_choice_keeps_its_promise(seed: int, side: Side, in_a_row: int, count: int) -> None:
    values = [math.sin(seed + n * n) * 50 + 50 for n in range(count)]
    past = history(values)
    proposal = propose(past, side, in_a_row)
    assert len(proposal.chosen.alarms) <= max(1, past.days / 7)
    assert proposal.candidates[-1].alarms == ()
    numbers = [len(one.alarms) for one in proposal.candidates[: proposal.candidates.index(proposal.chosen)]]
    assert all(number > max(1, past.days / 7 - 1) for number in numbers), "an earlier candidate would have done"


@pytest.mark.parametrize(
    ("count", "period", "words"),
    [
        (0, 60, "no value"),
        (1, 60, "1 value over 60 s"),
        (LEAST_POINTS - 1, 3600, "199 values over 199 h"),
        (1000, 60, "1,000 values over 16 h 40 min"),
    ],
)
def test_too_little_data_is_refused_with_its_amount(count: int, period: int, words: str) -> None:
    with pytest.raises(TooLittleError) as refusal:
        propose(history([1.0] * count, period), Side.ABOVE, 3)
    assert words in str(refusal.value).replace("\N{NO-BREAK SPACE}", " ")
    assert f"at least {LEAST_POINTS} values over a day" in str(refusal.value)


def test_a_trial_needs_as_much_data_as_a_proposal() -> None:
    proposal = propose(history([float(n % 7) for n in range(A_DAY + 10)]), Side.ABOVE, 3)
    assert proposal.trial is None
    assert any("less than a week" in doubt for doubt in proposal.doubts)


@pytest.mark.parametrize(
    ("values", "side", "words"),
    [
        ([1.0, None] * (A_DAY * 4), Side.ABOVE, "50 % of the periods have no value"),
        ([3.0] * (A_DAY * 8), Side.ABOVE, "all values are equal"),
        ([float(n) for n in range(A_DAY * 8)], Side.ABOVE, ""),
        ([0.0, 5.0] * (A_DAY * 4), Side.BELOW, "unless values can be negative"),
        (([10.0] * (A_DAY - 20) + [20.0] * 20) * 8, Side.ABOVE, "nothing shows that it notices a fault"),
    ],
)
def test_doubts(values: list[float | None], side: Side, words: str) -> None:
    doubts = "; ".join(propose(history(values), side, 3).doubts).replace("\N{NO-BREAK SPACE}", " ")
    assert words in doubts
    assert bool(words) == bool(doubts)


def test_hours_of_the_week_need_four_weeks_of_each() -> None:
    def office(n: int) -> float:
        hour = n // 12 % 168
        return 80.0 if hour // 24 < 5 and 9 <= hour % 24 < 17 else 5.0

    month = history(office(n) for n in range(A_DAY * 28))
    hours = hours_of_week(month, Side.ABOVE, UTC)
    assert (len(hours), hours[0].name, hours[9].usual, hours[8].usual) == (168, "Mon 00:00", 80, 5)
    assert differ(hours)
    assert hours_of_week(month, Side.ABOVE, timezone(timedelta(hours=2)))[11].usual == 80
    assert not differ(hours_of_week(history([5.0] * (A_DAY * 28)), Side.ABOVE, UTC))
    assert hours_of_week(history(office(n) for n in range(A_DAY * 27)), Side.ABOVE, UTC) == ()
    assert hours_of_week(history([5.0] * 24 * 90, 3600), Side.ABOVE, UTC) == (), "13 values of an hour"


def test_gaps_and_the_usual_spacing() -> None:
    past = history([1, 1, None, None, 1, None, 1])
    assert (past.gaps, round(past.coverage, 3)) == ((600, 300), 0.571)
    assert spacing(past.points) == 600
    assert spacing(past.points[:1]) == 0
