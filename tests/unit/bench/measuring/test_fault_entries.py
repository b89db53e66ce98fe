"""What a cell's record has of planned faults, and what a search makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.bench.build import BENCHMARK, MEASURE
from troop.bench.admission.overhead_cost import overhead_cost
from troop.bench.definition.definition import Point
from troop.bench.definition.planned_fault import CRASH, MOST_FAULTS, PAUSE, PlannedFault
from troop.bench.measuring.execution_history import steps_of
from troop.bench.measuring.judging import LONGEST_SENTENCE, entry, fault_entries, stored_faults, unjudged


def fault(verdict: str | None, number: int = 1, *, expects: bool = True, sentence: str = "") -> dict[str, Any]:
    return {
        "number": number,
        "what": "stop 1 of servers",
        "expect": {"share": 0.95} if expects else None,
        "verdict": verdict,
        "sentence": sentence or f"sentence {number}",
        "windows": {},
    }


def phase(*faults: dict[str, Any]) -> dict[str, Any]:
    return {"phase": "measure", "point": 3, "repeat": 2, "parameters": {"rate": 8}, "faults": [*faults]}


@pytest.mark.parametrize(
    ("verdicts", "held", "reason"),
    [
        (["HELD", "HELD"], True, None),
        (["HELD", "BROKEN"], False, "sentence 2"),
        (["UNKNOWN", "BROKEN"], False, "sentence 1; and 1 more"),
    ],
)
def test_a_point_of_a_search_holds_only_if_all_expectations_do(
    verdicts: list[str], held: bool, reason: str | None
) -> None:
    point = phase(*(fault(verdict, n) for n, verdict in enumerate(verdicts, 1)), fault(None, 9, expects=False))
    assert entry(point, is_searched=True) == {
        "phase": "measure", "point": 3, "repeat": 2, "setting": "rate=8, #2", "held": held, "reason": reason,
    }  # fmt: skip
    assert entry(point) is None, "outside a search, faults decide nothing about limits"
    assert entry(phase(fault("UNKNOWN", expects=False)), is_searched=True) is None


def test_point_whose_fault_cannot_be_judged_has_no_verdict() -> None:
    point = phase(fault("HELD"), {**fault("UNKNOWN", 2), "unjudged": "it failed"})
    assert entry(point, is_searched=True) is None
    assert unjudged(point["faults"]) == "stop 1 of servers: it failed"
    slow = entry(phase({**fault("UNKNOWN"), "unjudged": None}), is_searched=True)
    assert slow
    assert slow["held"] is False


def test_an_entry_is_short_and_says_where_it_is_of() -> None:
    (one,) = fault_entries(phase(fault("HELD", sentence="x" * 1000)))
    assert one == {
        "phase": "measure", "point": 3, "repeat": 2, "setting": "rate=8, #2", "number": 1,
        "what": "stop 1 of servers", "verdict": "HELD", "sentence": "x" * LONGEST_SENTENCE,
    }  # fmt: skip
    assert fault_entries({"phase": "measure"}) == []


def test_a_record_keeps_the_worst_of_many_faults_in_their_order() -> None:
    verdicts = ["HELD", None, "UNKNOWN"] * MOST_FAULTS
    verdicts[-1] = "BROKEN"
    every = fault_entries(phase(*(fault(verdict, n) for n, verdict in enumerate(verdicts, 1))))
    stored = stored_faults(every)
    assert [one["verdict"] for one in stored] == ["UNKNOWN"] * (MOST_FAULTS - 1) + ["BROKEN"]
    assert [one["number"] for one in stored] == sorted(one["number"] for one in stored)
    assert stored_faults(every[:MOST_FAULTS]) == every[:MOST_FAULTS]


def test_polls_and_uploads_of_faults_are_counted() -> None:
    pauses = replace(MEASURE, faults=(PlannedFault(60, PAUSE, role="servers", lasts=10),))
    crashes = replace(MEASURE, faults=(PlannedFault(60, CRASH, role="servers"), PlannedFault(90, unit="web")))
    twice = replace(pauses, points=(Point({"threads": 1}), Point({"threads": 2})))

    def benchmark(one: Any) -> Any:
        return replace(BENCHMARK, phases=(one,))

    assert [steps_of(benchmark(one)) for one in (MEASURE, pauses, crashes, twice)] == [1, 1, 3, 2]
    plain, one, two = (overhead_cost(benchmark(its), 60, [300]) for its in (MEASURE, pauses, twice))
    assert (two - plain) == pytest.approx(2 * (one - plain))
    assert one > plain
