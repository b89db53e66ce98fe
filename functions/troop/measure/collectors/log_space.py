"""Checks before a phase that the log of a load generator fits on a node's disk."""

from __future__ import annotations

import shutil
from pathlib import Path

SAMPLE_BYTES = 100
"""Bytes of a line in JMeter's log with the columns that its reader needs."""
SECONDS = 3600
"""The time of load for which there must be room, with all points of a phase together."""
MOST_PER_SECOND = 10_000
"""Samples per second of one node whose rate has no limit."""


def lacking(folder: Path, per_second: float) -> str:
    """Returns a sentence if the disk of a folder has too little room; "" if it has enough.

    Args:
        per_second: samples of this node; 0 for as many as the application answers.
    """
    needed = (per_second or MOST_PER_SECOND) * SECONDS * SAMPLE_BYTES / 2**30
    free = shutil.disk_usage(folder).free / 2**30
    if free >= needed:
        return ""
    return (
        f"this node has {free:.1f} GiB free, and an hour of JMeter's log needs {needed:.1f} GiB: raise root_volume_gib "
        "of the drivers, or lower the rate"
    )
