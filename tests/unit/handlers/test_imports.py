"""What a workflow function does not import it does not wait for at a cold start; and each half stands alone."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from troop.shared.wiring import environment

FUNCTIONS = Path(__file__).parents[3] / "functions"
HANDLERS = sorted(path.stem for path in (FUNCTIONS / "handlers").glob("[!_]*.py"))
PERMITTED = {"api", "report", "start"}
"""Import pydantic: it validates what callers send or schedules repeat, and what a report consists of."""
COMMON = {"api", "risks", "widgets"}


@cache
def _contract(name: str) -> configparser.SectionProxy:
    contracts = configparser.ConfigParser()
    contracts.read(FUNCTIONS.parent / ".importlinter")
    return contracts[f"importlinter:contract:{name}"]


def _handlers(contract: str) -> list[str]:
    return [name.removeprefix("handlers.") for name in _contract(contract)["source_modules"].split()]


PROGRAM = """
import boto3, json, os, sys  # all functions import boto3, which takes half of the time
for name in sys.argv[1:]:
    if os.fork() == 0:
        __import__(f"handlers.{name}")
        print(json.dumps([name, sorted(sys.modules)]), flush=True)
        os._exit(0)
    os.wait()
"""


@cache
def _modules() -> dict[str, list[str]]:
    """Returns what is imported with each handler, each in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *HANDLERS]
    done = subprocess.run(command, cwd=FUNCTIONS, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.parametrize("name", [name for name in HANDLERS if name != "api"])
def test_functions_import_neither_what_they_do_not_need_nor_the_other_half(name: str) -> None:
    modules = set(_modules()[name])
    assert "aws_lambda_powertools" in modules
    if name not in PERMITTED:
        assert not modules & {"pydantic", "pydantic_core", "aws_xray_sdk", "troop.shared.api", "troop.bench.file"}
    if name not in COMMON:
        other = "troop.chaos" if name in _handlers("bench") else "troop.bench"
        assert [module for module in sorted(modules) if module.startswith(other)] == []


def test_the_contracts_leave_no_handler_out() -> None:
    assert sorted(_handlers("workflow")) == [name for name in HANDLERS if name not in PERMITTED]
    assert sorted(_handlers("chaos") + _handlers("bench")) == [name for name in HANDLERS if name not in COMMON]
    assert (_contract("bench")["forbidden_modules"], _contract("chaos")["forbidden_modules"]) == (
        "\ntroop.chaos",
        "\ntroop.bench",
    )


def test_settings_and_agent_are_beside_the_handlers() -> None:
    assert environment.CODE == FUNCTIONS
