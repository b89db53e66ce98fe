"""Planned faults of a measured phase: what a file may say of them."""

from __future__ import annotations

from typing import Any

from tests.unit.bench.file.documents import FILES, changed, read
from tests.unit.bench.file.test_schema import SCHEMA
from troop.bench.definition.definition import from_document, to_document
from troop.bench.definition.planned_fault import Expectation, PlannedFault

PAUSE = {"at": "1m", "role": "servers", "count": 2, "method": "pause", "for": "30s"}
EXPECTED = {**PAUSE, "expect": {"rate": 0.6, "rate_back_within": "45s", "failed_at_most": 0}}
UNIT = {"at": 150, "unit": "web", "method": "latency  delay=200 seconds=60"}


def broken(*faults: Any, **phase: Any) -> dict[str, Any]:
    """A file whose measured phase, of 30 s and 5 min, has faults."""
    more = {f"phases__1__{key}": value for key, value in phase.items()}
    return changed(phases__1__faults=list(faults), sizes={}, **more)


def test_faults_are_stored_as_the_file_has_them() -> None:
    document = broken(EXPECTED, UNIT)
    SCHEMA.validate(document)
    benchmark = read(document, FILES)
    first, second = benchmark.phase("measure").faults
    expect = Expectation(0.6, rate_back_within=45, failed_at_most=0)
    assert first == PlannedFault(60, "pause", "servers", count=2, lasts=30, expect=expect)
    assert (second.at, second.unit) == (150, "web")
    assert second.method == "latency delay=200 seconds=60"
    stored = to_document(benchmark)
    its = {**PAUSE, "at": 60, "for": 30}
    its["expect"] = {"rate": 0.6, "share": 0.95, "rate_back_within": 45, "failed_at_most": 0}
    assert stored["phases"][1]["faults"][0] == its
    assert from_document(stored) == benchmark
    assert "faults" not in stored["phases"][0]


def test_each_point_has_the_faults_of_its_phase_and_the_script_between_none() -> None:
    between = {"script": "prepare.sh", "roles": ["servers"], "timeout": "1m"}
    steps = read(broken(PAUSE, repeat=2, between=between), FILES).steps
    assert [len(step.phase.faults) for step in steps] == [0, 1, 0, 1]
