"""What is installed is what is pinned, to the last package that only another one needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BROUGHT_BY_VENV = {"pip", "setuptools"}


def _same(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned(path: Path) -> set[tuple[str, str]]:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    pins = [line.split("==") for line in lines]  # what is not a pin of this form, nobody can install again
    return {(_same(name), version) for name, version in pins}


@pytest.mark.parametrize("kind", ["", "-account", "-node"])
def test_nothing_is_installed_that_is_not_pinned(kind: str) -> None:
    folders = (ROOT / f".venv{kind}" / "lib").glob("python*/site-packages/*.dist-info")
    found = [folder.stem.rsplit("-", 1) for folder in folders]
    installed = {(_same(name), version) for name, version in found if name not in BROUGHT_BY_VENV}
    assert installed
    # Another Python may need fewer than that on which they were written down.
    assert installed - _pinned(ROOT / f"constraints{kind}.txt") == set()
