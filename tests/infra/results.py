"""Stores results that take seconds, such as syntheses, in ``.build`` until something changes that they depend on.

With ``TROOP_EXHAUSTIVE`` each result is created again once for each process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from infra import ROOT
from infra.store import BUILD, complete_or_absent, remove_stale

RESULTS = BUILD / "tests"

_FIXTURES = ("tests/infra/conftest.py", "tests/infra/test_synth.py")
"""How tests synthesise."""
_UNRELATED = ("docs/", "local/", "perf/", "tests/")
"""Folders of which no synthesis reads anything; a change of any other file changes :func:`sources`."""

_fresh: set[Path] = set()
"""Folders that this process has created with ``TROOP_EXHAUSTIVE``."""


def result(kind: str, *inputs: str | bytes, create: Callable[[Path], None]) -> Path:
    """Returns the folder that ``create`` has filled for these inputs; one that fails stores nothing."""
    digest = hashlib.sha256()
    for part in inputs:
        content = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(content)}\0".encode() + content)
    folder = RESULTS / f"{kind}-{digest.hexdigest()[:32]}"
    if os.environ.get("TROOP_EXHAUSTIVE") and folder not in _fresh:
        shutil.rmtree(folder, ignore_errors=True)
        _fresh.add(folder)
    if not folder.exists():
        with complete_or_absent(folder) as partial:
            create(partial)
    os.utime(folder)
    remove_stale(RESULTS.iterdir())  # each edit creates new ones
    return folder


def project_files() -> list[str]:
    """The files of this checkout that a clone has, or will have once they are added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


@cache
def sources() -> str:
    """Returns a digest of what syntheses depend on: files, installed packages, Node's tools, and variables."""
    names = {name for name in project_files() if name in _FIXTURES or not name.startswith(_UNRELATED)}
    files = [ROOT / name for name in sorted(names)]
    files += [ROOT / "node_modules" / package / "package.json" for package in ("aws-cdk", "echarts", "pyodide")]
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        content = file.read_bytes() if file.is_file() else b""  # one that is removed is still listed
        digest.update(f"\0{file.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    digest.update(repr(sorted((one.name, one.version) for one in distributions())).encode())
    variables = {name: text for name, text in os.environ.items() if name.startswith(("AWS_ENDPOINT_URL", "CDK_"))}
    digest.update(repr(sorted(variables.items())).encode())
    return digest.hexdigest()
