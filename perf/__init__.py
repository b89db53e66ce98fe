"""Measurements of Troop, each of them run by ``python -m perf.NAME``."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "functions")]


def say(message: str) -> None:
    """Prints progress on stderr."""
    print(message, file=sys.stderr, flush=True)


def peak_mb() -> float:
    """Returns the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
