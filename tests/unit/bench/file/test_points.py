"""Points of a phase: what a file may say of them, and the steps that they become."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import definition as agent_definition
from tests.unit.bench.file.documents import FILES, changed, problems, read
from tests.unit.bench.file.test_schema import SCHEMA
from troop.bench.definition.definition import MOST_POINTS, Benchmark, from_document, rates, to_document
from troop.bench.file.points import MOST_POINTS_OF_RUN
from troop.bench.file.read import read_all
from troop.bench.measuring.execution_history import most_seconds

WEEK: dict[str, Any] = {"expires_after": "168h", "sizes": {}}
SHORT: dict[str, Any] = {"phases__1__warm_up": "1s", "phases__1__measured": "2s", "phases__1__timeout": "4s"}
RESET = {"script": "prepare.sh", "roles": ["servers"], "timeout": "1m"}


def phase(**keys: Any) -> dict[str, Any]:
    """A file whose measured phase has further keys."""
    return changed(**{f"phases__1__{key}": value for key, value in keys.items()}, **WEEK)


def names(benchmark: Benchmark) -> list[str]:
    return [step.name for step in benchmark.steps]


def settings(benchmark: Benchmark) -> list[Any]:
    return [dict(step.point.parameters) for step in benchmark.steps if step.point and not step.is_between]


@pytest.mark.parametrize(
    ("roles", "between"), [(["servers"], None), (["servers", "drivers"], ("drivers",)), (["drivers"], ("drivers",))]
)
def test_a_step_without_a_role_keeps_it_out_of_points(roles: list[str], between: Any) -> None:
    document = phase(
        roles=["servers", "drivers"],
        points={"threads": [1, 2]},
        nodes={"servers": "threads", "drivers": "threads"},
        rate={"servers": "threads", "drivers": "threads"},
        between=RESET | {"roles": roles},
    )
    steps = {"with": {"fleets.servers.count": 3}, "without": {"fleets.servers.count": 0}}
    cells = [cell.benchmark.phases[-1] for cell in read_all(document | {"scale": steps}, FILES).plan.cells]
    assert [one.roles for one in cells] == [("servers", "drivers"), ("drivers",)]
    assert [set(one.nodes) for one in cells] == [{"servers", "drivers"}, {"drivers"}]
    assert [set(one.rate) for one in cells] == [{"servers", "drivers"}, {"drivers"}]
    assert [one.between and one.between.roles for one in cells] == [tuple(roles), between]


@pytest.mark.parametrize(("value", "expected"), [(2.5, {"drivers": 2.5}), (40, {"drivers": 40.0}), (0, {})])
def test_the_rate_of_a_phase_is_that_of_its_parameter(value: float, expected: dict[str, float]) -> None:
    benchmark = read(phase(rate={"drivers": "threads"}), FILES)
    stored = from_document(to_document(benchmark))
    assert stored.phases[1].rate == {"drivers": "threads"}
    assert rates(stored.phases[1], {**stored.parameters, "threads": value}) == expected


def test_a_phase_without_points_is_one_step_with_its_own_name() -> None:
    benchmark = read(phase(), FILES)
    assert names(benchmark) == ["prepare", "measure"]
    assert [step.phase for step in benchmark.steps] == list(benchmark.phases)
    left_out = {"points", "repeat", "between", "nodes", "rate"}
    assert not left_out & to_document(benchmark)["phases"][1].keys()


def test_lists_of_values_are_combined_and_the_last_one_varies_fastest() -> None:
    benchmark = read(phase(points={"threads": [1, 8], "bucket": ["a", "b"]}), FILES)
    assert names(benchmark) == ["prepare", "measure.1", "measure.2", "measure.3", "measure.4"]
    assert settings(benchmark) == [{"threads": t, "bucket": b} for t, b in product((1, 8), "ab")]


def test_a_repeat_goes_through_all_points_before_the_next_with_a_script_between_them() -> None:
    points = [{"threads": 1, "warm_up": "1m"}, {"bucket": "other"}]
    steps = read(phase(points=points, repeat=2, between=RESET), FILES).steps[1:]
    assert [step.name for step in steps] == [
        *("measure.1", "measure.2.between", "measure.2", "measure.3.between", "measure.3"),
        *("measure.4.between", "measure.4"),
    ]
    # What a point does not set has the file's value: all results then have the same parameters.
    first, second = {"threads": 1, "bucket": "my-data"}, {"threads": 32, "bucket": "other"}
    at = [step.point for step in steps if step.point and not step.is_between]
    assert [(one.parameters, one.repeat, one.number, one.count) for one in at] == [
        (first, 1, 1, 4), (second, 1, 2, 4), (first, 2, 3, 4), (second, 2, 4, 4),
    ]  # fmt: skip
    assert [step.phase.warm_up for step in steps if not step.is_between] == [60, 30, 60, 30]
    assert {(s.phase.script, s.phase.roles, s.phase.timeout, s.phase.is_measured) for s in steps if s.is_between} == {
        ("prepare.sh", ("servers",), 60, False)
    }
    assert [step.point.number for step in steps if step.is_between and step.point] == [2, 3, 4]


def test_plain_repetition_needs_no_parameters() -> None:
    benchmark = read(phase(repeat=3), FILES)
    assert names(benchmark)[1:] == ["measure.1", "measure.2", "measure.3"]
    assert settings(benchmark) == [{}, {}, {}]


def test_a_parameter_limits_the_nodes_of_a_role() -> None:
    document = phase(points={"clients": [1, 2]}, nodes={"drivers": "clients"})
    document["parameters"]["clients"] = 2
    assert [dict(step.limits) for step in read(document, FILES).steps[1:]] == [{"drivers": 1}, {"drivers": 2}]


def test_time_limits_are_those_of_all_points() -> None:
    one, three = read(phase(), FILES), read(phase(repeat=3, between=RESET), FILES)
    assert read(phase(between=RESET), FILES) == one, "there is nothing between"
    assert three.longest - one.longest == 2 * (600 + 60)
    assert three.needed - one.needed == 2 * (600 + 60) + 4 * 60


_VALUES = st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)
_LISTS = st.fixed_dictionaries({}, optional={"threads": _VALUES, "bucket": _VALUES}).filter(bool)
_POINTS = st.one_of(
    _LISTS,
    _VALUES.map(lambda values: [{"threads": value, **({"warm_up": "2s"} if value % 2 else {})} for value in values]),
)


@given(_POINTS, st.integers(1, 3), st.booleans(), st.sampled_from([["drivers"], ["servers"]]))
def test_stored_steps_equal_those_of_the_file_and_of_nodes(
    points: Any, repeat: int, between: bool, roles: list[str]
) -> None:
    more = {"between": {**RESET, "roles": roles}} if between and repeat > 1 else {}
    document = phase(points=points, repeat=repeat, **more)
    SCHEMA.validate(document)
    benchmark = read(document, FILES)
    stored = json.loads(json.dumps(to_document(benchmark)))
    assert from_document(stored) == benchmark
    del stored["format"], stored["files"], stored["size"]
    assert read(stored, FILES) == benchmark, "it is a file, too"
    for role in ("servers", "drivers"):
        mine = [step.name for step in benchmark.steps if role in step.phase.roles]
        assert [step for one in stored["phases"] for step in agent_definition.steps(one, role)] == mine


FIELD = "must be a mapping of parameters to lists of values, or a list"


@pytest.mark.parametrize(
    ("keys", "where", "message"),
    [
        ({"points": {}}, "phases.1.points", FIELD),
        ({"points": []}, "phases.1.points", FIELD),
        ({"points": [{}]}, "phases.1.points", FIELD),
        ({"points": {"threads": 4}}, "phases.1.points", FIELD),
        ({"points": {"threads": [4, 4]}}, "phases.1.points", FIELD),
        ({"points": {"warm_up": ["1s", "2s"]}}, "phases.1.points", FIELD),
        ({"points": [{"threads": 1, "warm_up": "soon"}]}, "phases.1.points", FIELD),
        ({"points": {"threads": list(range(MOST_POINTS + 1))}}, "phases.1.points", FIELD),
        ({"points": {"threads": list(range(11)), "bucket": list(range(10))}}, "phases.1.points", FIELD),
        ({"points": [{"bucket": "x" * 200}]}, "phases.1.points", FIELD),
        ({"points": {"treads": [1, 2]}}, "phases.1.points", "not a parameter: must be spelled threads"),
        ({"points": [{"threads": 1}, {"threads": 32}, {"bucket": "my-data"}]}, "phases.1.points", "use `repeat`"),
        ({"points": [{"threads": 1, "warm_up": "5m"}]}, "phases.1.timeout", "longer than 10m"),
        ({"repeat": 0}, "phases.1.repeat", "a whole number from 1 to 100"),
        ({"repeat": 2, "between": {**RESET, "script": "no.sh"}}, "phases.1.between.script", "a file in"),
        ({"repeat": 2, "between": {**RESET, "roles": ["clients"]}}, "phases.1.between.roles.0", "one of servers"),
        ({"repeat": 2, "measured": 0, "warm_up": 0}, "phases.1.repeat", "left out in a phase that measures nothing"),
        ({"repeat": 2, "between": {"roles": ["servers"], "timeout": 60}}, "phases.1.between.script", "is missing"),
        ({"repeat": 2, "between": {**RESET, "time_out": 1}}, "phases.1.between.time_out", "must be spelled timeout"),
        ({"nodes": {"servers": "threads"}}, "phases.1.nodes.servers", "one of drivers"),
        ({"nodes": {"drivers": "clients"}}, "phases.1.nodes.drivers", "one of the file's parameters"),
        ({"nodes": {"drivers": "threads"}}, "phases.1.nodes.drivers", "value 32: must be a whole number from 1 to 2"),
        ({"nodes": {"drivers": "bucket"}}, "phases.1.nodes.drivers", 'value "my-data": must be a whole'),
        (
            {"points": {"threads": [2, 3]}, "nodes": {"drivers": "threads"}},
            "phases.1.nodes.drivers", "value 3: must be a whole number from 1 to 2, the nodes of drivers",
        ),
        ({"rate": {"servers": "threads"}}, "phases.1.rate.servers", "one of drivers"),
        ({"rate": {"drivers": "rat"}}, "phases.1.rate.drivers", "one of the file's parameters"),
        ({"rate": {"drivers": "bucket"}}, "phases.1.rate.drivers", 'value "my-data": must be a number from 0'),
        ({"rate": {"drivers": "threads"}, "measured": 0, "warm_up": 0}, "phases.1.rate.drivers", "measures nothing"),
        (
            {"points": {"threads": [2, -1.5]}, "rate": {"drivers": "threads"}},
            "phases.1.rate.drivers", "value -1.5: must be a number from 0",
        ),
    ],
)  # fmt: skip
def test_bad_points_are_refused_at_their_place(keys: dict[str, Any], where: str, message: str) -> None:
    (problem,) = problems(phase(**keys), files=FILES)
    assert problem.where == where
    assert message in str(problem)


@pytest.mark.parametrize(
    "points",
    [{}, [], [{}], {"threads": 4}, {"threads": [4, 4]}, {"warm_up": ["1s"]}, [{"Threads": 1}], [{"threads": {}}]],
)
def test_editors_mark_what_cannot_be(points: Any) -> None:
    assert not SCHEMA.is_valid(phase(points=points))


def test_the_points_of_a_cell_are_limited_together() -> None:
    document = changed(**SHORT, **WEEK)
    second = {**document["phases"][1], "name": "again", "repeat": MOST_POINTS // 2}
    document["phases"] += [second, {**second, "name": "last"}]
    assert len(read(document, FILES).steps) == MOST_POINTS + 2
    document["phases"][3]["repeat"] += 1
    (problem,) = problems(document)
    assert str(problem) == "phases have 101 points: must be phases with at most 100 points together, repeats included"


def test_the_points_of_a_run_are_limited_too() -> None:
    cells = MOST_POINTS_OF_RUN // MOST_POINTS
    document = changed(**SHORT, **WEEK, phases__1__repeat=MOST_POINTS, repetitions=cells)
    assert len(read_all(document, FILES).plan.cells) == cells
    document["repetitions"] += 1
    (problem,) = problems(document)
    assert str(problem) == "phases make more than 1,000 points: must be at most 1,000 points in all cells together"


def test_many_points_may_take_less_time_for_the_history_of_their_execution() -> None:
    fits = phase(repeat=80, timeout="13m")
    assert read(fits, FILES).needed <= most_seconds(81)
    (problem,) = problems(phase(repeat=80, timeout="14m"))
    assert str(problem).startswith("phases may take ")
    assert "for one cell with 81 phases, points and faults" in str(problem)


def test_a_parameter_is_varied_by_the_matrix_or_by_points() -> None:
    (problem,) = problems({**phase(points={"threads": [1, 2]}), "matrix": {"parameters.threads": [3, 4]}})
    assert problem.where == "matrix.parameters.threads"
    assert str(problem).endswith("is also set by the points of the phase measure: must be in only one of them")


def test_changes_reach_points() -> None:
    document = phase(points={"threads": [1, 2]})
    changes = {"phases.measure.points.threads": [4], "phases.measure.repeat": 2}
    assert settings(read(document, FILES, changes=changes)) == [{"threads": 4}] * 2
    steps = {"few": {"phases.measure.points": {"threads": [1]}}, "many": {"phases.measure.points.threads": [5, 6]}}
    plan = read_all({**document, "scale": steps}, FILES).plan
    assert [settings(cell.benchmark) for cell in plan.cells] == [[{"threads": 1}], [{"threads": 5}, {"threads": 6}]]
