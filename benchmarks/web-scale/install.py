"""Installs what a node of each role needs: packages of the distribution, and the content of the artifacts.

Parameters: ``system``, whether packages may be installed; ``driver``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from node import Phase

from troop.measure.collectors.log_space import lacking

PACKAGES = {"java": "java-17-amazon-corretto-headless", "nginx": "nginx", "memcached": "memcached"}
"""Packages of Amazon Linux 2023 by their command."""
FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin")
"""Folders of commands that some nodes lack in PATH."""


def main() -> None:
    phase = Phase.of_script()
    command = needed(phase)
    if command == "java" and (problem := lacking(phase.shared, float(phase.parameters["rate"]))):
        sys.exit(problem)
    if command:
        print(install(command, phase.may_change))
    if phase.role == "drivers" and phase.parameters["driver"] == "jmeter":
        unpack(phase.artifacts / "jmeter", phase.jmeter)
    elif phase.role in ("web", "mobile", "authentication"):
        unpack(phase.artifacts / "flights", phase.program.parent)
        phase.program.chmod(0o755)
        print(f"{phase.program.name}: {phase.program.stat().st_size:,} bytes")


def needed(phase: Phase) -> str | None:
    """Returns the command that the role runs; None if it is in an artifact."""
    if phase.role == "drivers":
        return "java" if phase.parameters["driver"] == "jmeter" else None
    return {"proxies": "nginx", "data": "memcached"}.get(phase.role)


def install(command: str, may_change: bool) -> str:
    """Returns the path of a command; installs its package if it is missing."""
    path = which(command)
    if path is None and may_change:
        words = ["dnf", "install", "--assumeyes", "--quiet", PACKAGES[command]]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            print(done.stdout[-4000:])
            sys.exit(f"{' '.join(words)} failed with exit code {done.returncode}; packages come from S3")
        path = which(command)
    if path is None:
        sys.exit(f"{command} is missing: set system to true, or use an image with {PACKAGES[command]}")
    return path


def which(command: str) -> str | None:
    return shutil.which(command, path=os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS]))


def unpack(archive: Path, folder: Path) -> None:
    """Replaces a folder by the content of an archive, whose hash Troop has checked."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        packed.extractall(folder)


if __name__ == "__main__":
    main()
