"""AWS's own validator of Amazon States Language reads every workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.machines import asl
from tests.machines.asl import FILES
from tests.opinions.node import run_node

pytestmark = pytest.mark.second_opinion


def test_validator_reports_only_a_deliberate_fault(tmp_path: Path) -> None:
    deployed = [tmp_path / path.name for path in FILES]
    for path, target in zip(FILES, deployed, strict=True):
        target.write_text(asl.substituted(path.read_text()))
    broken = tmp_path / "broken.json"
    broken.write_text(FILES[0].read_text().replace('"Next": "', '"Next": "No', 1))
    reports = json.loads(run_node("workflows.mjs", *map(str, [*FILES, *deployed, broken])))
    assert "must be the name of an existing state" in " ".join(reports.pop(str(broken)))
    assert reports == {str(path): [] for path in [*FILES, *deployed]}
