"""Restores the state before the next point: all writes are on the disks, and no data is in memory.

A cache on instance store keeps what it has: README.md describes what that means for the next point.
"""

from __future__ import annotations

import os
from pathlib import Path

import node

from troop.disks.assemble import verified


def main() -> None:
    place = verified(node.parameters(), node.shared())
    node.check_files(node.own_load(), place.folder)
    os.sync()
    if node.parameters()["system"]:
        Path("/proc/sys/vm/drop_caches").write_text("3", encoding="ascii")


if __name__ == "__main__":
    node.end(main)
