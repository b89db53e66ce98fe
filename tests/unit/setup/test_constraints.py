"""What is installed is what is pinned, with its digests, to the last package that only another one needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
BROUGHT_BY_VENV = {"pip", "setuptools"}
LISTS = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("requirements*.txt"), *ROOT.glob("functions/*.txt")])
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}


def _same(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned(text: str) -> dict[tuple[str, str], str]:
    """Names and versions, each with the digests of its wheels."""
    entries = re.split(r"\n(?=\S)", text)
    pins = (re.match(r"([\w.-]+)(?:\[.*\])?==([^\s;]+)(.*)", entry, re.DOTALL) for entry in entries)
    return {(_same(pin[1]), pin[2]): pin[3] for pin in pins if pin}


def test_the_lock_and_the_lists_are_what_make_constraints_writes(tmp_path: Path) -> None:
    """So that all have the same versions, those that pyproject.toml allows, and everything that these need."""
    names = [Path("pyproject.toml"), Path("uv.lock"), Path("scripts/constraints"), *LISTS]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    done = subprocess.run(
        ["scripts/constraints", "--offline"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [name for name in names if (ROOT / name).read_text() != (tmp_path / name).read_text()] == []


@pytest.mark.parametrize(
    ("folder", "options"),
    [
        (".venv", ("--extra", "cdk")),
        (".venv-account", ("--only-group", "account")),
        (".venv-node", ("--only-group", "node")),
    ],
)
def test_nothing_is_installed_that_is_not_pinned(folder: str, options: tuple[str, ...]) -> None:
    folders = (ROOT / folder / "lib").glob("python*/site-packages/*.dist-info")
    packages = [path.stem.rsplit("-", 1) for path in folders]
    installed = {(_same(name), version) for name, version in packages if name not in BROUGHT_BY_VENV}
    assert installed
    command = [str(ROOT / ".venv/bin/uv"), "export", "--quiet", "--frozen", "--no-emit-project", *options]
    exported = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    pins = _pinned(exported.stdout)
    # Another Python may need fewer than that on which they were written down.
    assert installed - pins.keys() == set()


@pytest.mark.parametrize("path", LISTS, ids=str)
def test_pip_installs_only_wheels_with_a_pinned_digest(path: Path) -> None:
    text = (ROOT / path).read_text()
    pins = _pinned(text)
    assert pins
    assert [name for name, digests in pins.items() if "--hash=sha256:" not in digests] == []
    assert "--only-binary :all:" in text.splitlines()


def test_layers_together_have_all_that_they_need() -> None:
    """pip installs each of them without what its packages need."""
    pins = {name for path in ROOT.glob("functions/*.txt") for name, _ in _pinned(path.read_text())}
    installed = {_same(dist.metadata["Name"]): dist.requires or [] for dist in distributions()}
    for name in pins:
        for requirement in map(Requirement, installed[name]):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert _same(requirement.name) in pins, (name, requirement)
