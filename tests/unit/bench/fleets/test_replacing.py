"""Which nodes are replaced while a cell boots, and how many."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import BENCHMARK, DRIVERS
from troop.bench.definition.roster import Node
from troop.bench.fleets.booting import FleetStatus, boot_verdict
from troop.bench.fleets.replacing import Moments, failed_nodes, most
from troop.bench.measuring.verdicts import State

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def chosen_of(
    count: int, ages: dict[str, float], boots: dict[str, float], errors: tuple[str, ...] = (), **more: Any
) -> list[str]:
    """Ids to replace, of a fleet of drivers.

    Args:
        ages: seconds since the launch of all nodes.
        boots: of those that have registered, the seconds that it took.
    """
    nodes = {i: Node(i, "drivers", error="no disk" if i in errors else None) for i in (*boots, *errors)}
    moments = Moments(
        NOW,
        {i: ago(age) for i, age in ages.items()},
        {i: ago(ages[i] - seconds) for i, seconds in boots.items()},
    )
    seen = [FleetStatus("drivers", frozenset(ages))]
    whole = replace(BENCHMARK, fleets=(replace(DRIVERS, count=count),))
    return [failed_node.id for failed_node in failed_nodes(whole, seen, nodes, moments, **{"replaced": {}, **more})]


@pytest.mark.parametrize(
    ("age", "slowest", "is_silent"),
    [(179, 20, False), (180, 20, True), (180, 90, True), (180, 91, False), (599, 300, False), (600, 300, True)],
)
def test_a_node_is_silent_after_three_minutes_and_twice_the_time_of_the_slowest(
    age: float, slowest: float, is_silent: bool
) -> None:
    ages = {"i-0": 1000.0, "i-1": 1000.0, "i-2": age}
    assert chosen_of(3, ages, {"i-0": 10, "i-1": slowest}) == ["i-2"] * is_silent


def test_if_most_nodes_are_slow_none_is_silent() -> None:
    ages = dict.fromkeys(("i-0", "i-1", "i-2"), 1000.0)
    assert chosen_of(3, ages, {"i-0": 10}) == []
    assert chosen_of(1, {"i-0": 1000}, {}) == []


def test_the_oldest_silent_node_is_replaced_first() -> None:
    ages = {"i-0": 900.0, "i-1": 900.0, "i-2": 500.0, "i-3": 800.0}
    assert chosen_of(4, ages, {"i-0": 10, "i-1": 10}) == ["i-3"]


def test_an_error_needs_no_patience_and_goes_before_silence() -> None:
    ages = {"i-0": 900.0, "i-1": 900.0, "i-2": 900.0, "i-3": 1.0}
    assert chosen_of(4, ages, {"i-0": 10, "i-1": 10}, errors=("i-3",)) == ["i-3"]


def test_earlier_replacement_is_requested_again_and_not_counted() -> None:
    ages = {"i-0": 900.0, "i-1": 900.0, "i-2": 900.0}
    again: dict[str, Any] = {"replaced": {"i-1": "drivers"}}
    assert chosen_of(3, ages, {"i-0": 10, "i-1": 10}, **again) == ["i-1"], "although it has registered by now"
    assert chosen_of(3, ages, {"i-0": 10}, errors=("i-1",), **again) == ["i-1"]
    assert chosen_of(3, {"i-0": 900.0, "i-2": 1.0}, {"i-0": 10}, errors=("i-2",), **again) == [], "one is all it may"


def test_node_that_leaves_anyway_is_not_replaced() -> None:
    seen = [FleetStatus("drivers", frozenset({"i-0"}), frozenset({"i-1"}), frozenset({"i-1"}))]
    nodes = {i: Node(i, "drivers", error="no disk") for i in ("i-0", "i-1", "i-gone")}
    whole = replace(BENCHMARK, fleets=(replace(DRIVERS, count=200),))
    assert [failed_node.id for failed_node in failed_nodes(whole, seen, nodes, Moments(NOW), {})] == ["i-0"]
    assert failed_nodes(whole, seen, nodes, Moments(NOW), {}, frozenset({"i-0"})) == []


@given(st.integers(1, 400), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_no_fleet_gets_more_new_nodes_than_it_may(count: int, broken: int, silent: int, before: int) -> None:
    ids = [f"i-{n}" for n in range(count)]
    errors, mute = ids[:broken], ids[broken : broken + silent]
    good = ids[broken + silent :]
    earlier = {f"i-old{n}": "drivers" for n in range(before)}
    chosen = chosen_of(count, dict.fromkeys(ids, 1000.0), dict.fromkeys(good, 10.0), tuple(errors), replaced=earlier)
    assert len(chosen) <= max(0, most(replace(DRIVERS, count=count)) - before)
    assert set(chosen) <= {*errors, *mute}
    # What is left of the errors ends the attempt.
    whole = replace(BENCHMARK, fleets=(replace(DRIVERS, count=count),))
    nodes = {i: Node(i, "drivers", "a", error="no disk" if i in errors else None) for i in (*errors, *good)}
    verdict = boot_verdict(whole, [FleetStatus("drivers", frozenset(ids))], nodes, 0, replaced=frozenset(chosen))
    if set(errors) - set(chosen):
        assert verdict.state is State.FAILED
    else:
        assert verdict.state is (State.WAITING if errors or mute else State.READY)
