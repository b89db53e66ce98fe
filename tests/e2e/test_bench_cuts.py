"""The workflow's functions are killed at every call of AWS they make, and the run ends as if they had not been."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.benches import EXHAUSTIVE, Bench, assert_nothing_left

pytestmark = pytest.mark.skipif(not EXHAUSTIVE, reason="takes minutes: make test-all")

AT_ONCE = 4
EVERY = bool(os.environ.get("TROOP_CUT_EVERYWHERE"))
"""Also after calls that have only read; that takes minutes, and finds the same."""

FOLDER = "cuts"
MOST_ROUNDS = 40
"""More than enough for the calls that there are; a workflow that never gets further would go on for ever."""


@pytest.fixture(scope="module")
def cut(bench: Bench) -> list[dict[str, Any]]:
    """Runs, as the API tells of them, of which as many were begun as it took to be cut off everywhere."""
    orders = bench.cuts(FOLDER, [""] if EVERY else [])

    def one(number: int) -> dict[str, Any]:
        # Every other one fails, so that it comes to steps that the others leave out.
        return bench.ended(bench.start(f"cut-{number}", {"failing" if number % 2 else "drivers": 1}, orders))

    runs: list[dict[str, Any]] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while not runs or (bench.places(FOLDER, "seen") - bench.places(FOLDER, "cut") and len(runs) < MOST_ROUNDS):
            runs += pool.map(one, range(len(runs), len(runs) + AT_ONCE))
    return runs


def test_every_step_was_cut_off_at_each_of_its_calls(bench: Bench, cut: list[dict[str, Any]]) -> None:
    assert bench.places(FOLDER, "cut") == bench.places(FOLDER, "seen")
    steps = {place.rpartition(" ")[0].rpartition(" ")[0] for place in bench.places(FOLDER, "cut")}
    # The reaper is not of the workflow. Steps that write nothing leave nothing half done.
    assert steps >= {"launch", "open", "gather", "release", "collect", "fail", "settle", "close", "remove", "conclude"}
    assert steps >= {"close run", "conclude run", "report"}
    assert {"launch CreateAutoScalingGroup 1", "launch CreateSecurityGroup 1"} <= bench.places(FOLDER, "cut")


def test_whatever_was_cut_off_the_run_ends_as_it_would_have(bench: Bench, cut: list[dict[str, Any]]) -> None:
    for detail in cut:
        assert_nothing_left(bench, detail["run"]["run"])
        failing = any("-failing" in one["name"] for one in detail["resources"])
        status = "FAILED" if failing else "SUCCEEDED"
        assert (detail["run"]["status"], detail["cells"][0]["status"]) == (status, status), detail["run"]
        assert bench.execution(detail["run"]["run"])["status"] == status
        kinds = sorted(one["kind"] for one in detail["resources"])
        assert kinds == ["auto-scaling-group", "instance", "launch-template", "security-group", "volume"]
