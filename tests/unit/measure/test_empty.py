"""What records operations one by one: with steps of a second and kinds of errors by second, where faults need them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.measure.build import START
from troop.measure import hdr_log, operations
from troop.measure.collectors.window import Counted, Window
from troop.measure.empty import STEP, empty_operation
from troop.measure.operations import MOST_FAILURES, OTHER, UNFINISHED, Operation
from troop.measure.recorder import Recorder

LENGTH = 1200


def all_that_record(folder: Path) -> dict[str, Operation]:
    recorder = Recorder(folder, START, LENGTH, lambda: START + 1.5)
    recorder.error("get", "reset")
    totals = Counted(Window(START, START + LENGTH))
    totals.error("get", START + 1.5, "reset")
    written = operations.parse(json.loads(recorder.write().read_text())["operations"])
    recorder.ok("get", 1)
    live = recorder._recordings["get"].operation  # its steps are written only if they have counts
    assert written["get"].errors == totals.operations["get"].errors == {"reset": 1}
    return {"recorder": live, "tables": totals.operations["get"], "logs": hdr_log.Counting(START, LENGTH).operation}


@pytest.mark.parametrize(("step", "seconds"), [(None, 5), ("1", 1)])
def test_all_have_the_steps_of_the_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str | None, seconds: int
) -> None:
    if step:
        monkeypatch.setenv(STEP, step)
    each = all_that_record(tmp_path)
    assert {name: one.over_time and one.over_time.step_seconds for name, one in each.items()} == dict.fromkeys(
        each, seconds
    )
    kinds = [each[name].per_second.kinds for name in ("recorder", "tables")]
    assert [one and {kind: counts[:3] for kind, counts in one.items()} for one in kinds] == (
        [{"reset": [0, 1, 0]}] * 2 if step else [None] * 2
    )


ERRORS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["reset", "tls", "no name"]), st.integers(1, 3)))


@settings(max_examples=50)
@given(ERRORS, st.integers(0, 5))
def test_errors_count_by_second_and_kind_and_in_the_measured_time_in_total(
    errors: list[tuple[int, str, int]], warm_up: int
) -> None:
    one = empty_operation(START, 6, 6, {STEP: "1"})
    by_second, total = Counter[tuple[str, int]](), Counter[str]()
    for second, kind, count in errors:
        one.fail(START + second, kind, count, is_measured=second >= warm_up)
        name = OTHER if kind == "no name" else kind
        by_second[name, second] += count
        total[name] += count if second >= warm_up else 0
    kinds = one.per_second.kinds or {}
    assert {(kind, n): count for kind, its in kinds.items() for n, count in enumerate(its) if count} == by_second
    assert one.errors == +total
    assert one.per_second.errors == [sum(its[n] for its in kinds.values()) for n in range(6)]


def test_kinds_of_several_processes_are_bounded_by_second_as_in_total() -> None:
    totals: operations.Operations = {}
    for process in range(2):
        one = empty_operation(START, 2, 2, {STEP: "1"})
        for n in range(MOST_FAILURES - 10):
            one.fail(START + process, f"kind-{process * 20 + n}")
        operations.add_bounded(totals, {"get": one})
    (both,) = totals.values()
    kinds = both.per_second.kinds or {}
    assert {kind: sum(counts) for kind, counts in kinds.items()} == both.errors
    assert (len(kinds), kinds[OTHER], both.per_second.errors) == (MOST_FAILURES, [0, 11], [54, 54])


def test_unfinished_operations_have_their_kind_however_many_there_are() -> None:
    one = empty_operation(START, 2, 2, {STEP: "1"})
    for n in range(100):
        one.fail(START, f"kind-{n}")
    one.fail(START + 1, UNFINISHED, 7)
    assert (len(one.errors), one.errors[OTHER], one.errors[UNFINISHED]) == (MOST_FAILURES, 38, 7)
    assert one.per_second.kinds is not None
    assert one.per_second.kinds[UNFINISHED] == [0, 7]
