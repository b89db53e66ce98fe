"""Limits of a measured phase: what a file may say of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bench.file.documents import FILES, changed, problems, read
from tests.unit.bench.file.test_schema import SCHEMA
from troop.bench.definition.definition import from_document, to_document
from troop.bench.definition.phase_limits import PhaseLimit
from troop.bench.file.phase_limits import MOST_LIMITS
from troop.bench.file.read import read_all

PARTS = {"figure": "p90_ms", "at_most": 300, "every": "10s", "operation": "read", "role": "drivers"}
ERRORS = {"figure": "error_rate", "at_most": 0.001}
RATE = {"figure": "per_second", "at_least": 1000}


def limited(*limits: Any, **phase: Any) -> dict[str, Any]:
    """A file whose measured phase, of 30 s and 5 min, has limits."""
    more = {f"phases__1__{key}": value for key, value in phase.items()}
    return changed(phases__1__limits=list(limits), sizes={}, **more)


def test_limits_are_stored_as_the_file_has_them() -> None:
    document = limited(PARTS, ERRORS, RATE)
    SCHEMA.validate(document)
    benchmark = read(document, FILES)
    assert benchmark.phase("measure").limits == (
        PhaseLimit("p90_ms", at_most=300, every=10, operation="read", role="drivers"),
        PhaseLimit("error_rate", at_most=0.001),
        PhaseLimit("per_second", at_least=1000),
    )
    stored = to_document(benchmark)
    assert stored["phases"][1]["limits"] == [{**PARTS, "every": 10}, ERRORS, RATE]
    assert from_document(stored) == benchmark
    assert "limits" not in stored["phases"][0]


def test_a_run_without_limits_and_a_step_of_points_keep_theirs() -> None:
    assert read(changed(), FILES).phase("measure").limits == ()
    steps = read(limited(ERRORS, repeat=2) | {"expires_after": "24h"}, FILES).steps
    assert [len(step.phase.limits) for step in steps] == [0, 1, 1]


REFUSED: list[tuple[list[Any], str, str]] = [
    ([{**ERRORS, "figure": "p91_ms"}], "limits.0.figure", "one of mean_ms, p50_ms"),
    ([{"figure": "p90_ms"}], "limits.0", "limited by at_most or by at_least"),
    ([RATE, {**RATE, "at_most": 2000}], "limits.1", "limited by only one of them"),
    ([{"figure": "p90_ms", "at_least": 3}], "limits.0.at_least", "left out for p90_ms: use at_most"),
    ([{"figure": "error_rate", "at_most": 5}], "limits.0.at_most", "a part from 0 to 1: 0.001 is 0.1 %"),
    ([{"figure": "p90_ms", "at_most": "fast"}], "limits.0.at_most", "a number from 0"),
    ([{"figure": "p90_ms", "at_most": float("nan")}], "limits.0.at_most", "a number from 0"),
    ([{**ERRORS, "operation": "two words"}], "limits.0.operation", "the name of an operation"),
    ([{**ERRORS, "role": "servers"}], "limits.0.role", "one of drivers, the phase's roles"),
    ([ERRORS, RATE, ERRORS], "limits.2", "left out"),
    ([{**RATE, "within": 3}], "limits.0.within", ""),
    ([{"figure": "mean_ms", "at_most": 3, "every": 10}], "limits.0.every", "left out for mean_ms"),
    ([{**PARTS, "every": "5s"}], "limits.0.every", "a multiple of 2s: nodes store times in such steps"),
    ([{**RATE, "every": "5m"}], "limits.0.every", "shorter: the measured time, 5m, must contain 5m as a whole"),
    ([{**RATE, "at_least": 0}], "limits.0.at_least", "above 0"),
    ([{"figure": "error_rate", "at_most": 1}], "limits.0.at_most", "below 1"),
    ([{"figure": "p90_ms", "at_most": 0}], "limits.0.at_most", "above 0"),
    (
        [{"figure": "per_second", "at_least": 9}, {"figure": "per_second", "at_most": 8}],
        "limits.1.at_most",
        "at least 9, as another limit of per_second demands",
    ),
    ([{**RATE, "at_least": n} for n in range(MOST_LIMITS + 1)], "limits", f"at most {MOST_LIMITS}"),
]


@pytest.mark.parametrize(("limits", "where", "allowed"), REFUSED)
def test_a_wrong_limit_is_refused_at_its_place(limits: list[Any], where: str, allowed: str) -> None:
    (problem,) = problems(limited(*limits), files=FILES)
    assert problem.where == f"phases.1.{where}"
    assert allowed in problem.allowed


def test_rates_are_counted_by_second_whatever_the_steps_of_times() -> None:
    read(limited({**RATE, "every": "5s"}, {**ERRORS, "every": 3}), FILES)


def test_parts_fit_the_steps_of_each_point() -> None:
    """A longer warm-up makes longer steps: 30 + 300 s have steps of 2 s, 900 + 300 s of 5 s."""
    document = limited(
        {**PARTS, "every": "6s"}, points=[{"threads": 1}, {"threads": 2, "warm_up": "15m"}], timeout="30m"
    )
    (problem,) = problems(document | {"expires_after": "24h"}, files=FILES)
    assert "a multiple of 5s" in problem.allowed


def test_a_phase_that_measures_nothing_has_no_limits() -> None:
    document = changed(phases__0__limits=[ERRORS], sizes={})
    assert [(one.where, one.allowed) for one in problems(document, files=FILES)] == [
        ("phases.0.limits", "left out in a phase that measures nothing")
    ]


def test_a_size_changes_single_limits() -> None:
    document = limited(RATE) | {
        "sizes": {"smoke": {"phases.measure.limits.0.at_least": 5}, "free": {"phases.measure.limits": []}}
    }
    assert read(document, FILES, "smoke").phase("measure").limits[0].at_least == 5
    assert read(document, FILES, "free").phase("measure").limits == ()


def test_a_step_without_a_role_has_no_limits_of_it() -> None:
    document = limited(ERRORS, {**RATE, "role": "servers"}, roles=["servers", "drivers"], timeout="6m")
    steps = {"with": {"fleets.servers.count": 3}, "without": {"fleets.servers.count": 0}}
    plan = read_all(document | {"scale": steps, "expires_after": "24h"}, FILES).plan
    assert [len(cell.benchmark.phase("measure").limits) for cell in plan.cells] == [2, 1]
