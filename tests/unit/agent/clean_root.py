"""A file system with nothing in it but Debian 11, its Python 3.9 and certificates: nothing of Troop's, no packages.

Amazon Linux 2023, whose image is not to be had outside of AWS, has that Python, too. It is made once, by debootstrap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from infra import ROOT

RELEASE = "bullseye"
PACKAGES = "python3,ca-certificates"


def folder() -> Path:
    """Where it is, or will be."""
    return Path(os.environ.get("TROOP_CLEAN_ROOT") or ROOT / ".build" / f"clean-root-{RELEASE}")


def missing() -> str | None:
    """What this machine lacks to make and enter one; None when there is nothing."""
    if os.geteuid() != 0:
        return "only root may enter another file system: sudo make agent-boot"
    for tool in ("chroot", "unshare", "mount"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    if not (folder() / "usr/bin/python3").exists() and shutil.which("debootstrap") is None:
        return "there is no debootstrap: apt-get install debootstrap"
    return None


def make() -> Path:
    """The root; complete, or not there at all."""
    final = folder()
    if not final.exists():
        partial = final.with_name(f".{final.name}-{os.getpid()}")
        try:
            command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(partial)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert done.returncode == 0, f"debootstrap failed:\n{done.stdout[-2000:]}"
            partial.rename(final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return final


def enter(root: Path, line: list[str], environment: Mapping[str, str]) -> list[str]:
    """A command that runs ``line`` within the root and with this environment alone, with a /proc that ends with it."""
    inside = ["chroot", str(root), "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    shell = f'mount -t proc proc "{root}/proc" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", shell, "sh", *inside, *line]
