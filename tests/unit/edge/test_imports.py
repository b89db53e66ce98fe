"""What a workflow function does not import it does not wait for at a cold start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUNCTIONS = Path(__file__).parents[3] / "functions"


@pytest.mark.parametrize(
    "name",
    [
        "decide",
        "terminate",
        "recovery",
        "sweep",
        "watchdog",
        "launch",
        "cell",
        "fleet",
        "teardown",
        "reaper",
        "widgets",
    ],
)
def test_workflow_functions_import_neither_pydantic_nor_the_x_ray_sdk(name: str) -> None:
    program = f"import json, sys, handlers.{name}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=FUNCTIONS, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {module.partition(".")[0] for module in json.loads(done.stdout)}
    assert "aws_lambda_powertools" in loaded
    assert not loaded & {"pydantic", "pydantic_core", "aws_xray_sdk", "troop.api"}
