"""Tests how long the stages of a recovery took."""

from __future__ import annotations

from typing import Any

import pytest

from cli.chaos.stage_times import stage_seconds
from tests.unit.cli.conftest import event


def at(second: float) -> str:
    return f"2026-11-20T10:00:{second:06.3f}Z"


def recovered(healthy: list[float | None], **moments: float | None) -> dict[str, Any]:
    """Returns an event that recovered 40 s after its termination, with the stages' seconds."""
    known = {"noticed": 1.0, "launched": 3.0, "running": 20.0, "in_service": 30.0} | moments
    stages: dict[str, Any] = {name: None if second is None else at(second) for name, second in known.items()}
    stages["healthy"] = [{"source": f"t{n}", "at": None if one is None else at(one)} for n, one in enumerate(healthy)]
    return event("web", terminated_at=at(0), recovered_at=at(40), recovery_seconds=40.0, stages=stages)


ALL = {"noticed": 1.0, "launched": 2.0, "in_service": 27.0, "healthy": 5.0, "recovered": 5.0}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (recovered([31.0, 35.0]), ALL),
        (recovered([]), ALL | {"healthy": None, "recovered": 10.0}),
        (recovered([31.0, None]), ALL | {"healthy": None, "recovered": 10.0}),
        (recovered([35.0], launched=None), ALL | {"launched": None, "in_service": 29.0}),
        (recovered([35.0], noticed=3.5), ALL | {"noticed": 3.5, "launched": 0.0, "in_service": 26.5}),
        (recovered([40.5]), ALL | {"healthy": 10.0, "recovered": 0.0}),
    ],
    ids=["all", "no source", "one unknown", "unknown", "clocks differ", "after the end"],
)
def test_stages_add_up_to_the_recovery(one: dict[str, Any], expected: dict[str, float | None]) -> None:
    seconds = stage_seconds(one)
    assert list(seconds.items()) == [(stage, value) for stage, value in expected.items() if value is not None]
    assert sum(seconds.values()) == 40.0


def test_without_a_record_there_are_no_stages() -> None:
    whole = recovered([35.0])
    assert stage_seconds(event("web")) == {}
    assert stage_seconds(whole | {"stages": None}) == {}
    assert stage_seconds(whole | {"recovered_at": None}) == {}
