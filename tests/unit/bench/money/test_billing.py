"""How long something is paid for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.money import BILLINGS, HOURLY, PER_SECOND
from troop.bench.money.billing import HOUR, billed, hours, months, seconds_between

DAYS = 24 * HOUR


@pytest.mark.parametrize(
    ("seconds", "by_second", "by_hour"),
    [
        (0, 60, 1),
        (1, 60, 1),
        (59, 60, 1),
        (60, 60, 1),
        (60.001, 61, 1),
        (61, 61, 1),
        (HOUR - 1, HOUR - 1, 1),
        (HOUR, HOUR, 1),
        (HOUR + 0.5, HOUR + 1, 2),
        (HOUR + 1, HOUR + 1, 2),
        (66 * 60, 66 * 60, 2),
        (3 * DAYS, 3 * DAYS, 72),
        (3 * DAYS + 1, 3 * DAYS + 1, 73),
        (31 * DAYS - 1, 31 * DAYS - 1, 744),
    ],
)
def test_billed_time_is_rounded_by_second_or_hour(seconds: float, by_second: int, by_hour: int) -> None:
    assert billed(seconds, PER_SECOND) == by_second
    assert hours(billed(seconds, HOURLY)) == by_hour


@given(st.floats(0, 40 * DAYS), st.floats(0, 40 * DAYS), st.sampled_from(BILLINGS))
def test_longer_time_is_never_cheaper_and_is_always_covered(one: float, other: float, billing: str) -> None:
    shorter, longer = sorted((one, other))
    assert billed(shorter, billing) <= billed(longer, billing)
    assert longer <= billed(longer, billing) < longer + (HOUR + 1 if billing == HOURLY else 61)
    assert billed(longer, PER_SECOND) <= billed(longer, HOURLY)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (datetime(2026, 3, 29, 0, tzinfo=UTC), datetime(2026, 3, 29, 3, tzinfo=UTC)),  # a clock is put forward
        (datetime(2026, 10, 25, 0, tzinfo=UTC), datetime(2026, 10, 25, 3, tzinfo=UTC)),  # and back
        (datetime(2026, 10, 25, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 10, 25, 3, tzinfo=UTC)),
    ],
)
def test_the_hours_of_clocks_that_are_put_on_and_back_do_not_count(start: datetime, end: datetime) -> None:
    assert seconds_between(start, end) == 3 * HOUR


def test_a_clock_that_goes_back_costs_nothing_but_the_least() -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    assert seconds_between(now, now - timedelta(seconds=3)) == 0


def test_a_month_of_storage_has_thirty_days() -> None:
    assert months(30 * DAYS) == 1
