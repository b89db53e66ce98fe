"""Installs what the node lacks, assembles the layout, and writes the files.

Parameters: those of the layout (:mod:`troop.disks.assemble`); ``precondition`` and ``precondition_seconds`` for SSDs;
``tool``, ``jobs`` and ``data_mib`` for the files. A second start continues: it keeps a layout that is complete.
"""

from __future__ import annotations

import os
import shutil

import load as loads
import node
from load import FIO

from troop.disks.assemble import assemble, instance_store
from troop.disks.errors import DiskError
from troop.disks.machine import Machine


def main() -> None:
    parameters, load, shared = node.parameters(), node.own_load(), node.shared()
    if load.tool == FIO or parameters["precondition"]:
        if parameters["system"]:
            Machine().install({"fio": "fio"})
        elif shutil.which("fio") is None:
            raise DiskError("fio is missing: set system to true, or install it")
    if parameters["precondition"]:
        precondition(parameters)
    place = assemble(parameters, shared)
    files = load.files(place.folder)
    total, free = node.free_bytes(place.folder)
    loads.check_space(load, total, free, sum(path.stat().st_size for path in files if path.exists()))
    if load.tool == FIO:
        node.run(loads.fill(load, place.folder))
        node.check_files(load, place.folder)
    print(f"{load.jobs} files of {load.file_mib} MiB in {place.folder}")


def precondition(parameters: dict[str, object]) -> None:
    """Writes the instance-store disks of the layout, once on each node."""
    complete = node.shared() / "preconditioned"
    if complete.exists():
        return
    if not parameters["system"]:
        raise DiskError("precondition overwrites disks, which requires parameters.system: true")
    disks = instance_store(parameters)
    if not disks:
        raise DiskError("precondition is for instance store, and this layout has none: set it to false")
    for command in loads.precondition(disks, int(str(parameters["precondition_seconds"]))):
        node.run(command)
    os.sync()
    complete.touch()


if __name__ == "__main__":
    node.end(main)
