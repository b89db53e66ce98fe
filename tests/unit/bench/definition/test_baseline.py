"""What candidate and baseline of a comparison within a run are, and how to tell them apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent import definition as agent_definition
from tests.unit.account.benches import BENCHMARK
from troop.bench.definition.baseline import is_baseline, on_same_nodes, paired, swapped, without_baseline
from troop.bench.definition.definition import Between, Phase, Point, to_document

_VERSION = {"parameters.version": "1.2"}
_TYPE = {"fleets.servers.instance_type": "c7g.xlarge"}
_MEASURE = BENCHMARK.phases[1]


@pytest.mark.parametrize(
    ("baseline", "expected"), [({}, False), (_VERSION, True), (_TYPE, False), (_VERSION | _TYPE, False)]
)
def test_only_parameters_need_no_other_nodes(baseline: dict[str, Any], expected: bool) -> None:
    assert on_same_nodes(baseline) is expected


@pytest.mark.parametrize(
    ("baseline", "values", "expected"),
    [
        ({}, {}, False),
        (_VERSION, {}, False),
        (_VERSION, {"version": "1.2", "threads": 4}, True),
        (_VERSION, {"version": "1.3"}, False),
        (_VERSION | _TYPE, {"parameters.version": "1.2"} | _TYPE, True),
        (_VERSION | _TYPE, {"version": "1.2"}, False),
        ({"parameters.on": True}, {"on": 1}, False),
        ({"parameters.share": 1.0}, {"share": 1}, True),  # as DynamoDB stores it
        ({"parameters.keys": ("a", "b")}, {"keys": ["a", "b"]}, True),
        ({"parameters.mix": {"read": 1, "write": 2}}, {"mix": {"write": 2, "read": 1}}, True),
    ],
)
def test_baseline_has_all_of_its_values(baseline: dict[str, Any], values: dict[str, Any], expected: bool) -> None:
    assert is_baseline(baseline, values) is expected


def test_pairs_differ_in_the_baselines_keys_alone() -> None:
    assert without_baseline(_VERSION, {"version": "1.2", "threads": 4}) == {"threads": 4}
    assert without_baseline(_TYPE, _TYPE | {"parameters.threads": 4}) == {"parameters.threads": 4}


def _points(phase: Phase) -> list[dict[str, Any]]:
    return [dict(point.parameters) for point in phase.points]


def test_every_point_of_a_measured_phase_becomes_a_pair() -> None:
    several = replace(_MEASURE, points=(Point({"threads": 1}), Point({"threads": 2}, 20)))
    phase = paired(several, {"version": "1.3"}, _VERSION)
    assert _points(phase) == [
        {"threads": 1, "version": "1.3"},
        {"threads": 1, "version": "1.2"},
        {"threads": 2, "version": "1.3"},
        {"threads": 2, "version": "1.2"},
    ]
    assert [point.warm_up for point in phase.points] == [None, None, 20, 20]
    assert [one["version"] for one in _points(swapped(phase))] == ["1.2", "1.3", "1.2", "1.3"]
    assert swapped(swapped(phase)) == phase


def test_a_phase_that_measures_nothing_runs_once() -> None:
    prepare = BENCHMARK.phases[0]
    assert paired(prepare, {"version": "1.3"}, _VERSION) == prepare == swapped(prepare)


def test_pairs_take_turns_and_each_point_is_prepared() -> None:
    once = replace(_MEASURE, repeat=2, between=Between("restore.sh", ("servers",), 60))
    phase = paired(once, {"version": "1.3"}, _VERSION)
    benchmark = replace(BENCHMARK, phases=(phase,), parameters={"version": "1.3"}, baseline=_VERSION)
    steps = [(step.name, step.point.parameters["version"]) for step in benchmark.steps if step.point]
    assert steps == [
        ("measure.1.between", "1.3"),
        ("measure.1", "1.3"),
        ("measure.2.between", "1.2"),
        ("measure.2", "1.2"),
        ("measure.3.between", "1.2"),
        ("measure.3", "1.2"),
        ("measure.4.between", "1.3"),
        ("measure.4", "1.3"),
    ]
    (stored,) = to_document(benchmark)["phases"]
    for role in ("servers", "drivers"):
        mine = [step.name for step in benchmark.steps if role in step.phase.roles]
        assert list(agent_definition.steps(stored, role)) == mine
