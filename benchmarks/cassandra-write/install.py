"""Installs what servers and drivers need: Java, disks, and the content of the archive.

Parameters: ``system``, whether the node may be changed: packages installed, disks formatted, limits raised; ``disk``,
where servers keep their data.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import cluster
from node import Phase, this_phase

from troop.disks.assemble import assemble
from troop.disks.errors import DiskError
from troop.disks.layout import INSTANCE_RAID0

JAVA = 17
PACKAGE = "java-17-amazon-corretto-headless"
INSTANCE_STORE = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*"
MOST_MAPS = 1_048_575
"""Memory maps of a process; Cassandra maps each file of its tables."""


def main() -> None:
    phase = this_phase()
    if problem := cluster.conflict(phase.parameters):
        sys.exit(problem)
    may_change = bool(phase.parameters["system"])
    if phase.role == "servers" or phase.parameters["driver"] == "cassandra-stress":
        install_java(may_change)
        unpack(phase)
    if phase.role == "servers":
        phase.keep("folders.json", [str(folder) for folder in folders(phase, may_change)])
        if may_change:
            Path("/proc/sys/vm/max_map_count").write_text(str(MOST_MAPS), encoding="ascii")
    elif phase.parameters["driver"] == "latte":
        (phase.artifacts / "latte").chmod(0o755)
        version = run([str(phase.artifacts / "latte"), "--version"], "build it for this type of node: see README.md")
        print(version.strip())


def install_java(may_change: bool) -> None:
    version = java_version()
    if version is None and may_change:
        run(["dnf", "install", "--assumeyes", "--quiet", PACKAGE], "the distribution's packages come from S3")
        version = java_version()
    if version is None or version < JAVA:
        sys.exit(
            f"Java {JAVA} is required, but found {version or 'none'}: set system to true, or use an image with Java"
        )
    print(f"Java {version}")


def java_version() -> int | None:
    """Returns 17 for ``openjdk version "17.0.15"``; None without Java."""
    if shutil.which("java") is None:
        return None
    output = subprocess.run(["java", "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    match = re.search(rb'version "(\d+)', output)
    return int(match[1]) if match else None


def unpack(phase: Phase) -> None:
    target = phase.shared / "cassandra"
    with tarfile.open(phase.artifacts / "cassandra") as archive:  # staged and checked by its SHA-256
        archive.extractall(target)
    print(f"{phase.home.name}: {len(list((phase.home / 'lib').glob('*.jar')))} libraries")


def folders(phase: Phase, may_change: bool) -> list[Path]:
    """Returns the data folders: one per disk, or one on the stripe of all disks, or on the root volume."""
    disk = str(phase.parameters["disk"])
    if disk == "root":
        return [_make_folder(phase.shared / "data")]
    if not may_change:
        sys.exit(f"disk is {disk}: it must be formatted, which requires parameters.system: true")
    if disk == INSTANCE_RAID0:
        try:
            return [_make_folder(assemble({"layout": disk}, phase.shared).folder / "cassandra")]
        except DiskError as error:
            sys.exit(str(error))
    devices = disks(disk)
    return [
        _make_folder(mounted(device, Path(f"/mnt/cassandra-{n}")) / "cassandra") for n, device in enumerate(devices)
    ]


def disks(disk: str) -> list[Path]:
    """Returns the devices: all disks of the instance store, or the named one."""
    if disk == "instance-store":
        devices = {link.resolve() for link in Path("/").glob(INSTANCE_STORE.lstrip("/")) if "-part" not in link.name}
        if not devices:
            sys.exit("disk is instance-store, but this instance type has none: choose another type or a volume")
        return sorted(devices)
    named = [Path(disk), Path(disk.replace("/dev/sd", "/dev/xvd"))]
    there = [path.resolve() for path in named if path.exists()]
    if not there:
        sys.exit(f"disk is {disk}, which does not exist: must be root, instance-store or a volume's device")
    return there[:1]


def mounted(device: Path, folder: Path) -> Path:
    """Creates an empty file system on a device and mounts it. Deletes everything on the device."""
    run(["mkfs.xfs", "-f", "-q", str(device)], f"cannot format {device}")
    run(["mount", "-o", "noatime", str(device), str(_make_folder(folder))], f"cannot mount {device}")
    print(f"{device} at {folder}")
    return folder


def run(command: list[str], hint: str) -> str:
    """Runs a command and returns its output. Ends the script if it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error}; {hint}")
    if done.returncode:
        print(done.stdout)
        sys.exit(f"{command[0]} failed with exit code {done.returncode}; {hint}")
    return done.stdout


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    main()
