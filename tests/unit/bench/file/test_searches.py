"""Searches of a measured phase: what a file may say of them, and the worst case that they become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import definition as agent_definition
from tests.unit.bench.definition.test_search import RANGE
from tests.unit.bench.file.documents import FILES, changed, problems, read
from tests.unit.bench.file.test_schema import SCHEMA
from troop.bench.admission.estimate import expected_seconds, most_seconds
from troop.bench.definition.definition import Benchmark, from_document, to_document
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.definition.search import Search

LIMITS = [{"figure": "p90_ms", "at_most": 300}]
THREADS: dict[str, Any] = {"parameter": "threads", "from": 1, "to": 400}


def searched(search: Any, **phase: Any) -> dict[str, Any]:
    """A file whose measured phase has a search."""
    keys = {"limits": LIMITS, "search": search, **phase}
    return changed(**{f"phases__1__{key}": value for key, value in keys.items()}, sizes={}, expires_after="168h")


def points(benchmark: Benchmark) -> list[str]:
    return [step.name for step in benchmark.steps if step.phase_name == "measure"]


def test_a_search_is_stored_as_the_file_has_it_and_becomes_its_worst_case() -> None:
    document = searched(THREADS)
    SCHEMA.validate(document)
    benchmark = read(document, FILES)
    assert benchmark.phase("measure").search == RANGE
    assert to_document(benchmark)["phases"][1]["search"] == {**THREADS, "step": 1}
    assert points(benchmark) == [f"measure.{n}" for n in range(1, 14)]
    listed = read(searched({"parameter": "threads", "values": [1, 2.5, 64]}), FILES)
    assert listed.phase("measure").search == Search("threads", (1, 2.5, 64))
    assert len(points(listed)) == 5


def test_time_and_cost_cover_the_worst_case() -> None:
    once = read(changed(sizes={}, expires_after="168h"), FILES)
    search = read(searched(THREADS), FILES)
    assert search.longest - once.longest == 12 * 600
    assert search.needed - once.needed == 12 * (600 + 60)
    assert expected_seconds(search) - expected_seconds(once) > 12 * 330
    assert most_seconds(search) - most_seconds(once) > 12 * 600
    (problem,) = problems(searched(THREADS) | {"expires_after": "2h"}, files=FILES)
    assert problem.where == "expires_after"


_SEARCHES = st.one_of(
    st.builds(
        lambda low, size, step: {"parameter": "threads", "from": low, "to": low + size * step, "step": step},
        st.integers(1, 50), st.integers(1, 5000), st.integers(1, 9),
    ),
    st.lists(st.integers(1, 99), min_size=2, max_size=20, unique=True).map(
        lambda values: {"parameter": "threads", "values": sorted(values)}
    ),
)  # fmt: skip


@given(_SEARCHES, st.booleans(), st.sampled_from(["drivers", "servers"]))
def test_nodes_find_the_same_steps_in_what_is_stored(search: Any, between: bool, role: str) -> None:
    more = {"between": {"script": "prepare.sh", "roles": ["servers"], "timeout": 5}} if between else {}
    short = {"warm_up": 0, "measured": 2, "timeout": 4}
    benchmark = read(searched(search, **short, **more), FILES)
    stored = to_document(benchmark)
    assert from_document(stored) == benchmark
    mine = [step.name for step in benchmark.steps if role in step.phase.roles]
    assert [name for phase in stored["phases"] for name in agent_definition.steps(phase, role)] == mine


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (searched(THREADS, limits=[]), "search", "left out in a phase without limits and faults"),
    (searched({**THREADS, "to": 1}), "search.to", "larger than 1, the value of from"),
    (searched({"parameter": "threads", "to": 9}), "search.from", "set ("),
    (searched({"parameter": "threads"} | {"from": 1}), "search.to", "set ("),
    (searched({**THREADS, "step": 100}), "search.step", "a step that leads from 1 to 400, or set to: 301"),
    (searched({**THREADS, "values": [1, 2]}), "search.from", "left out beside values"),
    (searched({"parameter": "threads", "values": [1, 8, 8]}), "search.values", "an ascending list of 2 to"),
    (searched({**THREADS, "form": 1}), "search.form", "from"),
    (searched({**THREADS, "from": "1"}), "search.from", "a whole number"),
    (searched({**THREADS, "parameter": "treads"}), "search.parameter", "threads"),
    (searched(THREADS, points={"threads": [1]}), "points", "left out in a phase with a search"),
    (searched(THREADS, repeat=3), "repeat", "left out in a phase with a search"),
    (
        searched({"parameter": "rate", "from": 0, "to": 9}, rate={"drivers": "rate"}) | {"parameters": {"rate": 1}},
        "search.from",
        "above 0: a rate of 0 is no rate",
    ),
    (searched(THREADS) | {"parameters": {"threads": "many"}}, "search.parameter", "a parameter that is a number"),
    (
        searched(THREADS, nodes={"drivers": "threads"}) | {"parameters": {"threads": 2}},
        "search",
        "from 1 to 2, the nodes of drivers",
    ),
]


@pytest.mark.parametrize(("document", "where", "allowed"), REFUSED)
def test_a_wrong_search_is_refused_at_its_place(document: dict[str, Any], where: str, allowed: str) -> None:
    first = problems(document, files=FILES)[0]
    assert first.where == f"phases.1.{where}"
    assert allowed in first.allowed


def test_a_phase_that_measures_nothing_searches_nothing() -> None:
    document = changed(phases__0__search=THREADS, sizes={})
    assert [one.where for one in problems(document, files=FILES)][:1] == ["phases.0.search"]


def test_the_matrix_cannot_set_what_is_searched() -> None:
    document = searched(THREADS) | {"matrix": {"parameters.threads": [1, 2]}}
    (problem,) = problems(document, files=FILES)
    assert problem.message == "is also set by the search of the phase measure"


@pytest.mark.parametrize(
    "more",
    [
        {"scale": {"few": {"parameters.threads": 1}, "many": {"parameters.threads": 2}}},
        {"matrix": {"parameters.threads.most": [1, 2]}},
    ],
)
def test_neither_scale_steps_nor_parts_of_a_parameter_set_what_is_searched(more: dict[str, Any]) -> None:
    refusals = problems(searched(THREADS) | more, files=FILES)
    assert {one.message for one in refusals} == {"is also set by the search of the phase measure"}


def test_a_change_of_what_every_search_sets_has_no_effect() -> None:
    with pytest.raises(BadBenchmarkError, match="has no effect: the search of the phase measure sets it"):
        read(searched(THREADS), FILES, None, {"parameters.threads": 50})


def test_a_parameter_does_not_have_the_name_of_a_key_of_points() -> None:
    document = changed(sizes={})
    document["parameters"] = {**document["parameters"], "warm_up": 5}
    (problem,) = problems(document, files=FILES)
    assert (problem.where, problem.message) == ("parameters.warm_up", "is named warm_up")


def test_a_change_reaches_into_a_search() -> None:
    changes = {"phases.measure.search.to": 100, "phases.measure.limits.0.at_most": 20}
    phase = read(searched(THREADS), FILES, None, changes).phase("measure")
    assert (phase.search and phase.search.high, phase.limits[0].at_most) == (100, 20)
