"""The parts of a report that are stored with the results: the report is the same with them and without."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.report import runs
from tests.unit.report.runs import InMemory
from tests.unit.report.sample_failures import simulated, with_faults
from troop.bench.flows import cell_steps as flow
from troop.bench.flows.cell_steps import Results
from troop.bench.results.figures import FORMAT
from troop.report import cells
from troop.report.build import build


def stored(archive: InMemory, change: Callable[[Any], None] = lambda _: None) -> tuple[InMemory, InMemory]:
    """Files as the workflow stores them, without the parts and with them."""
    bodies: dict[str, bytes] = {}
    for name in [name for name in archive.files if name.endswith("/results.json")]:
        document = json.loads(archive.files[name])
        change(document)
        results = Results(is_complete=document.get("complete", True))
        for phase in document["phases"]:
            results.add(phase)
        bodies[name], part = results.bodies(document.get("searches") or [])
        assert part is not None
        bodies[name.replace("results", "report-part")] = part
    without = archive.put({name: body for name, body in bodies.items() if name.endswith("/results.json")})
    return without, without.put(bodies)


def report(archive: InMemory) -> bytes:
    return build(archive, runs.AT, "0.3").model_dump_json().encode()


def as_it_is(_document: Any) -> None:
    """Changes nothing."""


def with_points(document: Any) -> None:
    (phase,) = document["phases"]
    limit = {
        "figure": "p90_ms",
        "operation": "read",
        "at_most": 2.0,
        "held": False,
        "value": 3,
        "reason": "p90_ms of read was 3 ms",
    }
    document["phases"] = [
        {**copy.deepcopy(phase), "point": n, "repeat": 1, "parameters": {"threads": n}, "limits": [limit]}
        for n in (1, 2)
    ]


def ended_early(document: Any) -> None:
    document["complete"] = False
    document["phases"][0] |= {"partial": True, "separate_left_out": 7}
    del document["phases"][0]["measured_from"]


def with_two_operations(document: Any) -> None:
    phase = document["phases"][0]
    operations = phase["roles"]["drivers"]["operations"]
    operations["write"] = copy.deepcopy(operations["read"])
    operations["read"] |= {"timing": "response", "service": operations["read"]["histogram"], "tools": ["JMeter"]}
    operations["write"]["per_second"]["count"][-1] = 0
    row = next(row for row in phase["table"] if row["role"] == "drivers")
    phase["table"].append({**row, "operation": "write"})
    row |= {"timing": "response", "service": {"p50_ms": 1.5}}


def with_a_fault(document: Any) -> None:
    document["phases"] = [with_faults(simulated())]


@pytest.mark.parametrize("change", [as_it_is, with_points, ended_early, with_two_operations, with_a_fault])
def test_a_report_of_parts_is_the_same(change: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    without, with_parts = stored(runs.archive(), change)
    expected = report(without)
    assert "damaged" not in expected.decode()
    monkeypatch.setattr(cells, "figures", lambda _phase: pytest.fail("the part is not used"))
    assert report(with_parts) == expected


def other_format(part: Any) -> None:
    part["format"] = "troop.report-part/0"


def other_results(part: Any) -> None:
    part["sha256"] = "0" * 64


def without_figures(part: Any) -> None:
    del part["phases"][0]["figures"]["series"]


def deep(part: Any) -> None:
    for _ in range(99):
        part["head"] = {"": part["head"]}


@pytest.mark.parametrize("change", [other_format, other_results, without_figures, deep])
def test_another_part_is_not_used(change: Callable[[Any], None]) -> None:
    without, with_parts = stored(runs.archive())

    def wrong(part: Any) -> None:
        part["phases"][0]["figures"]["incomplete"] = ["of another part"]
        change(part)

    assert report(with_parts.changed("c001/report-part.json", wrong)) == report(without)
    assert report(with_parts.put({"c001/report-part.json": b"\xff{"})) == report(without)


def test_a_part_without_results_says_nothing() -> None:
    without, with_parts = stored(runs.archive())
    assert report(with_parts.without("c001/results.json")) == report(without.without("c001/results.json"))


def test_damaged_and_very_many_results_have_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    (phase,) = json.loads(runs.archive().files["c001/results.json"])["phases"]
    results = Results()
    results.add(phase)
    body, part = results.bodies([])
    assert json.loads(part or b"")["format"] == FORMAT
    results.add({**phase, "roles": {**phase["roles"], "drivers": {"nodes": {}, "operations": {"read": {}}}}})
    assert results.bodies([])[1] is None
    assert len(body) < len(results.bodies([])[0])
    monkeypatch.setattr(flow, "MOST_IN_PART", 2 * len(json.dumps(phase, separators=(",", ":"))))
    many = Results()
    for _ in range(2):
        many.add(phase)
    assert many.bodies([])[1]
    many.add(phase)
    assert many.bodies([])[1] is None


def test_the_workflow_computes_parts_without_pydantic() -> None:
    code = "import sys, troop.bench.flows.cell_steps; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0
