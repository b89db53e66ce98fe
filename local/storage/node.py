"""Runs inside the kernel: the phases of disk-io, by the agent's own code, without S3 and without a roster.

    python -m local.storage.node HOME

The home folder is on the machine's own file system. It has ``node.json``, ``parameters.json`` and ``files``, and
receives ``NAME.json``, the summary of each phase, and ``NAME.log``, its output.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from agent.barrier import Release
from agent.boot import Boot
from agent.metadata import Identity
from agent.phase import perform
from agent.place import Place
from troop.measure.summary import OK

CGROUP = Path("/mnt/cgroup/volumes")
PREPARE = "prepare"
TIMEOUT_SECONDS = 120


def main(home: Path) -> None:
    node = json.loads((home / "node.json").read_text(encoding="utf-8"))
    name = str(node["name"])
    place = Place(
        home,
        Boot("none", "local", "storage", name, "disks", "", time.time() + 3600),
        Identity(name, "local", "user-mode-linux", "127.0.0.1", "none"),
    )
    place.shared.mkdir()
    if not _performed(place, PREPARE, Release("prepare.py", TIMEOUT_SECONDS, 0, 0, None)):
        return
    _limit(node["volumes"], int(node["operations_per_second"]))
    for phase in node["measurements"]:
        release = Release("measure.py", TIMEOUT_SECONDS, 0, float(node["seconds"]), time.time() + 1)
        if not _performed(place, phase, release):
            return


def _performed(place: Place, phase: str, release: Release) -> bool:
    done = perform(place, phase, 0, release, None)
    (place.home / f"{phase}.log").write_bytes(done.output)
    (place.home / f"{phase}.json").write_text(json.dumps(done.summary.document()), encoding="utf-8")
    return done.summary.outcome == OK


def _limit(volumes: list[str], operations: int) -> None:
    """Limits each volume for this process and its children. A delay would let requests wait in parallel."""
    CGROUP.mkdir()
    for volume in volumes:
        numbers = Path(f"/sys/block/{volume}/dev").read_text(encoding="ascii").strip()
        (CGROUP / "io.max").write_text(f"{numbers} riops={operations} wiops={operations}", encoding="ascii")
    (CGROUP / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
