"""What the reaper does about which run, and what it takes for left behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition import names
from troop.bench.records.record import Kind, Run, RunStatus
from troop.bench.removal.reaping import (
    ENDS_WITHIN,
    PATIENCE,
    RESTARTS,
    TEARDOWN_TIME,
    overdue,
    settled,
    start_after_run,
    start_after_teardown,
    strays,
)
from troop.bench.removal.teardown import Seen

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ID = "20261120-120000-00000001"
RUN = Run(ID, "b", NOON, expires_at=NOON + timedelta(hours=2), requested_by="ann", cells=1, nodes=2)
ENDED = replace(RUN, closed_at=NOON, ended_at=NOON)
MINUTE = timedelta(minutes=1)
LATER = NOON + 30 * MINUTE


@pytest.mark.parametrize(
    ("status", "run", "started"),
    [
        ("FAILED", RUN, True),
        ("TIMED_OUT", RUN, True),
        ("ABORTED", RUN, True),
        ("ABORTED", replace(RUN, closed_at=NOON), True),
        ("SUCCEEDED", RUN, False),
        ("RUNNING", RUN, False),
        ("FAILED", ENDED, False),
        ("FAILED", None, False),
    ],
)
def test_failed_execution_starts_the_teardown_of_an_open_run(status: str, run: Run | None, started: bool) -> None:
    start = start_after_run(ID, status, run)
    assert (start is not None) == started
    if start:
        assert (start.run, start.name, start.stop) == (ID, f"{ID}-1", False)
        assert start.status is RunStatus.FAILED


def test_the_end_of_an_execution_that_another_one_continues_means_nothing() -> None:
    run = replace(RUN, execution=f"arn:aws:states:eu-central-1:1:execution:fleet:{ID}-3")
    assert start_after_run(f"{ID}-2", "FAILED", run) is None
    assert start_after_run(ID, "FAILED", run) is None
    start = start_after_run(f"{ID}-3", "FAILED", run)
    assert start is not None
    assert (start.run, start.name) == (ID, f"{ID}-1")


@pytest.mark.parametrize("execution", [None, "arn", f"arn:aws:states:eu-central-1:1:execution:fleet:{ID}"])
def test_the_first_execution_has_the_name_of_its_run(execution: str | None) -> None:
    assert replace(RUN, execution=execution).execution_name == ID


def test_executions_of_a_fleet_count_on() -> None:
    later = [ID]
    for _ in range(11):
        later.append(names.following_execution(later[-1]))
    assert (later[1], later[11]) == (f"{ID}-2", f"{ID}-12")
    assert {names.run_of_execution(name) for name in later} == {ID}


def test_failed_teardown_is_restarted_a_limited_number_of_times() -> None:
    name, started = "a-name-of-its-own", []
    while start := start_after_teardown(name, {"run": ID}, "FAILED", RUN):
        name = start.name
        started.append(name)
    assert started == [f"{ID}-{number + 1}" for number in range(RESTARTS)]
    assert start_after_teardown("x", {"run": ID}, "FAILED", ENDED) is None
    assert start_after_teardown("x", {"run": ID}, "SUCCEEDED", RUN) is None
    assert start_after_teardown("x", {"run": ID}, "FAILED", None) is None
    assert start_after_teardown("x", {"run": ID, "cell": "c001"}, "FAILED", RUN) is None, "its run goes on"
    assert start_after_teardown("x", {"run": ID, "cell": ""}, "FAILED", RUN)


@pytest.mark.parametrize(
    ("run", "execution", "tearing_down", "now", "stop", "words"),
    [
        (RUN, "RUNNING", False, LATER, None, ""),
        (RUN, "RUNNING", False, RUN.expires_at - MINUTE, None, ""),
        (RUN, "RUNNING", False, RUN.expires_at + ENDS_WITHIN - MINUTE, None, ""),
        (RUN, "RUNNING", False, RUN.expires_at + ENDS_WITHIN, True, "expired"),
        (RUN, "RUNNING", True, RUN.expires_at, None, ""),
        (replace(RUN, closed_at=RUN.expires_at - MINUTE), "RUNNING", False, RUN.expires_at, None, ""),
        (replace(RUN, closed_at=NOON), "RUNNING", False, NOON + TEARDOWN_TIME + ENDS_WITHIN, True, "expired"),
        (RUN, "ABORTED", False, LATER, False, "stopped"),
        (RUN, "TIMED_OUT", False, LATER, False, "took too long"),
        (RUN, "SUCCEEDED", False, LATER, False, "has ended"),
        (RUN, None, False, LATER, False, "never started"),
        (RUN, "ABORTED", False, NOON + PATIENCE - MINUTE, None, ""),
        (RUN, None, False, NOON + PATIENCE - MINUTE, None, ""),
        (RUN, "ABORTED", True, LATER, None, ""),
        (ENDED, "ABORTED", False, LATER, None, ""),
        (ENDED, "RUNNING", False, RUN.expires_at, None, ""),
    ],
)
def test_overdue_run_has_a_teardown(
    run: Run, execution: str | None, tearing_down: bool, now: datetime, stop: bool | None, words: str
) -> None:
    start = overdue(run, execution, tearing_down, now)
    assert (start.stop if start else None) is stop
    if start:
        assert words in start.reason
        assert start.name.startswith(f"{ID}-")
        assert start.name not in [f"{ID}-{number}" for number in range(10)], "those are of what was heard"


def test_each_quarter_of_an_hour_has_a_name_of_its_own() -> None:
    names = {start.name for n in range(5) if (start := overdue(RUN, None, False, LATER + n * PATIENCE))}
    assert len(names) == 5
    assert all(len(name) <= 80 for name in names)


def _seen(age: timedelta | None, now: datetime, run: str = ID) -> Seen:
    return Seen(run, "c001", Kind.INSTANCE, "i-1", "i-1", created_at=None if age is None else now - age)


@pytest.mark.parametrize(
    ("run", "now", "is_stray"),
    [
        (RUN, NOON + timedelta(hours=1), False),
        (RUN, RUN.expires_at + PATIENCE - MINUTE, False),
        (RUN, RUN.expires_at + PATIENCE, True),
        (replace(RUN, closed_at=RUN.expires_at + MINUTE), RUN.expires_at + PATIENCE, False),
        (replace(RUN, closed_at=NOON), NOON + timedelta(hours=1), False),
        (ENDED, NOON + PATIENCE - MINUTE, False),
        (ENDED, NOON + PATIENCE, True),
        (None, NOON + PATIENCE, False),
    ],
)
def test_whose_things_are_left_behind(run: Run | None, now: datetime, is_stray: bool) -> None:
    old, undated = _seen(timedelta(hours=5), now), _seen(None, now)
    assert strays([old, undated], {ID: run}, now) == ([old, undated] if is_stray else [])
    young = _seen(PATIENCE - MINUTE, now)
    assert strays([young], {ID: run}, now) == []


def test_resource_without_a_date_is_as_old_as_its_run() -> None:
    undated = _seen(None, NOON)
    assert settled([undated], NOON + PATIENCE - MINUTE) == []
    assert settled([undated], NOON + PATIENCE) == [undated]
    for odd in ("by-hand", "20261399-120000-00000001"):
        by_hand = _seen(None, NOON, odd)
        assert settled([by_hand], NOON) == [by_hand]


@given(st.integers(-300, 600), st.integers(0, 600), st.integers(0, 600), st.booleans())
def test_a_run_that_is_open_and_has_time_is_never_robbed(age: int, now: int, expires: int, closed: bool) -> None:
    moment = NOON + now * MINUTE
    run = replace(RUN, expires_at=NOON + expires * MINUTE, closed_at=moment if closed else None)
    if moment < run.expires_at or closed:
        assert strays([_seen(age * MINUTE, moment), _seen(None, moment)], {ID: run}, moment) == []
