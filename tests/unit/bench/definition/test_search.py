"""A search over points: what it measures next, when it is over, and what it says."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.search import ANSWERS, Outcome, Progress, Search, document, progress, sentence

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
def test_search_in_a_monotonic_system_ends_at_the_last_value_that_holds(search: Search, data: st.DataObject) -> None:
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
def test_search_in_any_system_measures_its_answer_and_the_next_value_twice(search: Search, data: st.DataObject) -> None:
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
def test_search_with_changing_verdicts_answers_only_with_consistent_values(
    search: Search, verdicts: list[bool]
) -> None:
    """No value that failed once counts as held, and all points are within those of the estimate."""
    by_value: dict[Any, list[bool]] = {}
    states = [progress(search, verdicts[:n]) for n in range(len(verdicts) + 1)]
    for state, held in zip(states, verdicts, strict=False):
        if state.next is not None:
            assert state.repeat == len(by_value.get(state.next, [])) + 1
            by_value.setdefault(state.next, []).append(held)
    last = states[-1]
    assert last.points == sum(map(len, by_value.values())) <= search.most
    assert last.next is None, "the worst case is over long before"
    assert last.largest == max((value for value, its in by_value.items() if all(its)), default=None)
    assert last.smallest == min((value for value, its in by_value.items() if not any(its)), default=None)
    both = sorted(value for value, its in by_value.items() if len(set(its)) > 1)
    assert list(last.both) == both
    failed = [value for value, its in by_value.items() if not all(its)]
    assert last.largest is None or all(last.largest < value for value in failed)
    assert (last.outcome in ANSWERS) == (last.largest is not None)
    assert (last.outcome == Outcome.WIDENED) == bool(both and last.largest is not None)
    assert (last.outcome == Outcome.UNSTABLE) == (search.candidates[0] in both)
    assert sentence(search, last)


def noisy(width: float, limit: float, chance: random.Random) -> Callable[[int], bool]:
    """A system at whose limit a value holds in half of the measurements, with logistic noise."""
    return lambda at: chance.random() < 1 / (1 + math.exp(max(-50.0, min((at - limit) / width, 50.0))))


@pytest.mark.parametrize("last", [19, 256])
@pytest.mark.parametrize("width", [0.1, 0.25, 0.5, 1])
def test_noise_of_up_to_a_step_leaves_few_searches_without_an_answer(width: float, last: int) -> None:
    """At most 10 % have none, and the limit is not far from the interval of the others."""
    search, chance = Search("rate", (), 0, last), random.Random(f"width {width}")
    without = far = wide = 0
    for _ in range(400):
        limit = chance.uniform(0, last)
        state, _tried = run(search, noisy(width, limit, chance))
        assert state.points <= search.most
        without += state.outcome == Outcome.UNSTABLE
        wide += state.outcome == Outcome.WIDENED
        if state.largest is not None:
            high = search.candidates[-1] if state.smallest is None else state.smallest
            far += not state.largest - 2.6 * width <= limit <= high + 2.6 * width
    assert without <= 40
    assert far <= 20
    assert wide > 40, "without contradictions, this test shows nothing"


@pytest.mark.parametrize(
    ("largest_again", "tried", "text"),
    [
        (False, 117, "between 117 and 129: 117 (measured once) held them each time, 129 (measured once) failed each "
         "time, 128 did both"),
        (True, 129, "between 128 and 130: 128 (measured twice) held them each time, 130 (measured once) failed each "
         "time, 129 did both"),
    ],
)  # fmt: skip
def test_after_a_contradiction_it_measures_beside_the_value_and_answers_with_an_interval(
    largest_again: bool, tried: int, text: str
) -> None:
    search = Search("rate", (), 0, 256)
    verdicts = [True, False, True, *7 * [False], largest_again]
    assert progress(search, verdicts[:-1]).next == 128
    state = progress(search, [*verdicts, True])
    assert progress(search, verdicts).next == tried
    assert state.points == search.most
    assert (state.outcome, state.next) == (Outcome.WIDENED, None)
    assert sentence(search, state) == f"the largest rate that holds the limits is {text}"


def test_an_interval_can_be_open_at_the_end_of_the_range() -> None:
    search = Search("rate", (100, 200, 400))
    assert progress(search, [True, True, False]).next == 200
    state = progress(search, [True, True, False, True, True])
    assert (state.outcome, state.largest, state.smallest) == (Outcome.WIDENED, 200, None)
    assert sentence(search, state) == (
        "the largest rate that holds the limits is at least 200: 200 (measured twice) held them each time, no value "
        "failed each time, 400 did both"
    )


def test_unstable_search_advises_other_values() -> None:
    search = Search("rate", (), 250, 1250, 250)
    assert search.most == 6
    state = progress(search, [True, False, True, False, False, False])
    assert (state.outcome, state.both) == (Outcome.UNSTABLE, (250, 750))
    assert sentence(search, state) == (
        "not stable: no rate held the limits each time, 250 and 750 did both; use a larger step, such as 750, from a "
        "value below 250"
    )
    state = progress(Search("rate", (250, 1000)), [False, True])
    assert sentence(Search("rate", (250, 1000)), state) == (
        "not stable: no rate held the limits each time, 250 did both; use values further apart, the first of them "
        "below 250"
    )


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
            "not stable: no threads held the limits each time, 1 did both; use a larger step, such as 2, from a value "
            "below 1",
        ),
        ([True, True, False], "search for the largest threads: 1 holds the limits; 3 of at most 13 points"),
    ],
)
def test_search_reports_its_progress(verdicts: list[bool], text: str) -> None:
    state = progress(RANGE, verdicts)
    assert sentence(RANGE, state) == text
    stored = document("measure", RANGE, state)
    assert (stored["text"], stored["points"], stored["most"]) == (text, len(verdicts), 13)


@given(st.one_of(_RANGES, _LISTS))
def test_stored_search_is_read_back(search: Search) -> None:
    assert Search.from_document(search.document()) == search
