"""A file's baseline: which points or cells it makes, in which order, and what is refused at which place."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.bench.file.documents import FILES, changed, problems, read
from troop.bench.admission.admission import in_all_cells
from troop.bench.admission.design import design, design_warnings
from troop.bench.definition.baseline import is_baseline, on_same_nodes, without_baseline
from troop.bench.definition.cell_order import in_start_order
from troop.bench.definition.definition import Benchmark, Step
from troop.bench.definition.plan import Plan, from_plan_document, to_plan_document
from troop.bench.definition.problems import Problem
from troop.bench.file.read import read_all

_ALL_DAY: dict[str, Any] = {"expires_after": "168h", "sizes": {}, "attempts": 1}
_THREADS, _TYPE = {"parameters.threads": 16}, {"fleets.servers.instance_type": "m7g.xlarge"}
_RESTORE = {"script": "prepare.sh", "roles": ["servers"], "timeout": "1m"}
_SEARCH = {"parameter": "threads", "from": 1, "to": 9}
_LIMITS = [{"figure": "p99_ms", "at_most": 10}]


def compared(baseline: Any, **changes: Any) -> dict[str, Any]:
    return changed(baseline=baseline, **{**_ALL_DAY, **changes})


def plan(baseline: Any, how: dict[str, Any] | None = None, **changes: Any) -> Plan:
    return read_all(compared(baseline, **changes), FILES, **(how or {})).plan


def measured(benchmark: Benchmark) -> list[Step]:
    return [step for step in benchmark.steps if step.point and not step.is_between]


def settings_of(benchmark: Benchmark) -> list[dict[str, Any]]:
    return [dict(step.point.parameters) for step in measured(benchmark) if step.point]


def test_parameters_are_compared_as_points_of_the_same_cells() -> None:
    run_plan = plan(_THREADS, repetitions=3, phases__1__between=_RESTORE)
    assert [cell.variant.values for cell in run_plan.cells] == [{}, {}, {}]
    one = run_plan.cells[0].benchmark
    assert settings_of(one) == [{"threads": 32}, {"threads": 16}]
    assert [step.name for step in one.steps] == [
        "prepare",
        *("measure.1.between", "measure.1", "measure.2.between", "measure.2"),
    ]
    assert one.baseline == run_plan.baseline == _THREADS
    assert from_plan_document(json.loads(json.dumps(to_plan_document(run_plan)))) == run_plan


def test_each_point_has_its_own_pair() -> None:
    points = [{"bucket": "one"}, {"bucket": "two", "warm_up": "1m"}]
    one = plan(_THREADS, phases__1__points=points).cells[0].benchmark
    assert settings_of(one) == [{"bucket": b, "threads": t} for b in ("one", "two") for t in (32, 16)]
    assert [step.phase.warm_up for step in measured(one)] == [30, 30, 60, 60]


def test_everything_else_is_compared_as_cells() -> None:
    run_plan = plan(_TYPE, repetitions=2, scale={"few": {"fleets.drivers.count": 1}, "more": {}})
    assert [(cell.cell, cell.variant.label) for cell in run_plan.cells] == [
        ("c001", "few, fleets.servers.instance_type=m7g.large"),
        ("c002", "few, fleets.servers.instance_type=m7g.xlarge"),
        ("c003", "few, fleets.servers.instance_type=m7g.large, #2"),
        ("c004", "few, fleets.servers.instance_type=m7g.xlarge, #2"),
        ("c005", "more, fleets.servers.instance_type=m7g.large"),
        ("c006", "more, fleets.servers.instance_type=m7g.xlarge"),
        ("c007", "more, fleets.servers.instance_type=m7g.large, #2"),
        ("c008", "more, fleets.servers.instance_type=m7g.xlarge, #2"),
    ]
    types = [cell.benchmark.fleet("servers").instance_type for cell in run_plan.cells]
    assert types == ["m7g.large", "m7g.xlarge"] * 4
    assert {json.dumps(cell.benchmark.baseline) for cell in run_plan.cells} == {json.dumps(_TYPE)}
    assert not any(measured(cell.benchmark) for cell in run_plan.cells)
    assert run_plan.is_interleaved
    assert plan(_TYPE).is_interleaved


@pytest.mark.parametrize(
    ("baseline", "labels"),
    [
        ({"fleets.servers.purchase": "spot"}, ["own", "spot"]),  # the file leaves it out
        ({"fleets.servers.zones": 1}, ["3", "1"]),
        ({"artifacts.data_tar_gz.sha256": "ab" * 32}, ["0f" * 32, "ab" * 32]),
    ],
)
def test_labels_name_both_sides(baseline: dict[str, Any], labels: list[str]) -> None:
    artifact = {"name": "data_tar_gz", "source": "./data.tar.gz", "sha256": "0f" * 32}
    cells = plan(baseline, artifacts=[artifact]).cells
    assert [cell.variant.label.partition("=")[2] for cell in cells] == labels


def test_a_parameter_beside_another_key_needs_other_nodes() -> None:
    candidate, other = plan(_THREADS | _TYPE).cells
    assert (candidate.benchmark.parameters["threads"], other.benchmark.parameters["threads"]) == (32, 16)
    assert not is_baseline(other.benchmark.baseline, candidate.variant.values)
    assert is_baseline(other.benchmark.baseline, other.variant.values)
    assert not measured(candidate.benchmark)


def test_the_file_is_the_candidate_whatever_is_set() -> None:
    one = plan(_THREADS, {"changes": {"parameters.threads": 64}}).cells[0].benchmark
    assert settings_of(one) == [{"threads": 64}, {"threads": 16}]


@pytest.mark.parametrize(
    "changes",
    [
        {"baseline": _THREADS},
        {"baseline.parameters.threads": 16},
        {"baseline.parameters.threads": 8, "baseline": _THREADS},
    ],
)
def test_sizes_and_single_changes_set_it(changes: dict[str, Any]) -> None:
    for how in ({"size": "compare"}, {"changes": changes}):
        document = changed(**{**_ALL_DAY, "sizes": {"compare": changes}})
        assert read_all(document, FILES, **how).plan.baseline == _THREADS
    assert plan(_THREADS, {"changes": {"baseline": {}}}).baseline == {}


def test_version_is_shown_and_changes_nothing() -> None:
    benchmark = read(changed(version="9f3c2ab"), FILES)
    assert replace(benchmark, version="") == read(changed(), FILES)
    assert benchmark.version == "9f3c2ab"
    assert read(changed(), FILES, changes={"version": "0123"}).version == "0123"
    for wrong in (1.1, "x" * 101, "two\nlines", None):
        assert problems(changed(version=wrong))[0].where == "version"


@pytest.mark.parametrize(("value", "staged"), [("b", True), ("c", False)])
def test_artifacts_of_the_baseline_are_staged(value: str, staged: bool) -> None:
    artifact = {"name": "tool", "source": "./tool", "sha256": 64 * "0", "when": {"driver": "b"}}
    parameters = {"driver": "a", "threads": 1}
    same = plan({"parameters.driver": value}, parameters=parameters, artifacts=[artifact])
    assert [bool(cell.benchmark.artifacts) for cell in same.cells] == [staged]
    other = plan({"parameters.driver": value} | _TYPE, parameters=parameters, artifacts=[artifact])
    assert [bool(cell.benchmark.artifacts) for cell in other.cells] == [False, staged]


@pytest.mark.parametrize(
    ("baseline", "changes", "place", "text"),
    [
        (_THREADS, {"parameters__threads": 16}, "baseline.parameters.threads", "is 16, the file's own value"),
        ({"parameters.sizes": [1024, 10240]}, {}, "baseline.parameters.sizes", "the file's own value"),
        (
            _THREADS | {"parameters.bucket": "my-data"},
            {},
            "baseline.parameters.bucket",
            "is 'my-data', the file's own value",
        ),
        ({"fleets.servers.purchase": "on-demand"}, {}, "baseline", "changes nothing"),
        ({"phases.measure.measured": 300}, {}, "baseline", "changes nothing"),
        ({"parameters.thread": 16}, {}, "baseline.parameters.thread", "leads nowhere"),
        ({"fleets.server.count": 16}, {}, "baseline.fleets.server.count", "leads nowhere"),
        (
            {"parameters.bucket": 12},
            {},
            "baseline.parameters.bucket",
            "text as the file's own value, 'my-data': \"12\"",
        ),
        ({"parameters.mix.read": 2}, {}, "baseline.parameters.mix.read", "a whole parameter, parameters.mix"),
        ({"fleets.servers.instance_type": "big"}, {}, "baseline.fleets.servers.instance_type", "is 'big'"),
        ({"phases.measure.warm_up": "6m"}, {}, "baseline", "phases.1.timeout is 10m: must be longer than 11m"),
        ({"expires_after": "3h"}, {}, "baseline.expires_after", "cannot be changed"),
        ({"version": "2"}, {}, "baseline.version", "cannot be changed"),
        ({"traffic.s3_gets": 2}, {}, "baseline.traffic.s3_gets", "cannot be changed"),
        (_THREADS, {"matrix": {"parameters.threads": [1, 2]}}, "baseline.parameters.threads", "the matrix"),
        (_THREADS, {"scale": {"a": {"parameters.threads": 1}}}, "baseline.parameters.threads", "the scale step a"),
        (_TYPE, {"scale": {"a": {"fleets.servers": {}}}}, "baseline.fleets.servers.instance_type", "scale step a"),
        (_THREADS, {"phases__1__points": {"threads": [1, 2]}}, "baseline.parameters.threads", "points of the phase"),
        (
            {"parameters.bucket": "b"},
            {"phases__1__search": _SEARCH, "phases__1__limits": _LIMITS},
            "baseline",
            "needs pairs of points in the phase measure",
        ),
        (_THREADS, {"allowed": {"threads": [32, 64]}}, "baseline.parameters.threads", "one of 32, 64"),
        (_THREADS, {"phases": [changed()["phases"][0]]}, "baseline", "no phase without faults has a measured time"),
        (_THREADS, {"phases__1__nodes": {"drivers": "threads"}, "parameters__threads": 2}, "baseline", "from 1 to 2"),
        ({}.fromkeys(map(str, range(11)), 1), {}, "baseline", "has too many entries"),
        ({"parameters.threads": "x" * 300}, {}, "baseline.parameters.threads", "at most 200 characters"),
        ([], {}, "baseline", "a mapping"),
    ],
)
def test_refused_at_the_door(baseline: Any, changes: dict[str, Any], place: str, text: str) -> None:
    refusals = problems(compared(baseline, **changes), files=FILES)
    assert any(one.where == place and text in f"{one.message}: must be {one.allowed}" for one in refusals), refusals


def test_a_search_is_compared_on_other_nodes() -> None:
    cells = plan(_TYPE, phases__1__search=_SEARCH, phases__1__limits=_LIMITS).cells
    assert len(cells) == 2


def test_a_problem_of_the_baselines_cells_is_at_its_key() -> None:
    run = read_all(compared(_TYPE), FILES)

    def large(benchmark: Benchmark) -> list[Problem]:
        is_large = benchmark.fleet("servers").instance_type == "m7g.xlarge"
        return [Problem(("fleets", "servers", "instance_type"), "is large", "small")] if is_large else []

    assert [one.where for one in in_all_cells(run.benchmark, run.plan, large)] == [f"baseline.{next(iter(_TYPE))}"]


@pytest.mark.parametrize(("baseline", "points", "cells"), [(_THREADS, 100, 1), (_TYPE, 50, 2)])
def test_limits_count_both_sides(baseline: dict[str, Any], points: int, cells: int) -> None:
    """Points of 50 lengths: 100 with a baseline on the same nodes, which is the most; and 50 in each of two cells."""
    measure: dict[str, Any] = {
        "phases__1__points": {"bucket": [f"b{n}" for n in range(50)]},
        "phases__1__timeout": "6m",
    }
    run_plan = plan(baseline, **measure)
    assert [len(measured(cell.benchmark)) for cell in run_plan.cells] == [points] * cells
    (wrong,) = problems(compared(baseline, repetitions=11, **measure), files=FILES)
    assert "more than 1,000 points" in str(wrong)
    measure["phases__1__points"]["bucket"].append("b50")
    if cells == 1:
        (wrong,) = problems(compared(baseline, **measure), files=FILES)
        assert "have 102 points with those of the baseline" in str(wrong)


def test_cells_of_both_sides_count() -> None:
    assert len(plan(_TYPE, repetitions=100, parallel=50).cells) == 200
    (wrong,) = problems(compared(_TYPE, repetitions=101))
    assert (wrong.where, "1 x 1 x 101 x 2 cells" in wrong.message) == ("repetitions", True)
    assert len(plan(_THREADS, repetitions=200, parallel=50).cells) == 200


def test_expiry_covers_both_sides() -> None:
    alone = read_all(changed(**_ALL_DAY), FILES).plan.cells[0].benchmark
    points = plan(_THREADS, phases__1__between=_RESTORE).cells[0].benchmark
    assert points.longest == alone.longest + 600 + 2 * 60
    (wrong,) = problems(compared(_TYPE, expires_after="1h", sizes={}))
    assert "2 cells, one after the other" in wrong.allowed


_BASELINES = st.sampled_from([_THREADS, _TYPE, _THREADS | _TYPE, {"parameters.threads": 1, "parameters.sizes": [1]}])


@st.composite
def _files(draw: st.DrawFn) -> dict[str, Any]:
    chosen = draw(st.sets(st.sampled_from(["scale", "matrix", "points", "between"])))
    changes: dict[str, Any] = {"repetitions": draw(st.integers(1, 4)), "parallel": draw(st.integers(1, 3))}
    if "scale" in chosen:
        changes["scale"] = {f"n{n}": {"fleets.drivers.count": n} for n in range(1, draw(st.integers(2, 3)))}
    if "matrix" in chosen:
        changes["matrix"] = {"phases.prepare.timeout": draw(st.sampled_from([["1m"], ["1m", "2m"]]))}
    if "points" in chosen:
        changes["phases__1__points"] = {"bucket": ["a", "b", "c"][: draw(st.integers(1, 3))]}
    if "between" in chosen:
        changes["phases__1__between"] = _RESTORE
    changes["phases__1__repeat"] = draw(st.integers(1, 3))
    return compared(draw(_BASELINES), **changes)


@settings(max_examples=60)
@given(_files(), st.text(min_size=1, max_size=20))
def test_pairs_are_adjacent_balanced_and_differ_in_the_baseline_alone(document: dict[str, Any], run: str) -> None:
    planned = read_all(document, FILES).plan
    ordered = in_start_order(planned, run)
    assert in_start_order(planned, run) == ordered
    baseline, begins = ordered.baseline, Counter[tuple[Any, bool]]()
    if on_same_nodes(baseline):
        for cell in ordered.cells:
            each = settings_of(cell.benchmark)
            steps = measured(cell.benchmark)
            for n in range(0, len(each), 2):
                first, second = each[n : n + 2]
                assert is_baseline(baseline, first) != is_baseline(baseline, second)
                assert without_baseline(baseline, first) == without_baseline(baseline, second)
                assert replace(steps[n].phase, name="") == replace(steps[n + 1].phase, name="")
                assert steps[n].limits == steps[n + 1].limits
                setting = json.dumps([cell.variant.scale, cell.variant.values, without_baseline(baseline, first)])
                begins[setting, is_baseline(baseline, first)] += 1
    else:
        for one, two in zip(ordered.cells[::2], ordered.cells[1::2], strict=True):
            assert is_baseline(baseline, one.variant.values) != is_baseline(baseline, two.variant.values)
            assert (one.variant.scale, one.variant.repetition) == (two.variant.scale, two.variant.repetition)
            rest = without_baseline(baseline, one.variant.values)
            assert rest == without_baseline(baseline, two.variant.values)
            (candidate,) = (cell.benchmark for cell in (one, two) if not is_baseline(baseline, cell.variant.values))
            (other,) = (cell.benchmark for cell in (one, two) if is_baseline(baseline, cell.variant.values))
            servers = candidate.fleet("servers"), other.fleet("servers")
            assert [fleet.instance_type for fleet in servers] == ["m7g.large", "m7g.xlarge"]
            fleets = (replace(servers[1], instance_type="m7g.large"), *other.fleets[1:])
            assert replace(other, fleets=fleets, parameters=candidate.parameters) == candidate
            begins[json.dumps([one.variant.scale, rest]), is_baseline(baseline, one.variant.values)] += 1
    assert begins
    assert all(abs(begins[setting, True] - begins[setting, False]) <= 1 for setting, _ in begins)


@pytest.mark.parametrize(
    ("baseline", "changes", "sentence", "warnings"),
    [
        ({}, {}, "", 0),
        (
            _THREADS,
            {"repetitions": 6, "phases__1__between": _RESTORE},
            "6 pairs of points on the same nodes, in balanced order; compared with threads=16",
            0,
        ),
        (
            _THREADS,
            {"repetitions": 2, "phases__1__points": {"bucket": ["a", "b"]}, "scale": {"x": {}}},
            "2 pairs of points for each of 2 settings, on the same nodes, in balanced order; compared with threads=16",
            1,
        ),
        (_THREADS, {"phases__1__repeat": 9}, "1 pair of points on the same nodes; compared with threads=16", 2),
        (
            _TYPE,
            {"repetitions": 5},
            "5 pairs of cells on different nodes, in rounds; compared with fleets.servers.instance_type=m7g.xlarge",
            0,
        ),
    ],
)
def test_design_is_one_sentence(baseline: Any, changes: dict[str, Any], sentence: str, warnings: int) -> None:
    run_plan = plan(baseline, **changes)
    assert (design(run_plan), len(list(design_warnings(run_plan)))) == (sentence, warnings)
