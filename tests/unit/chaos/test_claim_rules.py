"""ClaimTransaction: how long one holds, and what is made of one that was left behind."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import at, calendar, event
from troop.chaos.claim_rules import (
    GRACE,
    LAST_CALL,
    LONGEST_CLAIM,
    abandon_reason,
    deadline,
    is_stale,
    may_carry_out,
    reconciled,
)
from troop.chaos.events import OPEN, STEPS, AbandonReason, Status

DEADLINE = at("12:10")


def claim(**changes: Any) -> Any:
    return event(**{"status": Status.CLAIMED, "attempted_at": None, "terminated_at": None, **changes})


@pytest.mark.parametrize(
    ("begins", "ends"),
    [("12:00", "12:10"), ("14:49", "14:59"), ("14:50", "15:00"), ("14:51", "15:00"), ("14:59:59", "15:00")],
)
def test_a_claim_lasts_ten_minutes_and_never_beyond_the_window(begins: str, ends: str) -> None:
    assert deadline(at(begins), calendar()) == at(ends)


def test_on_demand_no_window_ends_a_claim() -> None:
    assert deadline(at("14:55"), None) == at("15:05")


def test_deadline_is_in_utc_in_whatever_zone_the_claim_is() -> None:
    vienna = at("14:55").astimezone(ZoneInfo("Europe/Vienna"))
    assert deadline(vienna, calendar()) == at("15:00")
    assert deadline(vienna, calendar()).tzinfo is UTC
    assert deadline(vienna, None).tzinfo is UTC


@given(
    day=st.sampled_from([date(2026, 10, 24), date(2026, 10, 25), date(2027, 3, 27), date(2027, 3, 28)]),
    closes=st.sampled_from(["02:30", "03:00", "15:00", "24:00"]),
    before=st.integers(0, 4000),
)
def test_claim_that_begins_in_an_open_calendar_ends_while_it_is_open(day: date, closes: str, before: int) -> None:
    """Also on the nights on which the clocks change."""
    night = calendar(time_zone="Europe/Vienna", country=None, weekdays=["SAT", "SUN"], open="00:30", close=closes)
    moment = night.window(day)[1] - timedelta(seconds=before)
    if night.at(moment).closure:
        return
    end = deadline(moment, night)
    assert moment < end <= moment + LONGEST_CLAIM
    last = end - timedelta(seconds=1)
    assert last < moment or night.at(last).closure is None


@pytest.mark.parametrize(
    ("changes", "now", "allowed"),
    [
        ({}, DEADLINE - LAST_CALL - timedelta(seconds=1), True),
        ({}, DEADLINE - LAST_CALL, False),
        ({}, DEADLINE, False),
        ({}, DEADLINE + timedelta(days=1), False),
        ({"deadline": None}, at("12:00"), False),
        *(({"status": status}, at("12:00"), False) for status in Status if status is not Status.CLAIMED),
    ],
)
def test_a_claim_is_carried_out_only_while_there_is_time(changes: dict[str, Any], now: datetime, allowed: bool) -> None:
    assert may_carry_out(claim(**changes), now) is allowed


@pytest.mark.parametrize(
    ("changes", "now", "stale"),
    [
        ({}, DEADLINE, False),
        ({}, DEADLINE + GRACE, False),
        ({}, DEADLINE + GRACE + timedelta(seconds=1), True),
        ({"deadline": None}, DEADLINE + timedelta(days=1), False),
        *(
            ({"status": status}, DEADLINE + timedelta(days=1), False)
            for status in Status
            if status is not Status.CLAIMED
        ),
    ],
)
def test_a_claim_is_reconciled_only_when_nobody_can_carry_it_out_any_more(
    changes: dict[str, Any], now: datetime, stale: bool
) -> None:
    assert is_stale(claim(**changes), now) is stale


@given(st.integers(-150, 150), st.integers(-89, 89))
def test_no_clock_ninety_seconds_off_executes_a_claim_that_another_reconciles(after: int, skew: int) -> None:
    """Grace and last call together: 90 seconds between the two."""
    now = DEADLINE + timedelta(seconds=after)
    assert not (may_carry_out(claim(), now) and is_stale(claim(), now + timedelta(seconds=skew)))


@pytest.mark.parametrize(
    ("attempted", "gone", "status", "detail"),
    [
        (None, False, Status.ABANDONED, "the deadline passed and the instance lives"),
        (None, True, Status.GONE_ELSEWHERE, "the instance was terminated by somebody else"),
        ("12:00:01", True, Status.TERMINATED, "found terminated after the deadline"),
        (
            "12:00:01",
            False,
            Status.ABANDONED,
            "the deadline passed and the instance lives, though AWS was asked to terminate it",
        ),
    ],
)
def test_stale_claim_is_reconciled_with_the_state_of_its_instance(
    attempted: str | None, gone: bool, status: Status, detail: str
) -> None:
    left = claim(attempted_at=at(attempted) if attempted else None)
    assert reconciled(left, gone) == (status, detail)
    assert status in STEPS[Status.CLAIMED]


@pytest.mark.parametrize(
    ("status", "cause", "expected"),
    [
        (Status.ABANDONED, AbandonReason.SWITCHED_OFF, AbandonReason.SWITCHED_OFF),
        (Status.ABANDONED, None, AbandonReason.REFUSED),
        (Status.GONE_ELSEWHERE, None, AbandonReason.GONE),
        *((status, None, None) for status in Status if status not in (Status.ABANDONED, Status.GONE_ELSEWHERE)),
    ],
)
def test_why_a_claim_came_to_nothing_is_a_code(
    status: Status, cause: AbandonReason | None, expected: AbandonReason | None
) -> None:
    assert abandon_reason(event(status=status, cause=cause, detail="chaos was halted")) is expected


def test_steps_lead_from_the_claim_to_an_end_and_never_back() -> None:
    order = [Status.LEASHED, Status.CLAIMED, Status.RUNNING, Status.TERMINATED]
    assert list(STEPS) == order
    for earlier, later in pairwise(order):
        assert later in STEPS[earlier]
    final = set(Status) - set(STEPS)
    assert set(STEPS[Status.TERMINATED]) <= final
    assert {Status.CLAIMED, Status.RUNNING, Status.TERMINATED} == OPEN
    assert not OPEN & final
