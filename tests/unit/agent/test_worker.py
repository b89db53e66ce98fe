"""The example of a standing fleet: its worker stores results, if the fleet may."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra import ROOT
from tests.patience import eventually
from tests.unit.agent.pythons import python39


@pytest.mark.parametrize("data", ["s3://results/data/20261121-150312-1f0c9b2e/c001/", ""])
def test_a_worker_stores_each_result_below_the_fleets_prefix(tmp_path: Path, data: str) -> None:
    aws, calls, parameters = tmp_path / "aws", tmp_path / "calls", tmp_path / "parameters.json"
    aws.write_text(f'#!/bin/sh\necho "$* $(cat)" >> {calls}\n')
    aws.chmod(0o755)
    parameters.write_text('{"pause_seconds": 0.01}')
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TROOP_NODE": "i-1", "TROOP_DATA": data}
    words = [python39() or sys.executable, str(ROOT / "fleets/worker/worker.py"), str(parameters)]
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(words, env=environment, stdout=log)
    try:
        eventually(lambda: b"i-1/000002.json: " in (tmp_path / "log").read_bytes())
        if data:
            eventually(lambda: calls.exists() and len(calls.read_text().splitlines()) >= 2)
    finally:
        worker.kill()
        worker.wait()
    assert calls.exists() == bool(data)
    if data:
        *words, result = calls.read_text().splitlines()[0].split(" ", 5)
        assert words == ["s3", "cp", "--only-show-errors", "-", f"{data}i-1/000001.json"]
        assert json.loads(result)["number"] == 1
