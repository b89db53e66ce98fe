"""What is installed is what is pinned, with its digests, to the last package that only another one needs."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[3]
BROUGHT_BY_VENV = {"pip", "setuptools"}


def _same(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned(path: Path) -> dict[tuple[str, str], str]:
    """Names and versions, each with the digests of its wheels."""
    entries = re.split(r"\n(?=\S)", path.read_text())
    pins = (re.match(r"([\w.-]+)(?:\[.*\])?==([^\s;]+)(.*)", entry, re.DOTALL) for entry in entries)
    return {(_same(pin[1]), pin[2]): pin[3] for pin in pins if pin}


@pytest.mark.parametrize("kind", ["", "-account", "-node"])
def test_nothing_is_installed_that_is_not_pinned(kind: str) -> None:
    folders = (ROOT / f".venv{kind}" / "lib").glob("python*/site-packages/*.dist-info")
    packages = [folder.stem.rsplit("-", 1) for folder in folders]
    installed = {(_same(name), version) for name, version in packages if name not in BROUGHT_BY_VENV}
    assert installed
    # Another Python may need fewer than that on which they were written down.
    assert installed - _pinned(ROOT / f"requirements{kind or '-dev'}.txt").keys() == set()


FILES = sorted(
    path.relative_to(ROOT) for folder in ("", "functions") for path in (ROOT / folder).glob("requirements*.in")
)


@pytest.mark.parametrize("source", FILES, ids=str)
def test_all_that_is_installed_is_pinned_with_digests_and_is_a_wheel(source: Path) -> None:
    lines = (ROOT / source).read_text().splitlines()
    written = {tuple(re.match(r"([\w.-]+)(?:\[.*\])?==(\S+)", line).groups()) for line in lines if "==" in line}  # type: ignore[union-attr]
    target = (ROOT / source).with_suffix(".txt")
    pins = _pinned(target)
    assert {(_same(name), version) for name, version in written} <= pins.keys()
    assert pins
    assert [name for name, digests in pins.items() if "--hash=sha256:" not in digests] == []
    assert "--only-binary :all:" in target.read_text().splitlines()


def test_functions_and_synth_have_the_versions_that_are_tested() -> None:
    tested = _pinned(ROOT / "requirements-dev.txt").keys()
    roots = [ROOT / "requirements.txt", ROOT / "requirements-command.txt"]
    for path in [*roots, *(ROOT / "functions").glob("requirements*.txt")]:
        assert _pinned(path).keys() <= tested, path


def test_requirements_of_the_command_are_pinned_with_digests() -> None:
    """For an installation of the command alone, whose package allows ranges."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pins = _pinned(ROOT / "requirements-command.txt")
    versions = {name: Version(version) for name, version in pins}
    for requirement in map(Requirement, needed):
        assert versions[_same(requirement.name)] in requirement.specifier, requirement
    assert [name for name, digests in pins.items() if "--hash=sha256:" not in digests] == []
    installed = {_same(dist.metadata["Name"]): dist.requires or [] for dist in distributions()}
    for name in versions.keys() & installed.keys():  # some are for other systems
        for requirement in map(Requirement, installed[name]):  # what these need in turn is pinned, too
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert _same(requirement.name) in versions, (name, requirement)
