"""What a workflow function does not import it does not wait for at a cold start."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

FUNCTIONS = Path(__file__).parents[3] / "functions"
THAT_MAY = {"api", "report"}
"""Import pydantic: what callers send, and what a report consists of, is validated by it."""
OTHERS = sorted({path.stem for path in (FUNCTIONS / "handlers").glob("[!_]*.py")} - THAT_MAY)


@pytest.mark.parametrize("name", OTHERS)
def test_workflow_functions_import_neither_pydantic_nor_the_x_ray_sdk(name: str) -> None:
    program = f"import json, sys, handlers.{name}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=FUNCTIONS, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    modules = set(json.loads(done.stdout))
    assert "aws_lambda_powertools" in modules
    assert not modules & {"pydantic", "pydantic_core", "aws_xray_sdk", "troop.api", "troop.bench_file"}


def test_none_of_them_is_left_out_of_the_contract() -> None:
    contracts = configparser.ConfigParser()
    contracts.read(FUNCTIONS.parent / ".importlinter")
    modules = contracts["importlinter:contract:workflow"]["source_modules"].split()
    assert sorted(modules) == [f"handlers.{name}" for name in OTHERS]
