"""A run of several cells: each combination of scale step and parameter once, two at a time, and one of them fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from itertools import combinations
from typing import Any

import pytest

from tests.e2e.benches import FLAKY, Bench, assert_nothing_left

ROLE = "flaky"
FAILING = FLAKY[ROLE]
LABELS = {"c001": "n1, threads=1", "c002": "n1, threads=2", "c003": "n2, threads=1", "c004": "n2, threads=2"}
NODES = {"c001": 1, "c002": 1, "c003": 2, "c004": 2}


@pytest.fixture(scope="module")
def detail(bench: Bench) -> dict[str, Any]:
    """What the API says of the run after its end."""
    run = bench.start(
        "matrix",
        {ROLE: 1},
        parameters={"threads": 8},
        scale={f"n{count}": {f"fleets.{ROLE}.count": count} for count in (1, 2)},
        matrix={"parameters.threads": [1, 2]},
        parallel=2,
    )
    return bench.ended(run)


def _during(cell: Mapping[str, Any]) -> tuple[datetime, datetime]:
    at = {step["phase"]: datetime.fromisoformat(step["at"]) for step in cell["steps"]}
    return at["launch"], at["over"]


def test_one_cell_that_fails_leaves_the_others_going(bench: Bench, detail: dict[str, Any]) -> None:
    assert [(cell["cell"], cell["label"]) for cell in detail["cells"]] == list(LABELS.items())
    statuses = {cell["cell"]: cell["status"] for cell in detail["cells"]}
    assert statuses == dict.fromkeys(LABELS, "SUCCEEDED") | {FAILING: "FAILED"}
    for cell in detail["cells"]:
        assert (cell["results"] is None) == (cell["cell"] == FAILING)
        assert ("simulated failure" in (cell["reason"] or "")) == (cell["cell"] == FAILING)
    run = detail["run"]
    assert (run["status"], run["cells"], run["nodes"]) == ("PARTIAL", 4, 4)
    assert run["reason"].startswith(f"3 of 4 cells succeeded; {FAILING} FAILED: measure.sh failed on 1 node")
    execution = bench.execution(run["run"])
    assert (execution["status"], execution["error"]) == ("FAILED", "PARTIAL")
    assert_nothing_left(bench, run["run"])


def test_two_cells_are_under_way_at_a_time_and_never_three(detail: dict[str, Any]) -> None:
    spans = [_during(cell) for cell in detail["cells"]]

    def at_once(*these: tuple[datetime, datetime]) -> bool:
        return max(began for began, _ in these) < min(over for _, over in these)

    assert [pair for pair in combinations(spans, 2) if at_once(*pair)]
    assert not [three for three in combinations(spans, 3) if at_once(*three)]


def test_each_cell_is_what_its_combination_says_and_has_all_of_its_own(bench: Bench, detail: dict[str, Any]) -> None:
    run, s3 = detail["run"]["run"], bench.account.client("s3")
    for cell in detail["cells"]:
        key = f"runs/{run}/{cell['cell']}/definition.json"
        stored = json.load(s3.get_object(Bucket=bench.deployment.outputs["ResultsBucket"], Key=key)["Body"])
        assert stored["parameters"]["threads"] == cell["variant"]["values"]["parameters.threads"]
        assert stored["fleets"][ROLE]["count"] == NODES[cell["cell"]]
        resources = [one for one in detail["resources"] if one["cell"] == cell["cell"]]
        kinds = [one["kind"] for one in resources]
        assert kinds.count("instance") == NODES[cell["cell"]]
        assert {kind: kinds.count(kind) for kind in ("security-group", "launch-template", "auto-scaling-group")} == {
            "security-group": 1,
            "launch-template": 1,
            "auto-scaling-group": 1,
        }
    resources = [(one["kind"], one["name"]) for one in detail["resources"]]
    assert len(set(resources)) == len(resources)
    assert detail["resources_left"] == 0
