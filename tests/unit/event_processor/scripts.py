"""The scripts as modules. They import each other by their names, as on a node, where nothing else has such names."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from infra import ROOT

FOLDER = ROOT / "benchmarks" / "event-processor"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def _load() -> dict[str, ModuleType]:
    others = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    sys.path.insert(0, str(FOLDER))
    try:
        return {name: importlib.import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)
        sys.modules.update(others)


MODULES = _load()
