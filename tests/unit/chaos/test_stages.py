"""The stages of a recovery: from AWS's own moments, and not known where AWS says nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.chaos.build import at
from troop.chaos.stages import (
    MOST_ACTIVITIES,
    Activity,
    HealthySince,
    Stages,
    first_return,
    last_failure,
    observe,
)

REQUESTED = at("12:00:02").replace(microsecond=250_000)
VICTIM, NEW, OTHER = "i-0a", "i-0b", "i-0c"


def seconds(count: float) -> datetime:
    return REQUESTED + timedelta(seconds=count)


def launching(instance: str, start: float, end: float | None = None, status: str = "") -> Activity:
    status = status or ("InProgress" if end is None else "Successful")
    ended = None if end is None else seconds(end)
    return Activity(f"Launching a new EC2 instance: {instance}", status, seconds(start), ended)


END = Activity(f"Terminating EC2 instance: {VICTIM}", "Successful", seconds(3), seconds(40))


def observed(*activities: Activity, earlier: Stages | None = None, now: float = 60, **more: Any) -> Stages:
    values: dict[str, Any] = {"running": {}, "healthy": {}} | more
    return observe(earlier, activities, VICTIM, REQUESTED, now=seconds(now), **values)


def test_all_stages_of_a_replacement() -> None:
    running = {OTHER: seconds(1), NEW: seconds(20)}
    healthy = {"tg-1": frozenset({NEW}), "tg-2": frozenset({OTHER})}
    assert observed(END, launching(NEW, 9, 35), running=running, healthy=healthy) == Stages(
        noticed=seconds(3),
        launched=seconds(9),
        running=seconds(20),
        in_service=seconds(35),
        healthy=(HealthySince("tg-1", seconds(60)), HealthySince("tg-2")),
    )


def test_a_replacement_is_in_service_when_its_launch_has_ended_well() -> None:
    assert observed(launching(NEW, 9)).in_service is None
    waiting = replace(launching(NEW, 9, 35), status="WaitingForInstanceWarmup")
    assert observed(waiting).in_service is None


@pytest.mark.parametrize(
    "description",
    [
        "Launching a new EC2 instance",
        "Launching a new EC2 instance.  Status Reason: no capacity.",
        "Launching a new EC2 instance from warm pool: i-0b",
        "Attaching an existing EC2 instance: i-0b",
        "Launching a new instance: i-0b",
        "Launching a new EC2 instance: web-1",
        "See: Launching a new EC2 instance: i-0b",
        "",
    ],
)
def test_a_description_in_other_words_tells_nothing(description: str) -> None:
    assert observed(Activity(description, "Successful", seconds(9), seconds(35))) == Stages()


def test_words_after_the_instance_do_not_matter() -> None:
    draining = replace(END, description=f"{END.description} - Waiting For ELB connection draining.")
    assert observed(draining).noticed == seconds(3)


def test_another_instance_that_ends_is_not_the_victim() -> None:
    assert observed(replace(END, description=f"Terminating EC2 instance: {OTHER}")).noticed is None


def test_the_first_launch_since_counts_and_no_failed_one() -> None:
    before, failed = launching(OTHER, -60, -20), launching("i-0d", 5, 6, "Failed")
    assert observed(launching(OTHER, 30, 50), launching(NEW, 9, 35), failed, before).launched == seconds(9)


def test_a_launch_in_the_second_of_the_termination_counts() -> None:
    launch = replace(launching(NEW, 0, 35), started=REQUESTED.replace(microsecond=0))
    assert observed(launch).launched == REQUESTED.replace(microsecond=0)


def test_known_stages_stay_when_activities_are_gone() -> None:
    healthy = {"tg": frozenset({NEW})}
    known = observed(END, launching(NEW, 9, 35), running={NEW: seconds(20)}, healthy=healthy)
    assert observed(earlier=known, now=90, healthy=healthy) == known
    assert observed(launching(NEW, 9), earlier=known, now=90, healthy=healthy) == known


def test_the_first_check_of_a_healthy_replacement_counts() -> None:
    launch = launching(NEW, 9, 35)
    waits = observed(launch, now=40, healthy={"tg": frozenset()})
    assert waits.healthy == (HealthySince("tg"),)
    later = observed(launch, earlier=waits, now=44, healthy={"tg": frozenset({NEW})})
    assert later.healthy == (HealthySince("tg", seconds(44)),)
    assert observed(launch, earlier=later, now=48, healthy={"tg": frozenset()}) == later


def test_stages_of_an_instance_that_failed_are_dropped() -> None:
    first = observed(END, launching(OTHER, 9), running={OTHER: seconds(20)}, healthy={"tg": frozenset({OTHER})})
    failed = replace(launching(OTHER, 9, 50), status="Cancelled")
    second = observed(failed, launching(NEW, 55), earlier=first, healthy={"tg": frozenset()})
    assert second == Stages(noticed=seconds(3), launched=seconds(55), healthy=(HealthySince("tg"),))


def test_without_activities_the_sources_are_named() -> None:
    assert observed(healthy={"tg": frozenset({NEW})}) == Stages(healthy=(HealthySince("tg"),))


def test_the_last_failure_since_counts() -> None:
    failures = [
        replace(launching(NEW, n, n + 1, status), message=message)
        for n, status, message in ((-9, "Failed", "of before"), (5, "Failed", "first"), (9, "Cancelled", "last"))
    ]
    assert last_failure([*failures, launching(NEW, 20, 30)], REQUESTED) == "last"
    assert last_failure(failures[:1], REQUESTED) == ""


def test_a_replacement_runs_no_earlier_than_it_was_launched() -> None:
    in_whole_seconds = {NEW: at("12:00:11")}
    assert observed(launching(NEW, 9.4), running=in_whole_seconds).running == seconds(9.4)
    assert observed(launching(NEW, 8.6), running=in_whole_seconds).running == at("12:00:11")


@pytest.mark.parametrize(
    ("activities", "returned"),
    [
        ((END, launching(NEW, 9, 35)), 35),
        ((END, launching(NEW, 9, 35), launching(OTHER, 12, 20)), 20),
        ((END, launching(NEW, 9, 35, "Failed"), launching(OTHER, 12, 50)), 50),
        ((launching(OTHER, -30, 10), launching(NEW, 9, 35)), 10),
        ((launching(OTHER, -90, -60), launching(NEW, 9, 35)), 35),
        ((END, launching(NEW, 9)), None),
        ((), None),
        ((Activity("Attaching an existing EC2 instance: i-0c", "Successful", seconds(5), seconds(8)),), None),
        ((*[launching(OTHER, 12, 20)] * MOST_ACTIVITIES,), None),
    ],
)
def test_the_first_instance_that_returned(activities: tuple[Activity, ...], returned: float | None) -> None:
    expected = None if returned is None else seconds(returned)
    assert first_return(activities, REQUESTED) == expected
