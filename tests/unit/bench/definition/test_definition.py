"""A benchmark as it is stored: what was accepted is what the workflow and the nodes read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from tests.unit.bench.definition.benchmark_values import BENCHMARKS
from troop.bench.definition.definition import Benchmark, DefinitionError, from_document, to_document


@given(BENCHMARKS)
def test_stored_document_reads_back_as_the_same_benchmark(benchmark: Benchmark) -> None:
    document = to_document(benchmark)
    stored = json.loads(json.dumps(document))
    assert from_document(stored) == benchmark
    assert stored == document


@given(BENCHMARKS)
def test_key_of_a_later_version_is_ignored(benchmark: Benchmark) -> None:
    document = to_document(benchmark)
    for part in (document, *document["fleets"].values(), *document["phases"], *document["artifacts"]):
        part["later"] = 1
    assert from_document(document) == benchmark


@given(BENCHMARKS)
def test_a_cell_boots_side_by_side_and_does_its_phases_one_by_one(benchmark: Benchmark) -> None:
    assert benchmark.longest == max(f.boot_timeout for f in benchmark.fleets) + sum(p.timeout for p in benchmark.phases)
    assert benchmark.nodes == sum(benchmark.fleet(f.role).count for f in benchmark.fleets)
    assert [benchmark.phase(p.name) for p in benchmark.phases] == list(benchmark.phases)


_DOCUMENT = {
    "format": "troop.benchmark/1",
    "name": "n",
    "description": "",
    "expires_after": 600,
    "fleets": {
        "drivers": {
            "count": 1,
            "instance_type": "t4g.small",
            "zones": 1,
            "boot_timeout": 60,
            "root_volume_gib": 8,
            "volumes": [],
        }
    },
    "phases": [{"name": "p", "roles": ["drivers"], "script": "p.sh", "timeout": 60}],
    "parameters": {},
    "artifacts": [],
    "buckets": [],
    "files": ["p.sh"],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "troop.benchmark/2"}, "'troop.benchmark/2', not 'troop.benchmark/1'"),
        ({"format": None}, "format None"),
        ({"phases": None}, "damaged"),
        ({"fleets": {"drivers": {"count": 1}}}, "damaged"),
        ({"phases": [{"name": "p", "roles": ["drivers"]}]}, "damaged"),
        ({"artifacts": ["data"]}, "damaged"),
    ],
)
def test_another_document_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match="run the benchmark again") as refused:
        from_document({**_DOCUMENT, **change})
    assert message in str(refused.value)


def test_unknown_fleet_or_phase_is_a_key_error() -> None:
    benchmark = from_document(_DOCUMENT)
    for lookup in (benchmark.fleet, benchmark.phase):
        with pytest.raises(KeyError, match="servers"):
            lookup("servers")
