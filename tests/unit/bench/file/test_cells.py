"""The cells of a file: each combination once, in the order of the documentation; and what is refused, and where."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.bench.file.documents import FILE, FILES, changed, problems, read
from troop.bench.definition import names
from troop.bench.definition.keys import seconds
from troop.bench.definition.plan import Plan, Variant, from_plan_document, to_plan_document
from troop.bench.file import cells
from troop.bench.file.cells import LARGEST_PLAN
from troop.bench.file.read import read_all
from troop.bench.measuring.execution_history import LONGEST_CELL

STEPS: dict[str, dict[str, Any]] = {
    "n3": {"fleets.servers.count": 3, "fleets.drivers.count": 1},
    "n6": {"fleets.servers.count": 6},
}
WEEK: dict[str, Any] = {"expires_after": "168h", "sizes": {}}


def plan(document: Any = None, **how: Any) -> Plan:
    return read_all(FILE if document is None else document, FILES, **how).plan


def test_a_file_without_any_has_one_cell_which_is_itself() -> None:
    (cell,) = plan().cells
    assert (cell.cell, cell.variant, cell.variant.label) == ("c001", Variant(), "")
    assert cell.benchmark == read(FILE, FILES)


def test_scale_steps_come_first_then_combinations_then_repetitions() -> None:
    matrix = {"parameters.threads": [50, 200], "phases.measure.measured": ["5m", "1m"]}
    run_plan = plan(changed(scale=STEPS, matrix=matrix, repetitions=2, parallel=3, **WEEK))
    assert run_plan.parallel == 3
    assert [(cell.cell, cell.variant.label) for cell in run_plan.cells] == [
        ("c001", "n3, threads=50, phases.measure.measured=5m"),
        ("c002", "n3, threads=50, phases.measure.measured=5m, #2"),
        ("c003", "n3, threads=50, phases.measure.measured=1m"),
        ("c004", "n3, threads=50, phases.measure.measured=1m, #2"),
        ("c005", "n3, threads=200, phases.measure.measured=5m"),
        ("c006", "n3, threads=200, phases.measure.measured=5m, #2"),
        ("c007", "n3, threads=200, phases.measure.measured=1m"),
        ("c008", "n3, threads=200, phases.measure.measured=1m, #2"),
        *((f"c{n:03d}", label.replace("n3", "n6")) for n, label in enumerate(LABELS_OF_N3, 9)),
    ]
    last = run_plan.cells[-1].benchmark
    assert (last.fleet("servers").count, last.fleet("drivers").count) == (6, 2)
    assert (last.parameters["threads"], last.phase("measure").measured, last.expires_after) == (200, 60, 168 * 3600)
    assert last.files == FILES


def test_a_step_may_leave_a_tier_out_and_its_phases_with_it() -> None:
    phases = [*FILE["phases"], {"name": "fill", "roles": ["servers"], "script": "prepare.sh", "timeout": "1m"}]
    scale = {"without": {"fleets.servers.count": 0}, "with": {"fleets.servers.count": 3}}
    without, full = (one.benchmark for one in plan(changed(phases=phases, scale=scale, **WEEK)).cells)
    assert [fleet.role for fleet in without.fleets] == ["drivers"]
    assert [(phase.name, phase.roles) for phase in without.phases] == [
        ("prepare", ("drivers",)),
        ("measure", ("drivers",)),
    ]
    assert [fleet.role for fleet in full.fleets] == ["servers", "drivers"]
    assert [phase.name for phase in full.phases] == ["prepare", "measure", "fill"]


def test_a_step_with_fewer_nodes_than_zones_has_a_zone_for_each_node() -> None:
    scale = {f"n{count}": {"fleets.servers.count": count} for count in (1, 2, 9)}
    cells = plan(changed(scale=scale, **WEEK)).cells
    assert [one.benchmark.fleet("servers").zones for one in cells] == [1, 2, 3]


def test_a_step_of_more_nodes_has_its_own_traffic_between_zones() -> None:
    for traffic in ({}, {"traffic": {"cross_zone_gb": 1}}):
        document = changed(scale=STEPS, **traffic, **WEEK)
        run_plan = plan(document, changes={"scale.n6.traffic.cross_zone_gb": 40})
        assert [cell.benchmark.money.cross_zone_gb for cell in run_plan.cells] == [1 if traffic else None, 40]


LABELS_OF_N3 = [
    f"n3, threads={threads}, phases.measure.measured={measured}{again}"
    for threads in (50, 200)
    for measured in ("5m", "1m")
    for again in ("", ", #2")
]

_KEYS = {
    "parameters.threads": st.integers(1, 9),
    "parameters.bucket": st.sampled_from(["a", "b", "c"]),
    "parameters.sizes": st.lists(st.integers(1, 3), max_size=2),
    "phases.prepare.timeout": st.integers(60, 70),
}


@st.composite
def _files(draw: st.DrawFn) -> dict[str, Any]:
    counts = draw(st.lists(st.integers(3, 9), max_size=3, unique=True))
    chosen = draw(st.lists(st.sampled_from(sorted(_KEYS)), max_size=3, unique=True))
    matrix = {key: draw(st.lists(_KEYS[key], min_size=1, max_size=3, unique_by=str)) for key in chosen}
    return changed(
        scale={f"n{count}": {"fleets.servers.count": count} for count in counts},
        matrix=matrix,
        repetitions=draw(st.integers(1, 2)),
        parallel=draw(st.integers(1, 9)),
        **WEEK,
    )


@settings(max_examples=25)
@given(_files())
def test_every_combination_is_there_exactly_once(document: dict[str, Any]) -> None:
    run_plan = plan(document)
    steps = list(document["scale"]) or [None]
    repetitions = range(1, document["repetitions"] + 1)
    expected = [
        (step, dict(zip(document["matrix"], values, strict=True)), repetition)
        for step, values, repetition in product(steps, product(*document["matrix"].values()), repetitions)
    ]
    variants = [
        json.loads(json.dumps([c.variant.scale, c.variant.values, c.variant.repetition])) for c in run_plan.cells
    ]
    assert variants == [list(one) for one in expected]
    ids = [cell.cell for cell in run_plan.cells]
    assert ids == sorted(set(ids))
    assert all(names.CELL.fullmatch(one) for one in ids)
    assert len({cell.variant.label for cell in run_plan.cells}) == len(ids)
    for cell in run_plan.cells:
        for key, value in cell.variant.values.items():
            kind, name, *rest = key.split(".")
            held = cell.benchmark.parameters[name] if kind == "parameters" else cell.benchmark.phase(name).timeout
            assert held == value, rest
    assert from_plan_document(json.loads(json.dumps(to_plan_document(run_plan)))) == run_plan


@settings(max_examples=25)
@given(_files())
def test_a_cell_is_what_its_changes_make_of_the_file(document: dict[str, Any]) -> None:
    """Given with --set, to a file that has none, they come to the same."""
    alone = {key: value for key, value in document.items() if key not in ("scale", "matrix", "repetitions", "parallel")}
    for cell in plan(document).cells:
        step = document["scale"].get(cell.variant.scale, {})
        values = {key: list(v) if isinstance(v, tuple) else v for key, v in cell.variant.values.items()}
        assert cell.benchmark == read(alone, FILES, changes={**step, **values})


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"scale": {"N3": {}}}, "scale.N3", "is not a valid name"),
    ({"scale": {"n3": 3}}, "scale.n3", "is 3: must be a mapping"),
    ({"scale": {"n3": {"fleets.servers.count": -1}}}, "scale.n3.fleets.servers.count", "is -1: must be a whole number"),
    ({"scale": {"n3": {"fleets.clients.count": 1}}}, "scale.n3.fleets.clients.count", "there is no 'clients'"),
    ({"scale": {"n1": {"phases.measure.measured": "11m"}}}, "scale.n1", "with n1 makes a file in which phases.1.time"),
    ({"scale": {"n3": {}, "n4": {}}}, "scale.n4", "makes two identical cells, n3 and n4: must be changed so"),
    ({"matrix": []}, "matrix", "is []: must be a mapping"),
    ({"matrix": {"parameters.threads": 4}}, "matrix.parameters.threads", "is 4: must be a list of 1 to 200 different"),
    ({"matrix": {"parameters.threads": []}}, "matrix.parameters.threads", "is []: must be a list of 1 to 200"),
    ({"matrix": {"parameters.threads": [1, 2, 1]}}, "matrix.parameters.threads", "is [1, 2, 1]: must be a list of"),
    ({"matrix": {"parameters.threads": [1, 1.0]}}, "matrix.parameters.threads", "1 to 200 different values"),
    ({"matrix": {"parameters.sizes": [[1], [1]]}}, "matrix.parameters.sizes", "1 to 200 different values"),
    ({"matrix": {"parameters.bucket": ["x" * 199]}}, "matrix.parameters.bucket", "of at most 200 characters"),
    ({"matrix": {"parameters.threads": [None]}}, "matrix.parameters.threads", "text, a number, true or false"),
    ({"matrix": {"fleets.drivers": [{}]}}, "matrix.fleets.drivers", "text, a number, true or false"),
    ({"matrix": {"fleets.drivers": ["x"]}}, "matrix.fleets.drivers", "is 'x': must be a mapping"),
    ({"matrix": {"parameters.treads": [1]}}, "matrix.parameters.treads", "there is no 'treads'"),
    ({"matrix": {"phases.measure.measured": ["1m", 0]}}, "matrix", "with phases.measure.measured=0 makes a file in"),
    (
        {"matrix": {"parameters.threads": [1, 2], "fleets.drivers.count": [2, 0]}},
        "matrix.fleets.drivers.count",
        "is 0: must be at least 1: the phase measure measures, and no other role runs it",
    ),
    (
        {"scale": {"none": {"fleets.drivers.count": 0, "fleets.servers.count": 0}}},
        "scale.none.fleets.servers.count",
        "is 0: must be at least 1: the cell has no other role",
    ),
    ({"scale": {"x": {"fleets.servers.count": 0, "phases": 3}}}, "scale.x.phases", "is 3: must be a list"),
    ({"scale": {"x": {"fleets.servers.count": False}}}, "scale.x.fleets.servers.count", "is false: must be a whole"),
    ({"scale": {"x": {"fleets.servers.count": 2, "fleets.servers.zones": 3}}}, "scale.x.fleets.servers.zones", "is 3"),
    ({"fleets__servers__count": 0}, "fleets.servers.count", "is 0: must be a whole number from 1"),
    ({"matrix": {"phases.measure.measured": ["60s", "1m"]}}, "matrix", "makes two identical cells"),
    (
        {"scale": {"n3": {"parameters.threads": 3}}, "matrix": {"parameters.threads": [1]}},
        "scale.n3.parameters.threads",
        "is also in the matrix: must be in only one of them",
    ),
    *(
        ({"matrix": {key: [1]}}, f"matrix.{key}", "cannot be changed")
        for key in ("name", "expires_after", "scale", "matrix.parameters.threads", "parallel", "attempts", "budget")
    ),
    ({"matrix": {"traffic.cross_zone_gb": [1, 2]}}, "matrix.traffic.cross_zone_gb", "cannot be changed"),
    ({"scale": {"n3": {"sizes.smoke": {}}}}, "scale.n3.sizes.smoke", "cannot be changed"),
    ({"repetitions": 0}, "repetitions", "is 0: must be a whole number from 1 to 200"),
    ({"parallel": 51}, "parallel", "is 51: must be a whole number from 1 to 50"),
    ({"matrix": {"parameters.threads": [1, 2, 3]}, "repetitions": 67}, "repetitions", "1 x 3 x 67 cells (scale steps"),
    (
        {"matrix": {"parameters.threads": list(range(1, 21)), "parameters.bucket": list("abcdefghijk")}},
        "matrix",
        "220 in all: must be smaller: a run has at most 200 cells",
    ),
    (
        {"parameters__bucket": "x" * 4096, "parameters__sizes": ["x" * 4096] * 9, "repetitions": 200},
        "the file",
        "for 200 cells together: must be at most 4,194,304 bytes",
    ),
    (
        {"repetitions": 5, "parallel": 2, "expires_after": "110m"},
        "expires_after",
        "is 110m: must be at least 111m: 5 cells, 2 at a time, the longest of which may take 37m",
    ),
    ({"repetitions": 3, "expires_after": "110m"}, "expires_after", "3 cells, one after the other, the longest of"),
    ({"phases__0__timeout": "24h"}, "phases", "may take 1467m: must be at most 24h"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "where", "message"), REFUSED, ids=[f"{w}-{n}" for n, (_, w, _) in enumerate(REFUSED)]
)
def test_refusal_has_the_place_in_the_file(change: dict[str, Any], where: str, message: str) -> None:
    messages = [str(p) for p in problems(changed(**(WEEK | change)), files=FILES) if p.where == where]
    assert [text for text in messages if message in text], problems(changed(**(WEEK | change)), files=FILES)


def test_mistake_in_many_cells_is_reported_once() -> None:
    document = changed(scale=STEPS, matrix={"parameters.threads": [1, 2], "fleets.drivers.zones": [9]}, **WEEK)
    assert [p.where for p in problems(document, files=FILES)] == ["matrix.fleets.drivers.zones"]


@pytest.mark.parametrize(
    ("parallel", "enough"),
    [(1, 4 * 37), (2, 2 * 37), (3, 2 * 37), (4, 37), (9, 37)],
)
def test_the_time_covers_all_cells(parallel: int, enough: int) -> None:
    def document(minutes: int) -> dict[str, Any]:
        return changed(repetitions=4, parallel=parallel, sizes={}, expires_after=minutes * 60)

    assert len(plan(document(enough)).cells) == 4
    assert [p.where for p in problems(document(enough - 1), files=FILES)] == ["expires_after"]


def test_the_longest_of_those_at_a_time_counts() -> None:
    steps = {"short": {"phases.measure.timeout": "6m"}, "long": {"phases.measure.timeout": "50m"}}
    assert plan(changed(scale=steps, parallel=2, sizes={}, expires_after="77m")).longest == 70 * 60
    (problem,) = problems(changed(scale=steps, sizes={}, expires_after="109m"), files=FILES)
    assert "at least 110m: 2 cells, one after the other, the longest of which may take 77m" in str(problem)


SIZED = {
    "small": {"scale": {"n3": STEPS["n3"]}, "matrix": {}, "repetitions": 1, "parallel": 4},
    "wide": {"matrix.parameters.threads": [1, 2, 3], "scale.n6.fleets.servers.count": 9},
}


@pytest.mark.parametrize(
    ("size", "changes", "labels"),
    [
        (None, {}, ["n3, threads=4", "n3, threads=8", "n6, threads=4", "n6, threads=8"]),
        ("small", {}, ["n3"]),
        ("wide", {}, [f"{step}, threads={n}" for step in STEPS for n in (1, 2, 3)]),
        ("small", {"repetitions": 2}, ["n3", "n3, #2"]),
        ("small", {"matrix.parameters.threads": [5]}, ["n3, threads=5"]),
        (None, {"matrix": {}, "scale": {}}, [""]),
    ],
)  # fmt: skip
def test_sizes_and_single_changes_reach_them(size: str | None, changes: dict[str, Any], labels: list[str]) -> None:
    document = changed(scale=STEPS, matrix={"parameters.threads": [4, 8]}, expires_after="168h", sizes=SIZED)
    run_plan = plan(document, size=size, changes=changes)
    assert [cell.variant.label for cell in run_plan.cells] == labels
    assert {cell.benchmark.size for cell in run_plan.cells} == {size}
    assert run_plan.cells[-1].benchmark.fleet("servers").count == {"wide": 9, None: 6 if changes == {} else 3}.get(
        size, 3
    )


def test_matrix_can_be_added_to_a_file_without_one() -> None:
    assert [c.variant.label for c in plan(changed(**WEEK), changes={"matrix.parameters.threads": [1, 2]}).cells] == [
        "threads=1",
        "threads=2",
    ]


@pytest.mark.parametrize(
    ("document", "how", "message"),
    [
        ({}, {"changes": {"parameters.threads": 1}}, "set.parameters.threads has no effect: the matrix sets it: must"),
        ({}, {"changes": {"fleets.servers.count": 4}}, "has no effect: all scale steps set it: must be set as"),
        ({}, {"changes": {"parallel": 0}}, "set.parallel is 0: must be a whole number from 1 to 50"),
        ({}, {"changes": {"expires_after": "2h"}}, "set.expires_after is 2h: must be at least 148m: 4 cells"),
        ({}, {"changes": {"matrix": {"parameters.threads": []}}}, "set.matrix parameters.threads is []: must be a"),
        ({}, {"changes": {"scale.n7.fleets.servers.count": 4}}, "leads nowhere: there is no 'n7': must be one of n3"),
        ({"sizes": {"s": {"repetitions": 99}}}, {}, "sizes.s.repetitions makes 2 x 2 x 99 cells"),
        ({"sizes": {"s": {"scale.n6.fleets.servers.count": -1}}}, {}, "sizes.s.scale.n6.fleets.servers.count is -1"),
    ],
)  # fmt: skip
def test_a_size_or_a_change_that_cannot_be(document: dict[str, Any], how: dict[str, Any], message: str) -> None:
    whole = changed(scale=STEPS, matrix={"parameters.threads": [4, 8]}, **(WEEK | document))
    (problem,) = problems(whole, files=FILES, **how)
    assert message in str(problem)


def test_drivers_may_be_set_where_only_some_steps_have_them() -> None:
    document = changed(scale=STEPS, **WEEK)
    run_plan = plan(document, changes={"fleets.drivers.count": 5})
    assert [cell.benchmark.fleet("drivers").count for cell in run_plan.cells] == [1, 5]


def test_largest_plan_is_small_enough_to_read_at_every_launch() -> None:
    texts = ["x" * 4096] * 4
    document = changed(parameters__bucket="y", parameters__sizes=texts, repetitions=200, parallel=50, **WEEK)
    assert len(json.dumps(to_plan_document(plan(document)))) < 2 * LARGEST_PLAN


def sized() -> dict[str, Any]:
    """A small file with 200 cells in each of 20 sizes."""
    phases = [{**FILE["phases"][1], "name": f"p{n}", "measured": "1s", "warm_up": 0, "timeout": "9s"} for n in range(5)]
    sizes = {f"s{n}": {"description": str(n)} for n in range(20)}
    matrix = {"parameters.threads": list(range(1, 201))}
    return changed(phases=phases, matrix=matrix, sizes=sizes, expires_after="168h", parallel=50)


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The combinations of which a file was made and checked."""
    combinations, resolve = list[Any](), cells._resolved

    def counting(base: Any, one: Any, files: Any) -> Any:
        combinations.append(one)
        return resolve(base, one, files)

    monkeypatch.setattr(cells, "_resolved", counting)
    return combinations


@pytest.mark.slow
def test_all_sizes_together_are_no_more_work_than_the_largest_run(resolved: list[Any]) -> None:
    document = sized()
    (problem,) = problems(document, files=FILES)
    assert "takes more than 4,194,304 bytes for the cells of all sizes together, without repetitions" in str(problem)
    assert 200 < len(resolved) <= LARGEST_PLAN // len(json.dumps(document))


@pytest.mark.parametrize("how", [{}, {"changes": {"parameters.bucket": "b"}}, {"size": "s0,s1"}, {"size": "s2,s1,s0"}])
@pytest.mark.parametrize("most", [{"repetitions": 200}, {"matrix": {"parameters.threads": list(range(50))}}])
def test_a_choice_of_a_valid_file_is_not_too_large(most: dict[str, Any], how: dict[str, Any]) -> None:
    """The cells of the file, or those of the file and its sizes, have nearly the most bytes."""
    sizes = {f"s{n}": {"description": str(n)} for n in range(3)}
    document = changed(parameters__sizes=["x" * 4096] * 4, **(WEEK | {"sizes": sizes, "parallel": 50} | most))
    assert len(plan(document, **how).cells) in (50, 200)


def test_cells_with_too_many_points_end_the_search_for_problems(resolved: list[Any]) -> None:
    document = sized()
    document["phases"][0]["points"] = [{"bucket": str(n)} for n in range(90)]
    assert "phases make more than 1,000 points" in str(problems(document | {"sizes": {}}, files=FILES)[0])
    assert len(resolved) == 12


def test_the_longest_cell_fits_into_the_longest_run() -> None:
    assert seconds("168h") >= LONGEST_CELL


MIXES = [{"read": 80, "write": 20}, {"write": 50, "read": 50}]


def test_cells_can_change_a_mapping_as_a_whole_or_in_part() -> None:
    file = changed(parameters__mix=MIXES[0], **WEEK)
    assert read(file, FILES).parameters["mix"] == MIXES[0]
    whole = plan(file | {"matrix": {"parameters.mix": MIXES}})
    assert [cell.variant.label for cell in whole.cells] == ["mix=read:80/write:20", "mix=read:50/write:50"]
    assert [cell.benchmark.parameters["mix"] for cell in whole.cells] == MIXES
    assert from_plan_document(json.loads(json.dumps(to_plan_document(whole)))) == whole
    part = plan(file | {"matrix": {"parameters.mix.read": [80, 90]}})
    assert [cell.benchmark.parameters["mix"] for cell in part.cells] == [MIXES[0], {"read": 90, "write": 20}]
    assert [cell.variant.label for cell in part.cells] == ["mix.read=80", "mix.read=90"]


def test_a_mapping_in_points_is_stored_and_labelled() -> None:
    mixes = [{"sizes": [1, 2], "read": True}, {"sizes": [4], "read": True}]
    file = changed(parameters__mix=MIXES[0], phases__1__points={"mix": mixes}, **WEEK)
    whole = plan(file)
    assert from_plan_document(json.loads(json.dumps(to_plan_document(whole)))) == whole
    (cell,) = whole.cells
    points = [step.point.parameters for step in cell.benchmark.steps if step.point]
    assert points == [{"mix": {"sizes": (1, 2), "read": True}}, {"mix": {"sizes": (4,), "read": True}}]
    assert [Variant(values=point).label for point in points] == ["mix=read:True/sizes:1+2", "mix=read:True/sizes:4"]


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"parameters__mix": {}}, "parameters.mix", "a mapping of at most 100 names"),
        ({"parameters__mix": {"a": {"b": 1}}}, "parameters.mix", "a mapping of at most 100 names"),
        ({"parameters__mix": {"a b": 1}}, "parameters.mix", "a mapping of at most 100 names"),
        (
            {"parameters__mix": MIXES[0], "matrix": {"parameters.mix": [MIXES[0], {"write": 20, "read": 80}]}},
            "matrix.parameters.mix",
            "different values",
        ),
        (
            {"parameters__mix": MIXES[0], "matrix": {"parameters.mix.raed": [1, 2]}},
            "matrix.parameters.mix.raed",
            "must be one of read, write",
        ),
    ],
)
def test_bad_mapping_is_refused(change: dict[str, Any], where: str, words: str) -> None:
    refusals = {one.where: f"{one.message}: must be {one.allowed}" for one in problems(changed(**change, **WEEK))}
    assert words in refusals[where], refusals
