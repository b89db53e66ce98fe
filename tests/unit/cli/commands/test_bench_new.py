"""`troop bench new`: each kind is valid, and its script measures, as it is; and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.collect import operations_in
from agent.command import line_for
from cli.bench import files
from cli.commands.bench_new import Kind
from cli.shared.errors import Exit
from infra import ROOT
from tests.unit.cli.conftest import Run
from troop.measure.operations import Operations


@pytest.mark.parametrize("kind", Kind)
def test_new_benchmark_measures_at_every_point_as_it_is(kind: Kind, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "parent" / "mine"
    written = run("bench", "new", "my-store", str(folder), "--kind", kind.value)
    assert written.exit_code == 0, written.output
    source = files.load(folder, "local")
    (phase,) = source.benchmark.phases
    assert (source.benchmark.name, len(phase.points)) == ("my-store", 2)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"`troop bench run {folder} --size local`" in readme
    assert phase.script in readme
    assert len(readme.splitlines()) <= 10
    for number, point in enumerate(phase.points):
        operations = _measure(
            folder / phase.script, tmp_path / str(number), dict(source.benchmark.parameters) | dict(point.parameters)
        )
        assert operations.keys() == {"store"}
        assert operations["store"].times.count > 0
        assert operations["store"].errors == {}
        assert (operations["store"].timing == "response") == (kind is Kind.OPEN_LOOP)


@pytest.mark.parametrize("name", ["null", "true", "no"])
def test_name_that_means_something_in_yaml_is_a_name(name: str, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "of mine"
    written = run("bench", "new", name, str(folder))
    assert written.exit_code == 0, written.output
    assert files.load(folder, "local").benchmark.name == name
    command = f"`troop bench run '{folder}' --size local`"
    assert command in written.stdout.replace("\n", " ")
    assert command in (folder / "README.md").read_text(encoding="utf-8")


def _measure(script: Path, place: Path, parameters: Mapping[str, Any]) -> Operations:
    for name in ("results", "shared", "here"):
        (place / name).mkdir(parents=True)
    (place / "parameters.json").write_text(json.dumps(parameters))
    (place / "roster.json").write_text('{"nodes": []}')
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "functions"),
        "TROOP_ROLE": "nodes",
        "TROOP_RANK": "0",
        "TROOP_PARAMETERS": str(place / "parameters.json"),
        "TROOP_ROSTER": str(place / "roster.json"),
        "TROOP_FILES": str(script.parent),
        "TROOP_ARTIFACTS": str(script.parent),
        "TROOP_SHARED": str(place / "shared"),
        "TROOP_RESULTS": str(place / "results"),
        "TROOP_WARM_UP_SECONDS": "0",
        "TROOP_MEASURED_SECONDS": "2",
        "TROOP_START_AT": str(time.time()),
        "TROOP_MEASURED_FROM": str(time.time()),
    }
    subprocess.run(line_for(script), cwd=place / "here", env=environment, check=True)
    problems: list[str] = []
    operations = operations_in(place / "results", problems)
    assert problems == []
    return operations


def test_folder_that_exists_or_a_bad_name_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for words, reason in (
        (("mine", str(tmp_path / "mine")), "exists already"),
        (("Mine", str(tmp_path / "other")), "must be a lower-case letter"),
        (("mine", str(tmp_path / "other"), "--kind", "loop"), "closed-loop"),
    ):
        refused = run("bench", "new", *words)
        assert refused.exit_code == Exit.USAGE
        assert reason in refused.stderr.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert list((tmp_path / "mine").iterdir()) == []
