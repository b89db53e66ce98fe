"""Expressions of schedules: what Scheduler accepts passes, and what it refuses has an error that says what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from troop.bench.records.schedule import check_expression, check_name, check_zone
from troop.shared.values import BadValue

NOW = datetime(2027, 1, 31, 2, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "expression",
    [
        "rate(6 hours)",
        "rate(1 day)",
        "cron(0 3 ? * MON-FRI *)",
        "cron(0/15 8-18 1,15 JAN-MAR ? 2027-2030)",
        "cron(5 */6 L * ? *)",
        "cron(0 10 ? * 2#1 *)",
        "cron(0 10 ? * FRIL *)",
        "cron(0 10 15W * ? *)",
        "at(2027-01-31T03:00:00)",
    ],
)
def test_valid_expression_is_accepted(expression: str) -> None:
    check_expression(expression, "UTC", NOW)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("every day", "such as rate"),
        ("rate(0 hours)", "such as rate"),
        ("rate(1 week)", "such as rate"),
        ("cron(0 3 * * MON)", "6 fields, not 5"),
        ("cron(0 3 * * * *)", "not both"),
        ("cron(0 3 ? * ? *)", "not both"),
        ("cron(60 3 ? * MON *)", "0 to 59 for the minutes"),
        ("cron(0 24 ? * MON *)", "0 to 23 for the hours"),
        ("cron(0 3 ? 13 MON *)", "1 to 12 for the month"),
        ("cron(0 3 ? * FOO *)", "valid field for the day of the week"),
        ("cron(? 3 ? * MON *)", "valid field for the minutes"),
        ("cron(0 3 32W * ? *)", "1 to 31 for the day of the month"),
        ("at(2027-02-30T03:00:00)", "that exist"),
        ("at(2027-01-31T02:30:00)", "in the future"),
    ],
)
def test_bad_expression_is_refused_with_a_reason(expression: str, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        check_expression(expression, "UTC", NOW)


def test_a_moment_is_past_in_its_own_zone() -> None:
    check_expression("at(2027-01-31T03:00:00)", "America/New_York", NOW)
    with pytest.raises(BadValue, match="2027-01-31T03:30"):
        check_expression("at(2027-01-31T03:00:00)", "Europe/Berlin", NOW)


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd"])
def test_a_zone_exists(zone: str) -> None:
    with pytest.raises(BadValue):
        check_zone(zone)


@pytest.mark.parametrize("name", ["", "1st", "a b", "x" * 49, "a/b"])
def test_a_name_fits_scheduler_and_a_path(name: str) -> None:
    with pytest.raises(BadValue):
        check_name(name)
