"""The packed agent: the same bytes each time, nothing in it but its own, and nothing an old Python lacks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent.pack import FOR_SCRIPTS, pack
from infra import ROOT
from tests.unit.agent.pythons import python39

PACKAGES = [path for name in FOR_SCRIPTS for path in (ROOT / "functions" / "troop" / name).rglob("*.py")]
SOURCES = sorted([*(ROOT / "agent").glob("*.py"), *PACKAGES])
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*/*.py"))


def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    first = pack(tmp_path / "one.pyz")
    for source in SOURCES:
        source.touch()
    assert pack(tmp_path / "two.pyz") == first
    assert (tmp_path / "one.pyz").read_bytes() == (tmp_path / "two.pyz").read_bytes()


def test_archive_has_only_the_agent_and_the_modules_that_measure(tmp_path: Path) -> None:
    pack(tmp_path / "agent.pyz")
    names = zipfile.ZipFile(tmp_path / "agent.pyz").namelist()
    packages = {name.rsplit("/", 1)[0] for name in names}
    measure = {"troop/measure", "troop/measure/collectors", "troop/measure/s3"}
    assert packages == {"__main__.py", "agent", "troop", "troop/disks", "troop/work"} | measure
    assert "agent/pack.py" not in names
    assert [name for name in names if name.startswith("troop/") and name.count("/") == 1] == ["troop/__init__.py"]


def test_scripts_run_its_collectors(tmp_path: Path) -> None:
    pack(tmp_path / "agent.pyz")
    line = [sys.executable, "-S", "-m", "troop.measure.collectors", "--help"]
    done = subprocess.run(line, env={"PYTHONPATH": str(tmp_path / "agent.pyz")}, capture_output=True, text=True)
    assert "cassandra-stress" in done.stdout, done.stderr


def test_sources_and_scripts_parse_as_python_3_9() -> None:
    """A newer construct, or an import that a node lacks, by the file with it."""
    faults = {str(source.relative_to(ROOT)): _newer(source) for source in [*SOURCES, *BENCHMARKS]}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def _newer(source: Path) -> list[str]:
    try:
        nodes = list(ast.walk(ast.parse(source.read_text(), feature_version=(3, 9))))
    except SyntaxError as error:
        return [str(error)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    beside = _beside(source) if source in BENCHMARKS else set()
    lacking = {name.split(".")[0] for name in imported} - beside - {"agent", "troop"} - sys.stdlib_module_names
    return sorted(lacking) + [f"match in line {node.lineno}" for node in nodes if isinstance(node, ast.Match)]


def _beside(script: Path) -> set[str]:
    """The modules that a node has for a script: its folder's, and artifacts; Locust runs a plan, and has itself."""
    folder = script.parent
    files = "".join(path.read_text() for path in folder.glob("*.yaml"))
    artifacts = re.findall(r"name: (\w+)\.py,", files)
    return (
        {path.stem for path in folder.glob("*.py")} | {*artifacts} | ({"locust"} if script.name == "plan.py" else set())
    )


@pytest.mark.skipif(find_spec("vermin") is None, reason="vermin is not installed: it belongs to the group dev")
def test_source_calls_nothing_that_python_3_9_lacks() -> None:
    line = [
        sys.executable,
        "-c",
        "from vermin import main; main()",
        "--target=3.9-",
        "--violations",
        "--no-eval-annotations",
        "--no-tips",
    ]
    done = subprocess.run([*line, *map(str, [*SOURCES, *BENCHMARKS])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(python39() is None, reason="there is no Python 3.9 here; `make agent-boot` makes one")
def test_all_of_it_can_be_imported_by_python_3_9(tmp_path: Path) -> None:
    pack(tmp_path / "agent.pyz")
    names = [name for name in zipfile.ZipFile(tmp_path / "agent.pyz").namelist() if name != "__main__.py"]
    modules = sorted(name.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for name in names)
    script = (
        f"import sys, importlib; sys.path.insert(0, 'agent.pyz'); [importlib.import_module(m) for m in {modules!r}]"
    )
    done = subprocess.run(
        [str(python39()), "-I", "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
