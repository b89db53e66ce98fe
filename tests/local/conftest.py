"""One local account for all tests in this directory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from local.launcher import LocalAccount

from .helpers import ZONE, Fleet, Scheduled, World

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All on one worker of pytest-xdist, as they share the account; what waits for a minute to pass comes last."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("local-account"))
    items.sort(key=_waits)


def _waits(item: pytest.Item) -> bool:
    return "next_minute" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def account() -> Iterator[LocalAccount]:
    with LocalAccount("contract", notice_seconds=0.5, wait_scale=1) as account:
        yield account


@pytest.fixture(scope="session")
def world(account: LocalAccount, request: pytest.FixtureRequest) -> World:
    world = World(account)
    if any(_waits(item) for item in request.session.items):
        request.getfixturevalue("next_minute")  # the minute passes while the other tests run
    return world


@pytest.fixture(scope="session")
def fleet(world: World) -> Iterator[Fleet]:
    fleet = Fleet(world.account)
    yield fleet
    for group in fleet.groups.describe_auto_scaling_groups()["AutoScalingGroups"]:
        fleet.groups.delete_auto_scaling_group(AutoScalingGroupName=group["AutoScalingGroupName"], ForceDelete=True)


@pytest.fixture(scope="session")
def next_minute(account: LocalAccount) -> tuple[Scheduled, datetime]:
    """Schedules for the coming minute, made as early as possible; the other tests run until it comes."""
    for ahead in (61, 121, 241, 481):
        scheduled = Scheduled(World(account))
        minute = (datetime.now(UTC) + timedelta(seconds=ahead)).replace(second=0, microsecond=0)
        local = minute.astimezone(ZoneInfo(ZONE))
        daily = f"cron({local.minute} {local.hour} * * ? *)"
        scheduled.create("zoned", daily, ScheduleExpressionTimezone=ZONE)
        scheduled.create("in-utc", daily)
        scheduled.create("disabled", daily, ScheduleExpressionTimezone=ZONE, State="DISABLED")
        weekday = f"{local:%a}".upper()
        scheduled.create("weekday", f"cron(* {local.hour} ? * {weekday} *)", ScheduleExpressionTimezone=ZONE)
        if datetime.now(UTC) < minute:  # else the minute has passed on a busy machine
            return scheduled, minute
    raise AssertionError("four schedules take longer to create than eight minutes")
