"""Barriers, and the moment all nodes start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import MEASURE, PREPARE, ROSTER, step
from troop.bench.definition.definition import PointPlace, Step
from troop.bench.definition.planned_fault import PlannedFault
from troop.bench.definition.roster import Roster
from troop.bench.measuring.barriers import BarrierState, barrier, began, is_released, margin, release
from troop.bench.measuring.poll_waits import wait, wait_in_phase

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)


def roster(nodes: int) -> Roster:
    """Nodes whose clocks are right to a quarter of a second."""
    return Roster(ROSTER.members[:nodes], 0.25)


@pytest.mark.parametrize("state", [BarrierState.HOLD, BarrierState.END])
def test_only_a_release_lets_nodes_go(state: BarrierState) -> None:
    assert not is_released(barrier(step(MEASURE), state))
    assert is_released(release(step(MEASURE), NOW, ROSTER))


def test_a_release_says_all_that_a_node_must_know() -> None:
    document = release(step(MEASURE), NOW, roster(3))
    assert document == {
        "format": "troop.barrier/1", "phase": "measure", "state": "release", "script": "read.py",
        "timeout_seconds": 600, "start_up_seconds": 0, "warm_up_seconds": 30, "measured_seconds": 300,
        "start_at": NOW.timestamp() + 9.06, "released_at": NOW.timestamp(),
    }  # fmt: skip
    assert began(document) == NOW + timedelta(seconds=9.06)


def test_a_script_gets_its_time_to_start_before_the_common_start() -> None:
    slow = replace(MEASURE, start_up=7)
    document = release(step(slow), NOW, roster(5))
    assert document["start_up_seconds"] == 7
    assert document["start_at"] == release(step(MEASURE), NOW, roster(5))["start_at"] + 7


def test_victims_learn_when_their_faults_begin_and_end_by_the_common_clock() -> None:
    faults = (
        PlannedFault(60, "script", "servers", script="restart.py", lasts=30),
        PlannedFault(120, "crash", unit="web"),
        PlannedFault(180, "slow", zone=2, delay=200, lasts=5),
        PlannedFault(240, "stop", "servers"),
    )
    document = release(step(replace(MEASURE, faults=faults)), NOW, ROSTER)
    begin = document["start_at"] + 30
    assert document["step_seconds"] == 1
    assert document["faults"] == [
        {
            "number": 1, "method": "script", "script": "restart.py", "delay_ms": None, "begin_at": begin + 60,
            "end_at": begin + 90, "nodes": ["i-s1"],
        },
        {
            "number": 3, "method": "slow", "script": None, "delay_ms": 200, "begin_at": begin + 180,
            "end_at": begin + 185, "nodes": ["i-s1"],
        },
        {
            "number": 4, "method": "stop", "script": None, "delay_ms": None, "begin_at": begin + 240, "end_at": None,
            "nodes": ["i-s1"],
        },
    ]  # fmt: skip


def test_a_fault_without_enough_nodes_has_none_in_the_barrier() -> None:
    faults = (PlannedFault(60, "crash", zone=1), PlannedFault(90, "stop", "servers", count=2))
    first, second = release(step(replace(MEASURE, faults=faults)), NOW, ROSTER)["faults"]
    assert (first["nodes"], second["nodes"]) == (["i-s0"], [])


def test_no_fault_happens_in_a_step_that_a_search_leaves_out() -> None:
    phase = replace(MEASURE, faults=(PlannedFault(60, "pause", "servers", lasts=30),))
    searched = Step(phase, "measure", PointPlace(1, 9, 1, {}))
    assert "faults" in release(searched, NOW, ROSTER)
    assert not release(searched.skipped(), NOW, ROSTER).keys() & {"faults", "step_seconds"}


def test_who_does_not_start_together_starts_at_once() -> None:
    document = release(step(PREPARE), NOW, roster(5))
    assert document["start_at"] is None
    assert began(document) == NOW


@given(st.integers(1, 10_000), st.floats(0, 1e6), st.floats(0, 10))
def test_the_margin_is_bounded_and_grows_with_doubt_and_nodes(nodes: int, doubt: float, more: float) -> None:
    assert 8 <= margin(nodes, doubt) <= 60
    assert margin(nodes + 100, doubt) >= margin(nodes, doubt)
    assert margin(nodes, doubt + more) >= margin(nodes, doubt)
    assert margin(nodes, doubt, skipped=8) >= min(40, margin(nodes, doubt))


@given(st.floats(0, 1e9))
def test_waits_are_whole_seconds_between_two_and_sixty(elapsed: float) -> None:
    assert isinstance(wait(elapsed), int)
    assert 2 <= wait(elapsed) <= 60


@given(st.floats(0, 1000), st.lists(st.floats(0, 1000), max_size=3))
def test_a_wait_ends_at_the_next_moment_at_which_there_is_something_to_decide(elapsed: float, at: list[float]) -> None:
    assert 2 <= wait(elapsed, at) <= wait(elapsed)
    for moment in at:
        assert moment <= elapsed or elapsed + wait(elapsed, at) <= max(moment + 1, elapsed + 2)


@given(st.integers(0, 3600), st.integers(0, 3600), st.floats(-60, 7200))
def test_a_measured_phase_is_looked_at_right_after_its_end(warm_up: int, measured: int, at: float) -> None:
    phase = replace(MEASURE, warm_up=warm_up, measured=measured)
    waited = wait_in_phase(phase, NOW, NOW + timedelta(seconds=at))
    assert 2 <= waited <= 60
    end = warm_up + measured if measured else 0
    if at < end:
        assert at + waited <= max(end + 2, at + 2), "not later than just after the end"
    assert waited <= max(2, abs(end - at) + 2)


def test_a_node_lost_in_a_long_phase_is_missed_within_a_minute() -> None:
    assert wait_in_phase(replace(MEASURE, measured=3600), NOW, NOW) == 60


@pytest.mark.parametrize(("looked", "now", "waited"), [(30, 30, 30), (30, 34, 26), (58, 61, 1), (60, 61, 60)])
def test_a_poll_that_takes_long_does_not_delay_the_hit_of_a_unit(looked: int, now: int, waited: int) -> None:
    phase = replace(MEASURE, warm_up=0, measured=300, faults=(PlannedFault(60, "crash", unit="web"),))
    moments = (NOW + timedelta(seconds=seconds) for seconds in (now, looked))
    assert wait_in_phase(phase, NOW, *moments) == waited
