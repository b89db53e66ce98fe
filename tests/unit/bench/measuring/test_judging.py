"""Limits of a phase against merged operations: of the whole measured time, of its parts, and of what is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.phase_limits import FAILED, PASSED, PERCENTILES, PhaseLimit, verdict
from troop.bench.definition.phase_limits import missed as missed_texts
from troop.bench.measuring.judging import Judgement, entry, judge, judge_rates, with_entry
from troop.measure import merge
from troop.measure.histogram import Histogram
from troop.measure.operations import TOTAL, Operation, PerSecond, Rate, document_of, parse
from troop.measure.windows import Windows

BEGIN = 1000.0
LOAD = {"drivers"}


def operation(by_second: Sequence[Sequence[int]], errors: Mapping[int, int] | None = None, step: int = 1) -> Operation:
    """An operation with successes of so many milliseconds in each second, and errors by second."""
    times, windows = Histogram(), Windows(int(BEGIN), step)
    for n, each in enumerate(by_second):
        for ms in each:
            times.record(ms * 1000)
            windows.record(BEGIN + n, ms * 1000)
    wrong = [(errors or {}).get(n, 0) for n in range(len(by_second))]
    counts = PerSecond(int(BEGIN), [len(each) for each in by_second], wrong)
    return Operation(times, {"timeout": sum(wrong)} if sum(wrong) else {}, counts, over_time=windows)


STEADY = operation([[10] * 9 + [100]] * 30)
"""30 s with 10 operations each: p90 is 10 ms, the maximum 100."""
STALLED = operation([[10] * 10 if not 12 <= n < 27 else [] for n in range(40)])
BURST = operation([[10] * 10 if n not in (15, 16) else [500] * 10 for n in range(30)], {3: 1, 15: 10})


def one(limit: PhaseLimit, operations: Mapping[str, Operation], seconds: float = 30, begin: Any = BEGIN) -> Judgement:
    (judgement,) = judge([limit], {"drivers": dict(operations)}, LOAD, begin, seconds)
    return judgement


@pytest.mark.parametrize(
    ("limit", "value", "held"),
    [
        (PhaseLimit("p90_ms", 10.1), 10.007, True),
        (PhaseLimit("p90_ms", 10), 10.007, False),  # as the table shows it: the largest value of its bucket
        (PhaseLimit("max_ms", 100), 100, True),
        (PhaseLimit("max_ms", 99.9), 100, False),
        (PhaseLimit("mean_ms", 19), 19, True),
        (PhaseLimit("per_second", at_least=10), 10, True),
        (PhaseLimit("per_second", at_least=10.1), 10, False),
        (PhaseLimit("per_second", at_most=9), 10, False),
        (PhaseLimit("error_rate", 0), 0, True),
    ],
)
def test_the_whole_measured_time_is_judged_by_the_figures_of_the_table(
    limit: PhaseLimit, value: float, held: bool
) -> None:
    judgement = one(limit, {"read": STEADY})
    assert judgement.held is held
    assert judgement.value == value
    table = merge.row("drivers", "read", STEADY, 30)
    assert limit.figure == "error_rate" or judgement.value == table[limit.figure]
    assert (judgement.reason is None) is held


def test_errors_are_a_part_of_all_operations() -> None:
    judgement = one(PhaseLimit("error_rate", 0.03), {"read": BURST})
    assert judgement.value == 11 / 311
    assert judgement.reason == "error_rate of read was 3.537 %; at most 3 %"


def test_without_an_operation_all_of_them_are_judged_together() -> None:
    """10 slow writes of 310 operations: p90 of either alone would say something else."""
    slow = operation([[1000]] * 10 + [[]] * 20)
    both = {"read": STEADY, "write": slow}
    together = one(PhaseLimit("p90_ms", 99), both)
    assert (together.operation, together.value) == (TOTAL, 100.031)
    assert one(PhaseLimit("p90_ms", 99, operation="read"), both).held
    assert one(PhaseLimit("p90_ms", 99, operation="write"), both).value == 1000
    assert one(PhaseLimit("per_second", at_least=10.3), both).held, "rates add up"


# Parts of the measured time


def test_every_part_must_hold_a_limit_and_the_worst_one_is_named() -> None:
    judgement = one(PhaseLimit("p90_ms", 300, every=10), {"read": BURST})
    assert not judgement.held
    assert judgement.value is not None
    assert 500 <= judgement.value <= 500 * 17 / 16
    assert judgement.reason is not None
    assert judgement.reason.startswith("p90_ms of read was")
    assert judgement.reason.endswith("in the 10 s from 0:10; at most 300 ms in every 10 s (1 of 3 missed)")
    assert one(PhaseLimit("p90_ms", 300), {"read": BURST}).held, "the whole time does not show it"


@pytest.mark.parametrize(("at_most", "held"), [(0.1, True), (0.09, False)])
def test_errors_are_judged_part_by_part(at_most: float, held: bool) -> None:
    """10 of the 110 operations in the second part."""
    judgement = one(PhaseLimit("error_rate", at_most, every=10), {"read": BURST})
    assert (judgement.held, judgement.value) == (held, 10 / 110)


def test_the_lowest_rate_of_all_parts_counts() -> None:
    judgement = one(PhaseLimit("per_second", at_least=8, every=10), {"read": STALLED}, 40)
    assert (judgement.held, judgement.value) == (False, 2)
    assert (
        judgement.reason
        == "per_second of read was 2/s in the 10 s from 0:10; at least 8/s in every 10 s (2 of 4 missed)"
    )
    assert one(PhaseLimit("per_second", at_least=2, every=10), {"read": STALLED}, 40).held


@pytest.mark.parametrize("figure", ["p90_ms", "error_rate"])
def test_a_system_that_stands_still_does_not_hold_a_limit(figure: str) -> None:
    judgement = one(
        PhaseLimit(figure, 1, every=5) if figure == "error_rate" else PhaseLimit(figure, 50, every=5),
        {"read": STALLED},
        40,
    )
    assert not judgement.held
    assert judgement.reason is not None
    assert "no operation of read" in judgement.reason
    assert "in the 5 s from 0:15" in judgement.reason


def test_only_whole_parts_count() -> None:
    """A slow second after the last whole part, and the warm-up before the first one, do not."""
    slow_end = operation([[10] * 10] * 30 + [[900]] * 5)
    assert one(PhaseLimit("max_ms", 20, every=10), {"read": slow_end}, 35).held
    assert one(PhaseLimit("max_ms", 20, every=10), {"read": slow_end}, 40).held is False
    warm_up = operation([[900]] * 5 + [[10] * 10] * 30)
    assert one(PhaseLimit("max_ms", 20, every=10), {"read": warm_up}, 30, BEGIN + 4.5).held


@pytest.mark.parametrize(
    ("limit", "seconds", "begin", "reason"),
    [
        (PhaseLimit("p90_ms", 9, every=10), 9, BEGIN, "the measured time does not contain whole 10 s"),
        (PhaseLimit("p90_ms", 9, every=5), 30, BEGIN, "times over time have steps of 2 s"),
        (PhaseLimit("p90_ms", 9, every=4), 30, None, "the start of the measured time is unknown"),
    ],
)
def test_limit_that_cannot_be_judged_by_parts_fails_with_a_reason(
    limit: PhaseLimit, seconds: float, begin: Any, reason: str
) -> None:
    judgement = one(limit, {"read": operation([[5]] * 30, step=2)}, seconds, begin)
    assert (judgement.held, judgement.value) == (False, None)
    assert judgement.reason is not None
    assert judgement.reason.startswith(reason)


def test_lost_values_over_time_fail_a_limit_and_do_not_pass_it() -> None:
    untimed = Operation(STEADY.times, {}, PerSecond(), over_time=None)
    for figure, reason in (
        ("p90_ms", "not all times over time are on record"),
        ("per_second", "not all operations were counted by second"),
    ):
        limit = PhaseLimit(figure, 10**6, every=10)
        assert one(limit, {"read": STEADY, "write": untimed}).reason == reason


def test_values_over_time_of_one_node_do_not_stand_for_those_of_another() -> None:
    """A summary that is too large leaves out times over time, and counts by second."""
    fast, slow = operation([[1] * 10] * 30), operation([[500] * 10] * 30)
    fast.add(replace(slow, over_time=None))
    assert not one(PhaseLimit("p90_ms", 300), {"read": fast}).held
    judgement = one(PhaseLimit("p90_ms", 300, every=10), {"read": fast})
    assert (judgement.held, judgement.reason) == (False, "not all times over time are on record")
    stored = parse(document_of({"read": fast}))
    assert not one(PhaseLimit("p90_ms", 300, every=10), stored).held


@pytest.mark.parametrize("limit", [PhaseLimit("error_rate", 0.1, every=10), PhaseLimit("per_second", 12, every=10)])
def test_the_warm_up_does_not_stand_for_seconds_that_a_node_lacks(limit: PhaseLimit) -> None:
    long_warm_up = operation([[10] * 10] * 30)
    long_warm_up.per_second = PerSecond(int(BEGIN) - 30, [10] * 60, [10] * 30 + [0] * 30)
    long_warm_up.add(replace(STEADY, errors={"timeout": 300}, per_second=PerSecond()))
    judgement = one(limit, {"read": long_warm_up})
    assert (judgement.held, judgement.reason) == (False, "not all operations were counted by second")


@given(
    st.lists(st.lists(st.integers(1, 2000), min_size=1, max_size=6), min_size=20, max_size=60),
    st.integers(1, 3000),
    st.sampled_from([1, 5, 10]),
)
def test_a_part_that_passes_has_passed_exactly(by_second: list[list[int]], at_most: int, every: int) -> None:
    """The coarse buckets may fail a limit that is held within a sixteenth, but never pass one that is not."""
    judgement = one(PhaseLimit("p90_ms", at_most, every=every), {"read": operation(by_second)}, len(by_second))
    exact = []
    for n in range(0, len(by_second) - every + 1, every):
        times = Histogram()
        for ms in (ms for second in by_second[n : n + every] for ms in second):
            times.record(ms * 1000)
        exact.append((times.percentile(90) or 0) / 1000)
    if judgement.held:
        assert max(exact) <= at_most * 1.001
    else:
        assert max(exact) * 17 / 16 > at_most


# Roles and operations that are not there


def test_an_operation_that_was_not_measured_fails_the_limit() -> None:
    judgement = one(PhaseLimit("p90_ms", 300, operation="raed"), {"read": STEADY, "write": STEADY})
    assert (judgement.held, judgement.operation) == (False, "raed")
    assert judgement.reason == "raed was not measured; measured were read, write"
    (nothing,) = judge([PhaseLimit("p90_ms", 300)], {"drivers": {}}, LOAD, BEGIN, 30)
    assert (nothing.held, nothing.reason) == (False, "no operation was measured")


@pytest.mark.parametrize(
    ("seconds", "nodes", "target", "leeway"),
    [(1000, 1, 100, 1), (60, 1, 300, 10), (10, 1, 100, 5), (1, 1, 100, 5), (10, 8, 10, 0.8)],
)
def test_the_reported_bound_of_a_set_rate_is_the_one_that_was_applied(
    seconds: int, nodes: int, target: float, leeway: float
) -> None:
    def judged(achieved: float) -> list[Judgement]:
        row = {"role": "drivers", "operation": "read", "count": achieved, "errors": {}, "per_second": None}
        roles = {"drivers": {"nodes": ["i"] * nodes}}
        merged = {"measured_seconds": seconds, "table": [row], "separate": [], "roles": roles}
        return judge_rates(merged, {"drivers": target})

    for sign in (1, -1):
        bound = target + sign * leeway
        assert not judged(bound * seconds - sign * 0.01)
        (judgement,) = judged(bound * seconds + sign * 0.01)
        limit = judgement.limit
        assert (limit.at_most if sign > 0 else limit.at_least) == pytest.approx(bound)


def test_the_role_that_generates_load_is_judged_unless_the_limit_names_another() -> None:
    roles = {"drivers": {"read": STEADY}, "servers": {"read": BURST, "flush": BURST}}

    def judged(limit: PhaseLimit, load: set[str]) -> list[str]:
        return [one.role for one in judge([limit], roles, load, BEGIN, 30)]

    assert judged(PhaseLimit("max_ms", 100), LOAD) == ["drivers"]
    assert judged(PhaseLimit("max_ms", 100, role="servers"), LOAD) == ["servers"]
    assert judged(PhaseLimit("max_ms", 100, operation="flush"), LOAD) == ["servers"], "only they have it"
    assert judged(PhaseLimit("max_ms", 100), set()) == ["drivers", "servers"], "each alone: roles are never added up"


def test_successes_are_needed_for_a_limit_of_times() -> None:
    only_errors = operation([[]] * 30, {3: 5})
    assert one(PhaseLimit("p90_ms", 300), {"read": only_errors}).reason == "no operation succeeded"
    assert one(PhaseLimit("error_rate", 0.5), {"read": only_errors}).value == 1
    assert one(PhaseLimit("per_second", at_least=1), {"read": only_errors}).value == 0


def test_nothing_done_holds_no_limit() -> None:
    nothing = operation([[]] * 30)
    assert one(PhaseLimit("error_rate", 0.1), {"read": nothing}).reason == "no operation ended"
    assert one(PhaseLimit("per_second", 10), {"read": nothing}).reason == "no operation succeeded"
    assert not one(PhaseLimit("per_second", 10, every=10), {"read": nothing}).held
    assert not one(PhaseLimit("bytes_per_second", 10), {"read": nothing}).held


def test_a_tool_that_reports_only_rates_has_a_rate_and_no_times() -> None:
    rate = Operation(rate=Rate(2_000_000, threads=4))
    assert one(PhaseLimit("per_second", at_least=2000), {"re-read": rate}).held
    assert one(PhaseLimit("p90_ms", 300), {"re-read": rate}).reason == "its tool does not report it"
    assert one(PhaseLimit("error_rate", 0), {"re-read": rate}).held
    assert "no total" in str(one(PhaseLimit("per_second", at_least=1), {"a": rate, "b": rate}).reason)
    assert one(PhaseLimit("per_second", at_least=1, every=10), {"a": rate}).held is False


# What is kept


def test_the_record_has_the_first_reason_and_counts_the_others() -> None:
    limits = [PhaseLimit("p90_ms", 300), PhaseLimit("max_ms", 1), PhaseLimit("mean_ms", 1)]
    documents = [one.document() for one in judge(limits, {"drivers": {"read": STEADY}}, LOAD, BEGIN, 30)]
    phase = {
        "phase": "measure",
        "point": 3,
        "repeat": 2,
        "parameters": {"threads": 8, "mix": [1, 2]},
        "limits": documents,
    }
    missed = entry(phase)
    assert missed == {
        "phase": "measure",
        "point": 3,
        "repeat": 2,
        "setting": "threads=8, mix=1/2, #2",
        "held": False,
        "reason": "max_ms of read was 100 ms; at most 1 ms; and 1 more",
    }
    held = entry({"phase": "measure", "limits": documents[:1]})
    assert held is not None
    assert (held["held"], held["reason"], held["point"], held["setting"]) == (True, None, None, "")
    assert entry({"phase": "measure"}) is None
    assert verdict([held]) == PASSED
    assert verdict([held, missed]) == FAILED
    assert verdict([]) is None
    baseline = entry(phase | {"is_baseline": True})
    assert baseline == missed | {"is_baseline": True}
    assert (verdict([baseline]), verdict([held, baseline]), verdict([missed, baseline])) == (None, PASSED, FAILED)
    assert missed_texts([held, baseline]) == []
    again = {**missed, "held": True, "reason": None}
    assert with_entry([missed, held], again) == [held, again], "a retry does not count twice"


def test_percentiles_are_those_of_the_results() -> None:
    assert list(merge.PERCENTILES) == list(PERCENTILES)
