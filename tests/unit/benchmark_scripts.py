"""The scripts of a benchmark as modules. They import each other by their names, as on a node, which has no others."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from infra import ROOT


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
