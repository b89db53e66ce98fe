"""Tests what a script knows of its phase."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from troop.measure.phase_environment import Phase


def environment(folder: Path, **changes: str) -> dict[str, str]:
    nodes = [{"role": "web", "rank": rank, "address": f"10.0.0.{rank}"} for rank in (10, 2, 0)]
    documents: dict[str, Any] = {"PARAMETERS": {"threads": 4}, "ROSTER": {"nodes": nodes}, "TARGETS": {"targets": {}}}
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document))
    return {
        **{"TROOP_PHASE": "measure", "TROOP_ROLE": "web", "TROOP_RANK": "2", "TROOP_ADDRESS": "10.0.0.10"},
        **{f"TROOP_{name}": str(folder / name) for name in documents},
        **{f"TROOP_{name}": str(folder / name.lower()) for name in ("FILES", "ARTIFACTS", "SHARED", "RESULTS")},
        **{"TROOP_MEASURED_FROM": "1790000000.5", "TROOP_MEASURED_SECONDS": "60", "TROOP_WARM_UP_SECONDS": "5"},
        **changes,
    }


def test_a_script_reads_its_phase_from_the_environment(tmp_path: Path) -> None:
    class Service(Phase):
        @property
        def program(self) -> Path:
            return self.artifacts / "service"

    phase = Service.of_script(environment(tmp_path))
    assert (phase.name, phase.role, phase.rank, phase.address) == ("measure", "web", 2, "10.0.0.10")
    assert (phase.measured_from, phase.measured_seconds, phase.warm_up_seconds) == (1790000000.5, 60, 5)
    assert (phase.parameters, phase.targets) == ({"threads": 4}, {})
    assert phase.nodes == {"web": ["10.0.0.0", "10.0.0.2", "10.0.0.10"]}
    assert phase.program == tmp_path / "artifacts" / "service"


def test_a_phase_that_is_not_measured_has_no_times(tmp_path: Path) -> None:
    variables = environment(tmp_path, TROOP_MEASURED_FROM="", TROOP_MEASURED_SECONDS="0", TROOP_WARM_UP_SECONDS="0")
    assert Phase.of_script(variables).measured_from == 0


def test_without_the_agent_there_is_no_phase() -> None:
    with pytest.raises(KeyError, match="TROOP_ROLE"):
        Phase.of_script({})
