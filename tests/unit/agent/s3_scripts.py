"""Loads the modules of the benchmark s3-range-read, as its scripts import one another."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from infra import ROOT

FOLDER = ROOT / "benchmarks" / "s3-range-read"
MODULES = [path.stem for path in sorted(FOLDER.glob("*.py"))]


def module(name: str) -> ModuleType:
    """Imports a module by its file's name, once: its classes must be the same for all modules."""
    own = {one: sys.modules.pop(one) for one in MODULES if one in sys.modules}
    sys.modules.update(_LOADED)
    sys.path.insert(0, str(FOLDER))  # as a script has it
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))
        for one in MODULES:
            if one in sys.modules:
                _LOADED[one] = sys.modules.pop(one)
        sys.modules.update(own)


_LOADED: dict[str, ModuleType] = {}
