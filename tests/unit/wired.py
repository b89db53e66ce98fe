"""The functions' wiring between two tests."""

from __future__ import annotations

import sys


def forget() -> None:
    """Empties what lives as long as a function does. Clients stay: making them is slow, and moto takes old ones."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("troop.wiring."):
            continue
        for function in vars(module).values():
            if hasattr(function, "cache_clear") and function.__module__ == name:
                function.cache_clear()
