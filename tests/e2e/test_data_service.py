"""The benchmark data-service on real Cassandra and memcached: both stacks, from one data set, and their comparison.

Takes minutes, and needs what `python -m local tools --service` gets: `make data-service` does both.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from local import tools
from local.demo.benchmark import put_data
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from local.settings import DATA_BUCKET
from tests.e2e.conftest import Deployment
from tests.e2e.test_cassandra import assert_nothing_left, object_of, printed_by
from troop.measure.operations import TOTAL

pytestmark = [
    pytest.mark.cassandra,
    pytest.mark.skipif(
        tools.missing_for_service() is not None,
        reason=f"make data-service gets what is missing: {tools.missing_for_service()}",
    ),
]

NAME = "Ring"
ROWS = 20_000
ADDRESS = f"s3://{DATA_BUCKET}/data-service"
SECONDS = 1800


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Deployment:
    put_data(account)
    return Deployment(account, NAME)


def run(deployment: Deployment, *words: str) -> str:
    """Runs a program of the checkout, shows what it says on the way, and returns its output."""
    done = subprocess.run(
        [*words], cwd=ROOT, env={**tool_environment(), **deployment.account.exports, "COLUMNS": "160"},
        stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def troop(deployment: Deployment, *words: str) -> str:
    return run(deployment, str(ROOT / "scripts" / "troop"), "--deployment", NAME, "bench", *words)


@pytest.fixture(scope="module")
def detail(deployment: Deployment) -> dict[str, Any]:
    program = str(tools.SERVICE_BENCHMARK / "dataset.py")
    more = ("--rows", str(ROWS), "--value-bytes", "500", "--rows-per-part", "6000", "--program", str(tools.SERVICE))
    run(deployment, sys.executable, program, "create", ADDRESS, *more)
    try:
        answer: dict[str, Any] = json.loads(
            troop(
                deployment,
                *("run", str(tools.SERVICE_BENCHMARK), "--size", "local", *tools.service_choices(), "--json"),
                *("--set", f"parameters.data_set={ADDRESS}", "--set", f"buckets=[{DATA_BUCKET}]"),
            )
        )
    finally:
        run(deployment, sys.executable, program, "delete", ADDRESS)
    return answer


def test_both_stacks_serve_the_same_rows(deployment: Deployment, detail: dict[str, Any]) -> None:
    assert detail["run"]["status"] == "SUCCEEDED", detail["run"]
    assert_nothing_left(deployment, detail)
    stored = []
    for cell in detail["cells"]:
        roster = json.loads(object_of(deployment, detail["run"]["run"], cell["cell"], "roster.json"))["nodes"]
        assert sum(node["role"] == "cache" for node in roster) == (cell["label"] == "disk-cache")
        first = next(node["id"] for node in roster if (node["role"], node["rank"]) == ("service", 0))
        stored.append(printed_by(deployment, detail["run"]["run"], cell["cell"], "verify", first)["stored"])
    assert stored[0] == stored[1]
    assert stored[0]["rows"] == ROWS


def test_each_stack_has_an_answer_with_response_times_and_the_steps_of_its_service(
    deployment: Deployment, detail: dict[str, Any]
) -> None:
    for cell in detail["cells"]:
        assert [one["outcome"] for one in cell["searches"]] == ["ALL_HELD"], cell["searches"]
        rows = [row for row in cell["results"] if row["role"] == "drivers"]
        assert {row["operation"] for row in rows} == {"read", "write", TOTAL}
        assert {row["timing"] for row in rows} == {"response"}
        results = json.loads(object_of(deployment, detail["run"]["run"], cell["cell"], "results.json"))
        separate = [row for phase in results["phases"] if phase["phase"] == "steady" for row in phase["separate"]]
        steps = {row["operation"]: row["count"] for row in separate}
        assert steps["select"] > 0
        assert ("cache-hit" in steps and steps["cache-hit"] > 0) == (cell["label"] == "disk-cache")


def test_the_comparison_states_the_cost_at_the_largest_rate_of_each(
    deployment: Deployment, detail: dict[str, Any]
) -> None:
    sides = [f"{detail['run']['run']}:{variant}" for variant in ("disk-cache", "ssd")]
    prices = [text for one in ("r7i.large=1500+0.03", "i4i.large=1800+0.03") for text in ("--price", one)]
    text = troop(deployment, "compare", *sides, "--cost-of", "servers,cache", "--term", "3y", *prices)
    sys.stdout.write(text)
    assert "operations a second (largest rate), B costs" in text
    assert "over 3 years" in text
