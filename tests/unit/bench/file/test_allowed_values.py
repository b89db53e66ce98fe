"""Values that a file allows its parameters to have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bench.file.documents import FILES, changed
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.file.read import read_all

DIGEST = 64 * "0"
BASE: dict[str, Any] = {
    "expires_after": "168h",
    "sizes": {},
    "parameters": {"tool": "k6", "plan": "prepare.sh", "target": "app", "threads": 1, "data": ["big.csv"]},
    "allowed": {"tool": ["k6", "wrk", 1], "plan": "file", "data": "file", "target": "target"},
    "targets": {"app": {"addresses": ["10.0.0.1"], "ports": [80], "roles": ["drivers"]}},
    "artifacts": [{"name": "big.csv", "source": "big.csv", "sha256": DIGEST}],
}


def with_parameters(**values: Any) -> dict[str, Any]:
    return changed(**{**BASE, "parameters": {**BASE["parameters"], **values}})


def problems(document: Any) -> list[Problem]:
    with pytest.raises(BadBenchmarkError) as bad:
        read_all(document, FILES)
    return list(bad.value.problems)


def test_files_artifacts_targets_and_listed_values_are_allowed() -> None:
    changes: list[dict[str, Any]] = [{}, {"tool": "wrk"}, {"tool": 1}, {"plan": "big.csv"}, {"data": []}]
    for values in changes:
        read_all(with_parameters(**values), FILES)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tool": "ab"}, "parameters.tool is 'ab': must be one of k6, wrk, 1"),
        ({"tool": True}, "parameters.tool is true: must be one of k6, wrk, 1"),
        ({"target": "shop"}, "parameters.target is 'shop': must be a name of the file's targets: app"),
        ({"data": ["big.csv", "no.csv"]}, "parameters.data is 'no.csv': must be a file of the benchmark's folder or"),
        ({"plan": {"a": "prepare.sh"}}, "parameters.plan is"),
    ],
)
def test_another_value_is_refused_with_those_that_are_allowed(values: dict[str, Any], expected: str) -> None:
    (problem,) = problems(with_parameters(**values))
    assert str(problem).startswith(expected)


def test_files_are_not_judged_where_they_are_unknown() -> None:
    read_all(with_parameters(plan="elsewhere.js"), None)


def test_points_and_cells_are_judged_at_their_places() -> None:
    (problem,) = problems(changed(**BASE, phases__1__points={"tool": ["k6", "ab"]}))
    assert str(problem).startswith("phases.1.points is 'ab'")
    with pytest.raises(BadBenchmarkError, match=r"matrix\.parameters\.tool is 'ab'"):
        read_all(changed(**BASE, matrix={"parameters.tool": ["k6", "ab"]}))


def test_a_name_that_is_no_parameter_is_refused() -> None:
    (problem,) = problems(changed(**{**BASE, "allowed": {"tol": ["k6"]}}))
    assert str(problem).startswith("allowed.tol is not a parameter: must be")
