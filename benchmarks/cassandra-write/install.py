"""Puts in place what servers and drivers need: Java, the disks, and what the archive holds.

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

from node import Phase, this_phase

JAVA = 17
PACKAGE = "java-17-amazon-corretto-headless"
INSTANCE_STORE = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*"
MOST_MAPS = 1_048_575
"""Memory maps of a process; Cassandra maps each file of its tables."""


def main() -> None:
    phase = this_phase()
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
        version = run([str(phase.artifacts / "latte"), "--version"], "it must be built for this node: see README.md")
        print(version.strip())


def install_java(may_change: bool) -> None:
    version = java_version()
    if version is None and may_change:
        run(["dnf", "install", "--assumeyes", "--quiet", PACKAGE], "the distribution's packages come from S3")
        version = java_version()
    if version is None or version < JAVA:
        sys.exit(
            f"Java {JAVA} is needed, there is {version or 'none'}: set system to true, or use an image that has it"
        )
    print(f"Java {version}")


def java_version() -> int | None:
    """17 of ``openjdk version "17.0.15"``; None without Java."""
    if shutil.which("java") is None:
        return None
    output = subprocess.run(["java", "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    match = re.search(rb'version "(\d+)', output)
    return int(match[1]) if match else None


def unpack(phase: Phase) -> None:
    target = phase.shared / "cassandra"
    with tarfile.open(phase.artifacts / "cassandra") as archive:  # of the content whose SHA-256 the benchmark names
        archive.extractall(target)
    print(f"{phase.home.name}: {len(list((phase.home / 'lib').glob('*.jar')))} libraries")


def folders(phase: Phase, may_change: bool) -> list[Path]:
    """Where data goes: one folder for each disk, or one on the volume that the node has booted from."""
    disk = str(phase.parameters["disk"])
    if disk == "root":
        return [_make_folder(phase.shared / "data")]
    if not may_change:
        sys.exit(f"disk is {disk}: it would be formatted, which parameters.system does not allow")
    devices = disks(disk)
    return [
        _make_folder(mounted(device, Path(f"/mnt/cassandra-{n}")) / "cassandra") for n, device in enumerate(devices)
    ]


def disks(disk: str) -> list[Path]:
    """Devices: all of the instance store, or the one that is named."""
    if disk == "instance-store":
        devices = {link.resolve() for link in Path("/").glob(INSTANCE_STORE.lstrip("/")) if "-part" not in link.name}
        if not devices:
            sys.exit("disk is instance-store, and this instance type has none: choose another type, or a volume")
        return sorted(devices)
    named = [Path(disk), Path(disk.replace("/dev/sd", "/dev/xvd"))]
    there = [path.resolve() for path in named if path.exists()]
    if not there:
        sys.exit(f"disk is {disk}, which is not there: must be root, instance-store, or a volume's device")
    return there[:1]


def mounted(device: Path, folder: Path) -> Path:
    """An empty file system on a device: whatever was on it is lost."""
    run(["mkfs.xfs", "-f", "-q", str(device)], f"{device} cannot be formatted")
    run(["mount", "-o", "noatime", str(device), str(_make_folder(folder))], f"{device} cannot be mounted")
    print(f"{device} at {folder}")
    return folder


def run(command: list[str], hint: str) -> str:
    """What a command prints; ends the script when it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error}; {hint}")
    if done.returncode:
        print(done.stdout)
        sys.exit(f"{command[0]} ended with {done.returncode}; {hint}")
    return done.stdout


def _make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    main()
