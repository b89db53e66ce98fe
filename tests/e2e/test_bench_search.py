"""A run whose phases search: the real workflow chooses each point, and goes past what a search does not need."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.benches import Bench, assert_nothing_left

LIMITS = [{"figure": "p90_ms", "at_most": 50}, {"figure": "error_rate", "at_most": 0.01}]
"""Without a slowdown, p90 of simulated nodes is about 6 ms; one of 1,001 operations fails."""


def _phase(name: str, *values: int) -> dict[str, Any]:
    search = {"parameter": "slowdown", "values": [*values]}
    each = {"roles": ["drivers"], "script": "measure.sh", "measured": "1s", "timeout": "1m", "start_together": True}
    return {"name": name, **each, "limits": LIMITS, "search": search}


@pytest.fixture(scope="module")
def detail(bench: Bench) -> dict[str, Any]:
    """What the API says of the run after its end."""
    phases = [_phase("measure", 1, 4, 16, 64), _phase("beyond", 64, 128, 256, 512)]
    run = bench.start("search", {"drivers": 2}, phases=phases, parameters={"slowdown": 1}, expires_after="4h")
    return bench.ended(run)


def test_run_has_the_outcome_of_each_search_and_the_verdict(bench: Bench, detail: dict[str, Any]) -> None:
    (cell,) = detail["cells"]
    assert (detail["run"]["status"], cell["status"], cell["verdict"]) == ("SUCCEEDED", "SUCCEEDED", "FAILED")
    answers = [
        (one["phase"], one["outcome"], one["largest"], one["smallest"], one["points"]) for one in cell["searches"]
    ]
    assert answers == [("measure", "BRACKETED", 4, 16, 6), ("beyond", "NONE_HELD", None, 64, 2)]
    tried = [(one["phase"], one["setting"], one["held"]) for one in cell["limits"]]
    assert tried == [
        ("measure", "slowdown=1", True),
        ("measure", "slowdown=64", False),
        ("measure", "slowdown=4", True),
        ("measure", "slowdown=16", False),
        ("measure", "slowdown=4, #2", True),
        ("measure", "slowdown=16, #2", False),
        ("beyond", "slowdown=64", False),
        ("beyond", "slowdown=64, #2", False),
    ]
    assert_nothing_left(bench, detail["run"]["run"])


def test_points_that_a_search_did_not_need_have_no_step_and_no_results(detail: dict[str, Any]) -> None:
    (cell,) = detail["cells"]
    steps = [one["phase"] for one in cell["steps"]]
    assert steps[2:-3] == [*(f"measure.{n}" for n in range(1, 7)), "beyond.1", "beyond.2"]
    assert {(one["phase"], one["point"]) for one in cell["results"]} == {
        *(("measure", n) for n in range(1, 7)),
        *(("beyond", n) for n in (1, 2)),
    }
