"""The functions' wiring between two tests."""

from __future__ import annotations

import re
import sys


def forget() -> None:
    """Empties what lives as long as a function does. Clients stay: making them is slow, and moto takes old ones."""
    wiring = [(name, module) for name, module in sys.modules.items() if re.match(r"troop\.\w+\.wiring\b", name)]
    for name, module in wiring:
        for function in vars(module).values():
            if hasattr(function, "cache_clear") and function.__module__ == name:
                function.cache_clear()
