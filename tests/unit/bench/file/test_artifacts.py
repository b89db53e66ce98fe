"""Artifacts that nodes need only with some values of parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bench.file.documents import FILES, changed
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.read import read_all


def plan_of(when: dict[str, Any], **changes: Any) -> Any:
    artifact = {"name": "tool", "source": "./tool", "sha256": 64 * "0", "when": when}
    base = {"expires_after": "168h", "sizes": {}, "parameters": {"driver": "a", "n": 1}, "artifacts": [artifact]}
    return read_all(changed(**{**base, **changes}), FILES).plan


@pytest.mark.parametrize(
    ("when", "changes", "expected"),
    [
        ({}, {}, [True]),
        ({"driver": "a"}, {}, [True]),
        ({"driver": "b"}, {}, [False]),
        ({"driver": "a", "n": 1}, {}, [True]),
        ({"driver": "a", "n": 2}, {}, [False]),
        ({"n": True}, {}, [False]),
        ({"driver": "b"}, {"matrix": {"parameters.driver": ["a", "b"]}}, [False, True]),
        ({"driver": "b"}, {"scale": {"x": {"parameters.driver": "b"}, "y": {}}}, [True, False]),
        ({"driver": "b"}, {"phases__1__points": {"driver": ["a", "b"]}}, [True]),
        ({"driver": "c"}, {"phases__1__points": {"driver": ["a", "b"]}}, [False]),
        ({"driver": "b", "n": 2}, {"phases__1__points": [{"driver": "b"}, {"driver": "a", "n": 2}]}, [False]),
    ],
)
def test_a_cell_has_the_artifacts_that_its_parameters_need(
    when: dict[str, Any], changes: dict[str, Any], expected: list[bool]
) -> None:
    cells = plan_of(when, **changes).cells
    assert [bool(one.benchmark.artifacts) for one in cells] == expected


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(BadBenchmarkError) as bad:
        plan_of({"drivers": "a"})
    assert "artifacts.0.when.drivers is no parameter: must be one of driver, n" in str(bad.value)
