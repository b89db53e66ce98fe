"""Recovery: the victim serves no more, the capacity is what it has to be, twice in a row, in the group's own units."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import at, event, group, instance
from troop.chaos.events import Event, Status, Watch
from troop.chaos.groups import Group, Instance
from troop.chaos.recovery import TARGETS_WAIT, Assessment, assess, no_sooner, watch_lost

Targets = dict[str, frozenset[str]]

TIMEOUT = timedelta(minutes=30)
KILLED = at("12:00:02")
VICTIM = instance(0)


def seconds(count: float) -> datetime:
    """So long after the termination."""
    return KILLED + timedelta(seconds=count)


def serving(*instances: Instance, desired: int = 3, **changes: Any) -> Group:
    return group(instances=instances, desired=desired, **changes)


REPLACED = serving(instance(1), instance(2), instance(3))
DEGRADED = serving(instance(1), instance(2))


def assessment(
    seen: Group | None, now: datetime, watched: Event | None = None, healthy: Targets | None = None
) -> Assessment:
    return assess(watched or event(), seen, healthy or {}, now, now, TIMEOUT)


def watch(*looks: tuple[float, Group | None]) -> Assessment:
    """The last of several looks, each given what those before it have shown."""
    watched, last = event(), None
    for after, seen in looks:
        last = assessment(seen, seconds(after), watched)
        watched = replace(watched, watch=last.watch)
    assert last is not None
    return last


def whole(seen: Group, **changes: Any) -> bool:
    """Whether one look shows the group whole."""
    return assessment(seen, seconds(60), event(**changes)).watch.whole == 1


# ------------------------------------------------------------------ twice in a row


def test_a_group_is_recovered_when_it_was_seen_whole_twice_in_a_row() -> None:
    seen = watch((5, DEGRADED), (40, REPLACED), (43, REPLACED))
    assert (seen.status, seen.recovered_at, seen.wait_seconds) == (Status.RECOVERED, seconds(40), 0)
    assert seen.detail == "capacity 3 of 3 in service"
    assert replace(event(), recovered_at=seen.recovered_at).recovery_seconds == 40


def test_once_is_not_enough() -> None:
    seen = watch((5, DEGRADED), (40, REPLACED))
    assert (seen.status, seen.recovered_at) == (None, None)
    assert seen.watch == Watch(checks=2, whole=1, whole_since=seconds(40), checked_at=seconds(40), short_at=seconds(5))
    assert 0 < seen.wait_seconds <= 5


def test_observation_with_fewer_healthy_instances_restarts_the_wait() -> None:
    seen = watch((40, REPLACED), (43, DEGRADED), (60, REPLACED))
    assert seen.status is None
    assert seen.watch.whole_since == seconds(60)
    seen = watch((40, REPLACED), (43, DEGRADED), (60, REPLACED), (63, REPLACED))
    assert (seen.status, seen.recovered_at) == (Status.RECOVERED, seconds(60))


# ------------------------------------------------------------------ what is whole


@pytest.mark.parametrize(
    ("case", "seen", "changes", "is_whole"),
    [
        ("the victim replaced", REPLACED, {}, True),
        ("one short", DEGRADED, {}, False),
        ("the victim still in service", serving(VICTIM, instance(1), instance(2)), {}, False),
        (
            "the victim still in service beside its replacement",
            serving(VICTIM, instance(1), instance(2), instance(3)),
            {},
            False,
        ),
        (
            "the victim on its way out",
            serving(replace(VICTIM, lifecycle="Terminating"), instance(1), instance(2), instance(3)),
            {},
            True,
        ),
        ("a replacement that boots", serving(instance(1), instance(2), instance(3, lifecycle="Pending")), {}, False),
        ("a replacement that is ill", serving(instance(1), instance(2), instance(3, health="Unhealthy")), {}, False),
        ("scaled in meanwhile", replace(DEGRADED, desired=2), {}, True),
        ("scaled in to nothing meanwhile", serving(desired=0), {}, True),
        ("scaled out meanwhile", replace(REPLACED, desired=9), {}, True),
        ("scaled out meanwhile, and one short of before", replace(DEGRADED, desired=9), {}, False),
        (
            "by weight: one big one makes up for two",
            serving(instance(1, weight=4), instance(2, weight=8), desired=12),
            {"desired": 12},
            True,
        ),
        (
            "by weight: three in number, but not in capacity",
            serving(instance(1, weight=1), instance(2, weight=1), instance(3, weight=1), desired=12),
            {"desired": 12},
            False,
        ),
    ],
)
def test_whole(case: str, seen: Group, changes: dict[str, Any], is_whole: bool) -> None:
    assert whole(seen, **changes) is is_whole


def test_the_detail_says_how_much_is_missing() -> None:
    assert assessment(DEGRADED, seconds(5)).detail == "capacity 2 of 3 in service"
    with_victim = serving(VICTIM, instance(1), instance(2))
    assert (
        assessment(with_victim, seconds(5)).detail == "capacity 3 of 3 in service, including the instance that was hit"
    )


ALL = frozenset(instance(n).instance_id for n in range(1, 4))


@pytest.mark.parametrize(
    ("targets", "is_whole"),
    [
        ({"a": ALL}, True),
        ({"a": ALL, "b": ALL}, True),
        ({"a": ALL - {instance(3).instance_id}}, False),
        ({"a": ALL, "b": ALL - {instance(3).instance_id}}, False),
        ({"a": frozenset()}, False),
        ({}, True),
    ],
)
def test_instances_count_when_they_are_healthy_in_every_target_group(
    targets: dict[str, frozenset[str]], is_whole: bool
) -> None:
    seen = assessment(replace(REPLACED, target_groups=tuple(targets)), seconds(60), healthy=targets)
    assert (seen.watch.whole == 1) is is_whole


@pytest.mark.parametrize("field", ["load_balancers", "lattice_groups"])
def test_a_load_balancer_of_any_kind_has_its_say(field: str) -> None:
    more: dict[str, Any] = {field: ("b",)}
    seen = replace(REPLACED, target_groups=("a",), **more)
    assert assessment(seen, seconds(60), healthy={"a": ALL, "b": ALL - {instance(3).instance_id}}).watch.whole == 0
    assert assessment(seen, seconds(60), healthy={"a": ALL, "b": ALL}).watch.whole == 1


# ------------------------------------------------------------------ the end of the watch


def test_a_group_that_is_not_whole_in_time_is_unrecovered() -> None:
    assert assessment(DEGRADED, KILLED + TIMEOUT).status is None
    late = assessment(DEGRADED, KILLED + TIMEOUT + timedelta(seconds=1))
    assert (late.status, late.recovered_at) == (Status.UNRECOVERED, None)
    assert late.detail == "capacity 2 of 3 in service after 30 minutes"


def test_a_group_seen_whole_at_the_last_moment_is_looked_at_once_more() -> None:
    assert watch((1799, REPLACED)).status is None
    assert watch((1799, REPLACED), (1802, REPLACED)).status is Status.RECOVERED
    assert watch((1799, REPLACED), (1802, DEGRADED)).status is Status.UNRECOVERED


def test_a_group_that_was_deleted_needs_no_recovery() -> None:
    gone = assessment(None, seconds(5))
    assert (gone.status, gone.detail) == (Status.GROUP_DELETED, "group web was deleted")


def test_time_runs_from_the_termination_or_the_claim_if_that_is_all_there_is() -> None:
    claimed_at = event(terminated_at=None)
    assert assessment(DEGRADED, claimed_at.at + TIMEOUT + timedelta(seconds=1), claimed_at).status is Status.UNRECOVERED


@given(st.lists(st.booleans(), min_size=31, max_size=31))
def test_every_watch_ends(shown: list[bool]) -> None:
    """The workflow calls again every two minutes."""
    watched, now = event(), KILLED
    for is_whole in shown:
        seen = assessment(REPLACED if is_whole else DEGRADED, now, watched)
        if seen.status:
            assert (seen.status is Status.RECOVERED) == is_whole
            return
        watched, now = replace(watched, watch=seen.watch), now + timedelta(seconds=seen.wait_seconds or 120)
    assert now - KILLED <= TIMEOUT + timedelta(seconds=120)


@pytest.mark.parametrize(
    ("seen", "waits"),
    [
        (DEGRADED, False),
        (REPLACED, True),
        (serving(VICTIM, instance(1), instance(2)), False),
        (serving(VICTIM, instance(1), instance(2), instance(3)), False),
        (serving(instance(1), instance(2), instance(3, lifecycle="Pending")), False),
    ],
)
def test_another_check_is_soon_if_only_targets_are_not_healthy(seen: Group, waits: bool) -> None:
    """No event tells of them. Of all else Auto Scaling does."""
    behind = replace(seen, target_groups=("tg",))
    looked = assessment(behind, seconds(60), healthy={"tg": frozenset()})
    assert (looked.status, looked.watch.whole) == (None, 0)
    assert looked.wait_seconds == (TARGETS_WAIT if waits else 0)
    assert TARGETS_WAIT <= 5


def test_recovery_is_after_the_last_check_of_a_short_group() -> None:
    assert watch((5, DEGRADED), (40, DEGRADED)).watch.short_at == seconds(40)
    assert watch((5, DEGRADED), (40, DEGRADED), (44, REPLACED)).watch.short_at == seconds(40)
    assert watch((44, REPLACED)).watch.short_at is None
    flapping = watch((5, DEGRADED), (40, REPLACED), (43, DEGRADED), (60, REPLACED), (63, REPLACED))
    assert (flapping.watch.short_at, flapping.recovered_at) == (seconds(43), seconds(60))


def test_a_slow_check_bounds_the_recovery_by_when_it_began() -> None:
    """The group can become whole while the check still reads its traffic sources."""
    seen = assess(event(), DEGRADED, {}, seconds(5), seconds(30), TIMEOUT)
    assert (seen.watch.short_at, seen.watch.checked_at) == (seconds(5), seconds(30))
    seen = assess(event(), REPLACED, {}, seconds(40), seconds(50), TIMEOUT)
    assert seen.watch.whole_since == seconds(50)


@pytest.mark.parametrize(
    ("changes", "after", "lost"),
    [
        ({}, 299, False),
        ({}, 301, True),
        ({"watch": Watch(checks=3, checked_at=KILLED + timedelta(seconds=500))}, 700, False),
        ({"watch": Watch(checks=3, checked_at=KILLED + timedelta(seconds=500))}, 801, True),
        ({"status": Status.CLAIMED}, 9999, False),
        ({"status": Status.RECOVERED}, 9999, False),
    ],
)
def test_a_watch_is_lost_when_nobody_has_looked_for_five_minutes(
    changes: dict[str, Any], after: int, lost: bool
) -> None:
    assert watch_lost(event(**changes), seconds(after)) is lost


@pytest.mark.parametrize(
    ("short", "returned", "bound"),
    [
        (5, 60, 60),
        (80, 60, 80),
        (None, 60, 60),
        (5, 101.5, 100),  # the other clock is ahead
        (5, 103, 5),  # the group was whole without that instance
        (5, None, 5),
        (None, None, None),
    ],
)
def test_no_recovery_before_an_instance_returned(
    short: float | None, returned: float | None, bound: float | None
) -> None:
    def moment(seconds: float | None) -> datetime | None:
        return None if seconds is None else at("12:00") + timedelta(seconds=seconds)

    recovered_at = at("12:00") + timedelta(seconds=100)
    assert no_sooner(Watch(short_at=moment(short)), moment(returned), recovered_at).short_at == moment(bound)
