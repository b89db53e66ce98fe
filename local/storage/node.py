"""Runs inside the kernel: the steps of benchmarks, by the agent's own code, without S3 and without a roster.

    python -m local.storage.node HOME

The home folder is on the machine's own file system. It has ``node.json`` and a folder for each benchmark with
``cell.json``, ``parameters.json`` and ``files``. Such a folder receives ``STEP.json``, the summary of each step, and
``STEP.log``, its output.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from agent import barrier, nvme, proc
from agent.barrier import Release
from agent.boot import Boot
from agent.log import say
from agent.metadata import Identity
from agent.phase import perform
from agent.place import Place
from troop.measure.summary import OK

CGROUP = Path("/mnt/cgroup/volumes")
UNLIMITED = "max"
PROGRAMS = 6
"""Programs that a script starts before its load, each about as slow as a start of Python."""
LONGEST_WARM_UP = 40.0
SOON = 1.0
"""Seconds until a common start."""


def main(home: Path) -> None:
    node = json.loads((home / "node.json").read_text(encoding="utf-8"))
    (home / "kernel").write_text(os.uname().release, encoding="ascii")
    CGROUP.mkdir()
    (CGROUP / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    for disk in (*node["volumes"], *node["caches"]):
        # A write has reached the disk when it ends, as on EBS. Otherwise each flush waits for this machine's disk.
        Path(f"/sys/block/{disk}/queue/write_cache").write_text("write through", encoding="ascii")
    with _disks_as_on_ec2(node["volumes"], node["caches"]):
        all(_perform(home / name, node) for name in node["benchmarks"])


def _perform(home: Path, node: Mapping[str, Any]) -> bool:
    """Performs the steps of a benchmark until one fails. Returns whether all of them succeeded."""
    cell = json.loads((home / "cell.json").read_text(encoding="utf-8"))
    name = str(node["name"])
    place = Place(
        home,
        Boot("none", "local", "storage", name, cell["role"], "", time.time() + 3600),
        Identity(name, "local", "user-mode-linux", "127.0.0.1", "none"),
    )
    say(f"{home.name} begins")
    for document in cell["barriers"]:
        release = barrier.read(json.dumps(document).encode())
        if not isinstance(release, Release):
            raise TypeError(f"{document['phase']} is not released")
        operations = str(node["operations_per_second"]) if release.measured_seconds else UNLIMITED
        _limit(node["volumes"], operations)
        if release.start_at is not None:
            release = replace(release, warm_up_seconds=_warm_up(release), start_at=time.time() + SOON)
        if not _succeeded(place, str(document["phase"]), release):
            return False
    return True


def _warm_up(release: Release) -> float:
    """Returns a warm-up that contains the start of the script: on a busy machine it takes many seconds. Otherwise the
    samples of the measured time would be of an idle node.
    """
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import troop.disks.assemble"], check=True)
    return min(max(release.warm_up_seconds, math.ceil(PROGRAMS * (time.monotonic() - began))), LONGEST_WARM_UP)


def _succeeded(place: Place, step: str, release: Release) -> bool:
    done = perform(place, step, 0, release, None)
    (place.home / f"{step}.log").write_bytes(done.output)
    (place.home / f"{step}.json").write_text(json.dumps(done.summary.document()), encoding="utf-8")
    return done.summary.outcome == OK


def _disks_as_on_ec2(volumes: Mapping[str, str], caches: list[str]) -> ExitStack:
    """Lets the agent's samples have the disks: User-Mode Linux gives them other names, and no models.

    Args:
        volumes: names in the block device mapping, by the kernel's name.
    """
    models = {**dict.fromkeys(volumes, nvme.EBS_MODEL), **dict.fromkeys(caches, nvme.INSTANCE_STORE_MODEL)}
    patches = ExitStack()
    patches.enter_context(patch.object(proc, "WHOLE_DISK", re.compile("|".join(models))))
    patches.enter_context(patch.object(nvme, "model", lambda _blocks, name: models.get(name, "")))
    patches.enter_context(patch.object(nvme.Volumes, "mapped_name", lambda _self, name: volumes.get(name)))
    return patches


def _limit(volumes: Mapping[str, str], operations: str) -> None:
    """Limits each volume for this process and its children. A delay would let requests wait in parallel."""
    for volume in volumes:
        numbers = Path(f"/sys/block/{volume}/dev").read_text(encoding="ascii").strip()
        (CGROUP / "io.max").write_text(f"{numbers} riops={operations} wiops={operations}", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
