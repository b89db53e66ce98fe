"""The functions' wiring between two tests."""

from __future__ import annotations

import pkgutil
import sys

import troop.shared.wiring

_MODULES = [module.name for module in pkgutil.iter_modules(troop.shared.wiring.__path__, "troop.shared.wiring.")]


def forget() -> None:
    """Empties what lives as long as a function does. Clients stay: making them is slow, and moto takes old ones."""
    for name in _MODULES:
        for function in vars(sys.modules.get(name, troop.shared.wiring)).values():
            if hasattr(function, "cache_clear") and function.__module__ == name:
                function.cache_clear()
