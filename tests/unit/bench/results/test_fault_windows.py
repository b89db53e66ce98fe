"""Windows around a fault: each operation of all roles is in one, whatever seconds their drivers recorded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troop.bench.results.fault_windows import UncountedError, counted
from troop.measure.operations import Operation, PerSecond, Rate
from troop.measure.windows import Windows

START = 1_790_000_000


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    start, length = START + draw(st.integers(0, 8)), draw(st.integers(1, 5))
    counts = st.lists(st.integers(0, 9), min_size=length, max_size=length)
    successes, kinds = draw(counts), draw(st.dictionaries(st.sampled_from(["reset", "tls", "unfinished"]), counts))
    unknown = draw(counts)
    errors = [sum(second) for second in zip(unknown, *kinds.values(), strict=True)]
    times = Windows(start, 1)
    for second, count in enumerate(successes, start):
        if count:
            times.record(second, 700, count)
    return Operation(
        errors={"reset": 0, "tls": 0}, per_second=PerSecond(start, successes, errors, kinds), over_time=times
    )


@settings(max_examples=200)
@given(st.lists(operations(), min_size=2, max_size=4), st.integers(-2, 12), st.integers(1, 5))
def test_seconds_of_all_operations_add_up(parts: list[Operation], begin: int, length: int) -> None:
    every, begin = counted(parts), START + begin
    seconds = range(begin, begin + length)

    def sum_of(series: str, kind: str = "") -> int:
        total = 0
        for one in parts:
            its = one.per_second
            values = (its.kinds or {}).get(kind, []) if kind else getattr(its, series)
            total += sum(count for second, count in enumerate(values, its.start) if second in seconds)
        return total

    end = begin + length
    assert every.done(begin, end) == sum(every.took(begin, end).values()) == sum_of("count")
    failed = every.failed(begin, end)
    assert sum(failed.values()) == sum_of("errors")
    for kind in ("reset", "tls", "unfinished"):
        assert failed.get(kind, 0) == sum_of("errors", kind)
    assert set(failed) <= {"reset", "tls", "unfinished", "other"}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (Operation(rate=Rate(5000)), "a tool does not count operations and errors by second"),
        (Operation(errors={"failed": 1}), "a tool does not count operations and errors by second"),
        (Operation(over_time=Windows(START // 5 * 5, 5)), "times over time have steps of 5 s"),
    ],
)
def test_operations_without_values_by_second_are_refused(one: Operation, reason: str) -> None:
    if one.over_time is not None:
        one.over_time.record(START, 7)
    with pytest.raises(UncountedError, match=reason):
        counted([one])
