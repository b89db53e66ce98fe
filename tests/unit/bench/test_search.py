"""A search over points: what it measures next, when it is over, and what it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.search import ANSWERS, Outcome, Progress, Search, document, progress, sentence

RANGE = Search("threads", (), 1, 400)


def run(search: Search, holds: Callable[[int], bool]) -> tuple[Progress, list[Any]]:
    """Measures point by point. ``holds`` gets the place of a value in the list of all."""
    verdicts: list[bool] = []
    tried = []
    while (state := progress(search, verdicts)).next is not None:
        tried.append((state.next, state.repeat))
        verdicts.append(holds(search.candidates.index(state.next)))
    return state, tried


def test_the_ends_come_first_and_those_of_the_last_bracket_twice() -> None:
    state, tried = run(RANGE, lambda at: at + 1 <= 120)
    values = [value for value, _ in tried]
    assert values[:3] == [1, 400, 200]
    assert values[-2:] == [120, 121]
    assert [repeat for _, repeat in tried] == [1] * (len(tried) - 2) + [2, 2]
    assert (state.outcome, state.largest, state.smallest) == (Outcome.BRACKETED, 120, 121)
    assert sentence(RANGE, state) == (
        "the largest threads that holds the limits is 120; 121 does not hold them (both measured twice)"
    )


_RANGES = st.builds(
    lambda low, size, step: Search("threads", (), low, low + (size - 1) * step, step),
    st.integers(-5, 50), st.integers(2, 300), st.integers(1, 9),
)  # fmt: skip
_LISTS = st.lists(st.integers(0, 999), min_size=2, max_size=40, unique=True).map(
    lambda values: Search("threads", tuple(sorted(values)))
)


@given(st.one_of(_RANGES, _LISTS), st.data())
def test_of_a_system_that_only_gets_worse_it_finds_the_last_value_that_holds(
    search: Search, data: st.DataObject
) -> None:
    held = data.draw(st.integers(0, len(search.candidates)))
    state, tried = run(search, lambda at: at < held)
    assert len(tried) <= search.most
    values = search.candidates
    assert state.largest == (values[held - 1] if held else None)
    assert state.smallest == (values[held] if held < len(values) else None)
    ends = {0: Outcome.NONE_HELD, len(values): Outcome.ALL_HELD}
    assert state.outcome == ends.get(held, Outcome.BRACKETED)
    assert state.points == len(tried)


@given(st.one_of(_RANGES, _LISTS), st.data())
def test_of_any_system_its_answer_was_measured_twice_beside_the_next_value(search: Search, data: st.DataObject) -> None:
    """Not monotone: it ends all the same, and never claims more than it has measured."""
    size = len(search.candidates)
    holds: Sequence[bool] = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    state, tried = run(search, lambda at: holds[at])
    assert len(tried) <= search.most
    assert state.outcome != Outcome.UNSTABLE, "each value has one verdict"
    if state.outcome == Outcome.BRACKETED:
        at = search.candidates.index(state.largest or 0)
        assert search.candidates[at + 1] == state.smallest
        assert (holds[at], holds[at + 1]) == (True, False)
        assert [value for value, _ in tried].count(state.largest) == 2
        assert [value for value, _ in tried].count(state.smallest) == 2


@given(st.one_of(_RANGES, _LISTS), st.lists(st.booleans(), min_size=20, max_size=20))
def test_verdicts_that_change_are_seen_and_cost_no_further_point(search: Search, verdicts: list[bool]) -> None:
    by_value: dict[Any, list[bool]] = {}
    states = [progress(search, verdicts[:n]) for n in range(len(verdicts) + 1)]
    for state, held in zip(states, verdicts, strict=False):
        if state.next is not None:
            by_value.setdefault(state.next, []).append(held)
    last = states[-1]
    assert last.points <= search.most
    assert last.next is None, "the worst case is over long before"
    contradicted = any(len(set(its)) > 1 for its in by_value.values())
    assert (last.outcome == Outcome.UNSTABLE) == contradicted
    assert (last.outcome in ANSWERS) == (not contradicted and last.largest is not None)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 9, 10, 33, 400])
def test_the_worst_case_is_exact(size: int) -> None:
    """Two ends, the bisection of the range between them, and two ends again; some value needs all of them."""
    search = Search("threads", (), 1, size)
    assert search.most == 2 + math.ceil(math.log2(size - 1)) + 2
    assert max(len(run(search, lambda at, held=held: at < held)[1]) for held in range(size + 1)) == search.most  # type: ignore[misc]


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        ([], "search for the largest threads: nothing is known yet; 0 of at most 13 points"),
        ([True], "search for the largest threads: 1 holds the limits; 1 of at most 13 points"),
        (
            [True, False, True],
            "search for the largest threads: 200 holds the limits, 400 does not; 3 of at most 13 points",
        ),
        ([False], "search for the largest threads: 1 does not hold the limits; 1 of at most 13 points"),
        ([False, False], "threads=1, the smallest value of the range, does not hold the limits (measured twice)"),
        ([True, True, True], "threads=400, the largest value of the range, holds the limits (measured twice)"),
        (
            [False, True],
            "not stable: threads=1 did not hold the limits at first, and held them when it was measured again",
        ),
        ([True, True, False], "not stable: threads=400 held the limits at first, and not when it was measured again"),
    ],
)
def test_it_says_where_it_stands(verdicts: list[bool], text: str) -> None:
    state = progress(RANGE, verdicts)
    assert sentence(RANGE, state) == text
    stored = document("measure", RANGE, state)
    assert (stored["text"], stored["points"], stored["most"]) == (text, len(verdicts), 13)


@given(st.one_of(_RANGES, _LISTS))
def test_what_is_stored_is_read_back(search: Search) -> None:
    assert Search.of(search.document()) == search
