"""The shortest warm-up with tools that start slowly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bench.file.documents import FILES, changed
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.read import read_all

LEAST = {"driver": {"slow": "15s", "2": "10s", "true": "9s"}}


def problems(warm_up: str, driver: Any, **more: Any) -> list[str]:
    file = {"expires_after": "168h", "sizes": {}, "parameters": {"driver": driver, "n": 1}}
    phase = {"phases__1__warm_up": warm_up, "phases__1__timeout": "2h", "phases__1__least_warm_up": LEAST}
    try:
        read_all(changed(**{**file, **phase, **more}), FILES)
    except BadBenchmarkError as bad:
        return [str(problem) for problem in bad.problems]
    return []


@pytest.mark.parametrize(
    ("warm_up", "driver", "least"),
    [
        ("15s", "slow", None),
        ("14s", "slow", "15s"),
        ("0s", "slow", "15s"),
        ("0s", "quick", None),
        ("9s", 2, "10s"),
        ("8s", True, "9s"),
        ("0s", 1, None),
    ],
)
def test_a_warm_up_ends_after_the_start_of_the_tool(warm_up: str, driver: Any, least: str | None) -> None:
    messages = problems(warm_up, driver)
    assert len(messages) == (least is not None)
    assert all(f"phases.1.warm_up is {warm_up}: must be at least {least}: with driver" in one for one in messages)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([{"driver": "slow"}, {"driver": "quick"}], ["phases.1.warm_up is 5s"]),
        ([{"driver": "slow", "warm_up": "15s"}, {"driver": "quick"}], []),
        ([{"driver": "quick"}, {"driver": "slow", "warm_up": "7s"}], ["phases.1.points.1 is 7s"]),
    ],
)
def test_each_point_has_its_own(points: list[dict[str, Any]], expected: list[str]) -> None:
    messages = problems("5s", "quick", phases__1__points=points)
    assert [one.partition(":")[0] for one in messages] == expected


def test_an_unknown_parameter_is_refused() -> None:
    (message,) = problems("1m", "slow", phases__1__least_warm_up={"drivers": {"slow": "15s"}})
    assert message.startswith("phases.1.least_warm_up.drivers is no parameter")
