"""Boots a kernel as a process of this machine, with image files as its disks."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..project import ROOT

PACKAGES = {
    "linux.uml": "user-mode-linux",
    "fio": "fio",
    "mdadm": "mdadm",
    "dmsetup": "dmsetup",
    "mkfs.xfs": "xfsprogs",
    "modprobe": "kmod",
}
"""Debian packages by their command."""
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MODULES = Path("/usr/lib/uml/modules")
HERE = Path(__file__).resolve().parent
DISK_MIB = 320
MEMORY_MIB = 512
TIMEOUT_SECONDS = 300


class KernelError(RuntimeError):
    """The kernel ended without the results of a phase."""


def missing() -> str | None:
    """Says which programs are missing and how to install them; None if all exist."""
    lacking = [command for command in PACKAGES if shutil.which(command, path=PATH) is None]
    if not lacking:
        return None
    packages = " ".join(PACKAGES[command] for command in lacking)
    return f"{', '.join(lacking)} missing; on Debian: apt-get install -y {packages}"


@dataclass(frozen=True)
class Node:
    """A node to boot.

    Attributes:
        volumes: the number of volumes besides the root.
        parameters: of the benchmark.
        files: the folder of its scripts.
        operations_per_second: the limit of each volume.
        measurements: names, one after another.
        seconds: of each measurement.
    """

    name: str
    volumes: int
    cached: bool
    parameters: Mapping[str, Any]
    files: Path
    operations_per_second: int
    measurements: Sequence[str]
    seconds: int


def run(node: Node, home: Path) -> dict[str, Any]:
    """Boots a kernel that performs the phases of a node, and waits for its end.

    Args:
        home: a new folder, which keeps all results and logs.

    Returns:
        The document of the agent's summary by measurement.

    Raises:
        KernelError: a phase failed, or has no summary; the message has the reason.
    """
    home.mkdir(parents=True)
    disks = [f"ubd{letter}" for letter in "bcdefghijkl"[: node.volumes + node.cached]]
    volumes, caches = disks[: node.volumes], disks[node.volumes :]
    for disk in ["ubda", *disks]:
        with (home / f"{disk}.img").open("wb") as image:
            image.truncate(DISK_MIB << 20)
    _write_inputs(node, home, volumes, caches)
    line = [
        *("linux.uml", f"mem={MEMORY_MIB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet"),
        *("con=null", "con0=fd:0,fd:1", f"init={HERE / 'init.sh'}", f"STORAGE_ENVIRONMENT={home / 'environment'}"),
        *(f"{disk}={home / disk}.img" for disk in ["ubda", *disks]),
    ]
    with (home / "console.log").open("wb") as console:
        try:
            subprocess.run(
                line, stdin=subprocess.DEVNULL, stdout=console, stderr=console, timeout=TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise KernelError(f"{node.name}: did not end in {TIMEOUT_SECONDS} s; see {home}/console.log") from None
    for disk in ["ubda", *disks]:
        (home / f"{disk}.img").unlink()
    return {phase: _summary(node.name, phase, home) for phase in ["prepare", *node.measurements]}


def _write_inputs(node: Node, home: Path, volumes: Sequence[str], caches: Sequence[str]) -> None:
    (home / "parameters.json").write_text(json.dumps(node.parameters), encoding="utf-8")
    (home / "files").symlink_to(node.files)
    document = {
        "name": node.name,
        "volumes": volumes,
        "operations_per_second": node.operations_per_second,
        "measurements": list(node.measurements),
        "seconds": node.seconds,
    }
    (home / "node.json").write_text(json.dumps(document), encoding="utf-8")
    modules = home / "modules" / "lib" / "modules"
    modules.mkdir(parents=True)
    for version in MODULES.iterdir():
        (modules / version.name).symlink_to(version)
    variables = {
        "PATH": f"{HERE / 'bin'}:{PATH}",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "functions"))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "STORAGE_HOME": str(home),
        "STORAGE_PYTHON": sys.executable,
        "STORAGE_MODULES": str(home / "modules"),
        "STORAGE_VOLUMES": " ".join(volumes),
        "STORAGE_CACHES": " ".join(caches),
    }
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    (home / "environment").write_text("".join(lines), encoding="utf-8")


def _summary(name: str, phase: str, home: Path) -> dict[str, Any]:
    path = home / f"{phase}.json"
    if not path.exists():
        raise KernelError(f"{name}: no summary of {phase}; see {home}/console.log")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if document["outcome"] != "ok":
        raise KernelError(f"{name}: {phase} {document['outcome']}: {document['reason']}; see {home}/{phase}.log")
    return document
