"""Runs one pattern of access on the files, for exactly the measured time with fio.

Parameters: ``tool``; ``pattern``, ``jobs``, ``write_block_kib``, ``read_block_kib``, ``read_percent``, ``zipf`` and
``direct``.

Recorded as ``read`` and ``write``, from fio's own histograms: the time from the call to its end. iozone reports rates
only, by test. Before the load, the script checks that the layout is still what the parameters ask for.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import load as loads
import node
from load import FIO

from troop.disks.assemble import verified
from troop.disks.errors import DiskError


def main() -> None:
    load = node.own_load()
    place = verified(node.parameters(), node.shared())
    node.check_files(load, place.folder)
    if load.tool == FIO:
        output = Path("fio.json")
        warm_up, measured = (float(os.environ[f"TROOP_{name}_SECONDS"]) for name in ("WARM_UP", "MEASURED"))
        node.run(loads.fio(load, place.folder, warm_up, measured, output))
    else:
        output = Path("iozone.txt")
        program = Path(os.environ["TROOP_ARTIFACTS"]) / "iozone"
        if not program.exists():
            raise DiskError("the artifact iozone is missing: build it as README.md describes, and use --size iozone")
        program.chmod(0o755)
        output.write_text(node.run(loads.iozone(load, place.folder, program)), encoding="utf-8")
    node.run([sys.executable, "-m", "troop.measure.collectors", load.tool, str(output)])


if __name__ == "__main__":
    node.end(main)
