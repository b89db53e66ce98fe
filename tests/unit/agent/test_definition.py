"""What a node takes from a benchmark, compared with the workflow's view of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import definition as agent_definition
from agent.keys import Keys
from tests.unit.bench.file.documents import FILES, read
from tests.unit.bench.file.test_planned_faults import broken
from troop.bench.definition import names
from troop.bench.definition.definition import to_document
from troop.bench.definition.living import FAIL_AFTER
from troop.bench.definition.planned_fault import METHODS, PlannedFault
from troop.bench.definition.roster import Node, make_roster
from troop.bench.definition.victims import victims
from troop.bench.file.read_fleet import read_fleet

ROLES = ("drivers", "servers", "web")
ROSTER = make_roster([Node(f"i-{role}{n}", role, "abcdef"[n]) for role in ROLES for n in range(6)])
FAULTS = st.builds(
    PlannedFault,
    at=st.just(60),
    method=st.sampled_from(METHODS),
    role=st.sampled_from(["servers", "web"]),
    zone=st.none() | st.integers(1, 6),
) | st.one_of(
    st.builds(PlannedFault, at=st.just(60), method=st.sampled_from(METHODS), zone=st.integers(1, 6)),
    st.builds(PlannedFault, at=st.just(60), method=st.sampled_from(METHODS), unit=st.just("web")),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FAULTS, max_size=3), st.sampled_from(ROLES), st.booleans())
def test_a_role_waits_for_the_steps_that_it_runs_or_that_may_hit_it(
    tmp_path: Path, faults: list[PlannedFault], role: str, pointed: bool
) -> None:
    between = {"script": "prepare.sh", "roles": ["servers"], "timeout": "1m"}
    benchmark = read(broken(**({"repeat": 2, "between": between} if pointed else {})), FILES)
    first, measure = benchmark.phases
    benchmark = replace(benchmark, phases=(first, replace(measure, faults=tuple(faults))))
    waits: list[str] = []
    hit: dict[str, set[str]] = {}
    for step in benchmark.steps:
        for fault in step.phase.faults:
            if role in {one.role for one in victims(fault, ROSTER, step.phase)}:
                hit.setdefault(step.name, set()).add(str(fault.method))
        waits += [step.name] if role in step.phase.roles or step.name in hit else []
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(to_document(benchmark)))
    definition = agent_definition.read(path, role)
    assert (list(definition.steps), definition.faults) == (waits, hit)
    assert definition.methods == {method for its in hit.values() for method in its}


@pytest.mark.parametrize(("heal", "failures"), [({"after": 7}, 7), ({}, 3), (None, FAIL_AFTER)])
def test_a_node_knows_how_many_failures_in_a_row_count(
    tmp_path: Path, heal: dict[str, int] | None, failures: int
) -> None:
    role = {"count": 1, "instance_type": "c7g.large", "health": {"port": 8080}, "heal": heal}
    fleet = read_fleet({"name": "workers", "expires_after": "8h", "fleets": {"workers": role}})
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(to_document(fleet)))
    assert agent_definition.read(path, "workers").fail_after == failures


@pytest.mark.parametrize(("role_id", "writer"), [("AROAROLE", "AROAROLE:i-1"), ("", "i-1")])
def test_the_object_of_a_victim_has_its_name(role_id: str, writer: str) -> None:
    keys = Keys("20261121-150312-1f0c9b2e", "c001", role_id)
    prefix = names.faults_prefix("20261121-150312-1f0c9b2e", "c001", "measure.2")
    assert keys.fault("measure.2", "i-1") == f"{prefix}{writer}.json"
