"""Cron expressions: as text, and by the minutes they hit."""

from __future__ import annotations

import pytest

from infra.schedules import cron_expression
from troop.shared.calendars import Calendar, clock
from troop.shared.values import minute_of_day

MONDAY_TO_FRIDAY = range(5)
SUNDAY_TO_THURSDAY = (6, 0, 1, 2, 3)


def calendar(opens: str, closes: str, weekdays: object = MONDAY_TO_FRIDAY) -> Calendar:
    days = frozenset(weekdays)  # type: ignore[call-overload]
    return Calendar("default", "Europe/Vienna", days, minute_of_day(opens), minute_of_day(closes))


@pytest.mark.parametrize(
    ("opens", "closes", "weekdays", "tick", "expression"),
    [
        ("09:00", "15:00", MONDAY_TO_FRIDAY, 15, "cron(0/15 9-15 ? * MON,TUE,WED,THU,FRI *)"),
        ("09:00", "15:01", MONDAY_TO_FRIDAY, 15, "cron(0/15 9-15 ? * MON,TUE,WED,THU,FRI *)"),
        ("09:30", "15:10", SUNDAY_TO_THURSDAY, 15, "cron(0/15 9-15 ? * MON,TUE,WED,THU,SUN *)"),
        ("09:30", "15:10", SUNDAY_TO_THURSDAY, 5, "cron(0/5 9-15 ? * MON,TUE,WED,THU,SUN *)"),
        ("18:00", "24:00", (4, 5), 10, "cron(0/10 18-23 ? * FRI,SAT *)"),
        ("00:00", "24:00", range(7), 1, "cron(* 0-23 ? * MON,TUE,WED,THU,FRI,SAT,SUN *)"),
        ("09:10", "09:50", (5,), 15, "cron(0/15 9 ? * SAT *)"),
        ("23:00", "24:00", (6,), 1, "cron(* 23 ? * SUN *)"),
    ],
)
def test_expression(opens: str, closes: str, weekdays: object, tick: int, expression: str) -> None:
    assert cron_expression(calendar(opens, closes, weekdays), tick) == expression


@pytest.mark.parametrize("tick", [1, 5, 10, 15])
@pytest.mark.parametrize(
    ("opens", "closes"), [("09:00", "15:00"), ("09:30", "15:10"), ("00:00", "24:00"), ("07:59", "08:20")]
)
def test_no_tick_of_the_window_is_left_out_and_none_is_an_hour_off(opens: str, closes: str, tick: int) -> None:
    window = calendar(opens, closes)
    hit = _minutes(cron_expression(window, tick))
    expected = {m for m in range(window.open_minute, window.close_minute) if m % tick == 0}
    assert expected <= hit
    superfluous = {clock(m) for m in hit - expected if not window.open_minute - 60 < m < window.close_minute + 60}
    assert not superfluous


@pytest.mark.parametrize(
    ("opens", "closes"), [("09:00", "15:00"), ("09:30", "15:10"), ("07:59", "08:20"), ("20:00", "23:00")]
)
def test_a_tick_comes_after_the_window_to_sweep_up(opens: str, closes: str) -> None:
    window = calendar(opens, closes)
    assert max(_minutes(cron_expression(window, 15))) >= window.close_minute


def _minutes(expression: str) -> set[int]:
    """Minutes of the day an expression fires at."""
    minutes, hours, *_ = expression.removeprefix("cron(").split()
    step = 1 if minutes == "*" else int(minutes.removeprefix("0/"))
    first, _, last = hours.partition("-")
    return {h * 60 + m for h in range(int(first), int(last or first) + 1) for m in range(0, 60, step)}
