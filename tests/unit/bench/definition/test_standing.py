"""Standing fleets: how large they may be, what a look shows, and when the next one is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import (
    FIRST_WAIT,
    LONGEST_WAIT,
    Counts,
    GroupStatus,
    Member,
    Place,
    Resize,
    Standing,
    counted,
    is_complete,
    resizes,
    scaled,
    too_many,
    wait,
)

SIZES = st.dictionaries(st.sampled_from(["queues", "servers", "workers"]), st.integers(0, 50), min_size=1)


@given(before=SIZES, data=st.data(), count=st.integers(0, 100), most=st.integers(0, 120))
def test_another_size_changes_one_role_and_stays_within_the_limit(
    before: dict[str, int], data: st.DataObject, count: int, most: int
) -> None:
    role = data.draw(st.sampled_from(sorted(before)))
    others = sum(before.values()) - before[role]
    after = scaled(Standing(before), role, count)
    assert after == {**before, role: count}
    problem = too_many(before, after, most)
    assert (problem is None) == (others + count <= most)
    if problem and count != before[role]:
        assert (problem.place, problem.message) == (("count",), f"is {count}")


@given(before=SIZES, data=st.data(), count=st.integers(0, 100))
def test_a_role_that_keeps_its_size_takes_no_other_one(before: dict[str, int], data: st.DataObject, count: int) -> None:
    """Also not a smaller one: nodes with a place in a whole hold what no other node has."""
    role = data.draw(st.sampled_from(sorted(before)))
    fixed = frozenset(data.draw(st.sets(st.sampled_from(sorted(before)))))
    try:
        after = scaled(Standing(before, fixed=fixed), role, count)
    except BadBenchmarkError as refused:
        (problem,) = refused.problems
        assert problem.allowed.startswith(f"{before[role]}: {role} keep their number")
        assert f"(fleets.{role}.resizable)" in problem.allowed
        assert role in fixed
        assert count != before[role]
    else:
        assert after == {**before, role: count}
        assert role not in fixed or count == before[role], "a repeated request is none"


def test_a_role_need_not_be_named_where_there_is_one() -> None:
    assert scaled(Standing({"workers": 2}), None, 5) == {"workers": 5}
    for role, message in [(None, "role is missing"), ("drivers", "role is 'drivers'")]:
        with pytest.raises(BadBenchmarkError, match=message):
            scaled(Standing({"a": 1, "b": 1}), role, 5)


def test_a_group_is_resized_where_its_size_or_its_limit_is_another() -> None:
    groups = [
        GroupStatus("right", 3, 3),
        GroupStatus("small", 2, 2),
        GroupStatus("open", 3, 5),
        GroupStatus("gone", exists=False),
    ]
    assert resizes(groups, dict.fromkeys(("right", "small", "open", "gone"), 3)) == (
        Resize("small", 3),
        Resize("open", 3),
    )


def test_nodes_are_counted_by_where_they_are_and_what_they_say() -> None:
    places = [Place.STARTING, Place.SERVING, Place.SERVING, Place.SERVING, Place.LEAVING]
    group = GroupStatus("w", 4, 4, tuple(Member(f"i-{n}", "a", "t", place) for n, place in enumerate(places)))
    nodes = {"i-1": Node("i-1", "w"), "i-2": Node("i-2", "w", error="no bucket"), "i-4": Node("i-4", "w")}
    seen = Counts(in_service=3, starting=1, leaving=1, ready=1, failed=1, on_demand=3)
    assert counted([group], nodes) == {"w": seen}
    spot = GroupStatus("w", 1, 1, (Member("i-5", "a", "t", Place.SERVING),), is_spot=True)
    both = Counts(in_service=4, starting=1, leaving=1, ready=2, failed=1, spot=1, on_demand=3)
    assert counted([group, spot], {**nodes, "i-5": Node("i-5", "w")}) == {"w": both}


@pytest.mark.parametrize(
    ("seen", "complete"),
    [
        (Counts(in_service=2, ready=2), True),
        (Counts(in_service=2, ready=1), False),
        (Counts(in_service=2, ready=1, failed=1), False),
        (Counts(in_service=2, ready=2, starting=1), False),
        (Counts(in_service=2, ready=2, leaving=1), False),
        (Counts(in_service=3, ready=3), False),
    ],
)
def test_fleet_is_complete_only_with_exactly_its_desired_nodes(seen: Counts, complete: bool) -> None:
    assert is_complete({"w": 2}, {"w": seen}) is complete
    assert not is_complete({"w": 2, "v": 1}, {"w": seen}), "of the other nothing was seen"


@given(elapsed=st.floats(0, 86_400), left=st.floats(0, 86_400))
def test_next_check_is_soon_at_first_and_shortly_after_the_expiry_at_most(elapsed: float, left: float) -> None:
    seconds = wait(elapsed, left)
    assert FIRST_WAIT <= seconds <= LONGEST_WAIT
    assert seconds <= max(FIRST_WAIT, left + 1)
