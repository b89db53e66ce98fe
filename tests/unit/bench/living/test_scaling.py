"""How many nodes a role needs for its backlog, and how many of them the limits allow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.living import Need, Scale, WorkSample
from troop.bench.definition.problems import Problem
from troop.bench.living.scaling import MOST_NEEDS, largest, nodes_for, sized

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SCALE = Scale(20, 0, 500, idle_after=600)


def work(backlog: int, in_work: int = 0) -> WorkSample:
    return WorkSample(NOON, 10_000, backlog - in_work, in_work)


def follow(scale: Scale, desired: int, *readings: tuple[float, int]) -> list[int]:
    """The sizes of a role after readings of its backlog, each some minutes after the start."""
    needs: tuple[Need, ...] = ()
    counts = []
    for minutes, backlog in readings:
        answer = sized(scale, desired, work(backlog), needs, NOON + timedelta(minutes=minutes))
        desired, needs = answer.count, answer.needs
        counts.append(desired)
    return counts


@pytest.mark.parametrize(
    ("backlog", "nodes"), [(0, 2), (1, 2), (40, 2), (41, 3), (60, 3), (61, 4), (10_000, 500), (1_000_000, 500)]
)
def test_nodes_for_a_backlog_within_the_bounds(backlog: int, nodes: int) -> None:
    assert nodes_for(Scale(20, 2, 500), work(backlog)) == nodes


def test_tasks_in_work_need_their_nodes() -> None:
    assert nodes_for(SCALE, work(100, in_work=100)) == 5


def test_a_role_grows_to_all_that_it_needs_in_one_step() -> None:
    assert follow(SCALE, 0, (0, 10_000)) == [500]


def test_a_role_shrinks_after_its_idle_time() -> None:
    assert follow(SCALE, 500, (0, 10_000), (1, 0), (10.9, 0), (11, 0)) == [500, 500, 500, 0]


def test_one_small_reading_removes_no_node_at_any_time() -> None:
    """Fewer nodes have been enough for longer than the idle time when the reading of 0 comes."""
    readings = [(float(minute), 190 if minute != 30 else 0) for minute in range(40)]
    assert set(follow(SCALE, 10, *readings)) == {10}
    readings = [(float(minute), 180 if minute != 30 else 0) for minute in range(40)]
    assert follow(SCALE, 10, *readings)[-1] == 9


def test_a_role_shrinks_to_the_most_that_it_needed_lately() -> None:
    readings = [(0.0, 200), (1.0, 100), (6.0, 60), (11.0, 20), (16.0, 20), (21.0, 20)]
    assert follow(SCALE, 10, *readings) == [10, 10, 10, 5, 3, 1]


def test_a_gap_between_checks_ends_no_need() -> None:
    assert follow(SCALE, 10, (0, 200), (60, 0), (69, 0), (70, 0)) == [10, 10, 10, 0]


def test_a_new_fleet_keeps_its_first_nodes_for_the_idle_time() -> None:
    assert follow(SCALE, 2, (0, 0), (9, 0), (10, 0)) == [2, 2, 0]


def test_a_role_that_limits_keep_small_does_not_shrink_for_it() -> None:
    needs = (Need(500, NOON),)
    answer = sized(SCALE, 100, work(2_000), needs, NOON + timedelta(minutes=1))
    assert answer.count == 100


@given(
    readings=st.lists(st.tuples(st.floats(0, 30), st.integers(0, 400)), min_size=1, max_size=60),
    desired=st.integers(0, 10),
)
def test_no_node_goes_that_was_needed_within_the_idle_time(readings: list[tuple[float, int]], desired: int) -> None:
    scale = Scale(20, 1, 15, idle_after=600)
    desired, minute, needs = max(1, desired), 0.0, tuple[Need, ...]()
    history = [(0.0, desired)]
    for after, backlog in readings:
        minute += after
        answer = sized(scale, desired, work(backlog), needs, NOON + timedelta(minutes=minute))
        nodes = nodes_for(scale, work(backlog))
        lately = [need for at, need in history if at > minute - 10] + [history[-1][1], nodes]
        if answer.count < desired:
            assert answer.count >= max(lately)
        assert answer.count >= min(nodes, desired), "never fewer than it needs now"
        assert answer.count == nodes or answer.count <= desired, "it grows at once"
        assert len(answer.needs) <= MOST_NEEDS
        desired, needs = answer.count, answer.needs
        history.append((minute, nodes))
    for later in (10, 21):
        answer = sized(scale, desired, work(0), needs, NOON + timedelta(minutes=minute + later))
        desired, needs = answer.count, answer.needs
    assert desired == 1


def refusing(*most: int) -> list[tuple[int, Problem]]:
    return [(one, Problem(("count",), "is too many", f"at most {one}")) for one in most]


@pytest.mark.parametrize(
    ("most", "expected", "named"),
    [
        ((), 500, []),
        ((500,), 500, []),
        ((499,), 499, ["at most 499"]),
        ((138, 400), 138, ["at most 138", "at most 400"]),
        ((3,), 10, ["at most 3"]),
    ],
)
def test_a_role_gets_the_most_that_all_limits_allow(most: tuple[int, ...], expected: int, named: list[str]) -> None:
    count, why = largest(10, 500, lambda nodes: [problem for one, problem in refusing(*most) if nodes > one])
    assert count == expected
    assert bool(why) is bool(named)
    assert all(name in why for name in named)


def test_a_role_that_does_not_grow_needs_no_limits() -> None:
    def fail(nodes: int) -> list[Problem]:
        raise AssertionError(nodes)

    assert largest(10, 10, fail) == (10, "")
    assert largest(10, 4, fail) == (4, "")


@given(st.integers(0, 600), st.integers(0, 600), st.integers(0, 600))
def test_the_largest_number_is_that_of_the_limit(desired: int, count: int, most: int) -> None:
    nodes, why = largest(desired, count, lambda size: [one for _, one in refusing(most) if size > most])
    assert nodes == (count if count <= desired else max(desired, min(count, most)))
    assert bool(why) is (nodes < count)
