"""The scripts of a benchmark as modules. They import each other by their names, as on a node, which has no others."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import pytest

from infra import ROOT

_GO = shutil.which("go", path=f"{os.environ.get('PATH', os.defpath)}{os.pathsep}/usr/local/go/bin")
_GO_OPTIONS = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -trimpath", "GOTOOLCHAIN": "local", "GOGC": "400"}
"""The same for all commands, so that Go compiles its library once: half a minute of processor time. It would be longer
if the compiler collected garbage as often as by default.
"""


def folder(benchmark: str) -> Path:
    return ROOT / "benchmarks" / benchmark


@cache
def scripts(benchmark: str) -> dict[str, ModuleType]:
    """Imports each script of a benchmark, and leaves no trace of it among the interpreter's modules."""
    names = sorted(path.stem for path in folder(benchmark).glob("*.py"))
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(folder(benchmark)))
    try:
        return {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(folder(benchmark)))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)


def go(program: Path, *words: str) -> None:
    """Runs Go in a program's folder. Skips the test without Go, with an older one, or without the program's modules."""
    if _GO is None:
        pytest.skip("Go is missing: https://go.dev/dl")
    environment = os.environ | _GO_OPTIONS
    run = partial(subprocess.run, cwd=program, env=environment, capture_output=True, text=True, check=False)
    fetched = run([_GO, "mod", "download"])
    if fetched.returncode:
        pytest.skip(f"Go is older than the program needs, or modules are missing: {fetched.stderr[-300:]}")
    done = run([_GO, *words])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
