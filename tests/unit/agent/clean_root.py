"""A file system with nothing in it but Debian 11, its Python 3.9 and certificates: nothing of Troop's, no packages.

Amazon Linux 2023, whose image is not to be had outside of AWS, has that Python, too. The AWS CLI 2 is that of Debian
12, from a root of its own. Both are made once, by debootstrap. As a program, it runs a command in a network of its own,
in which the address of EC2's metadata service is free.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from infra import ROOT

INSIDE = "TROOP_OWN_NETWORK"
SECONDS = 900
"""The limit of the command."""
NAMESPACES = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
"""Nothing that the command has started, mounted or bound outlives it."""
CLI = "opt/aws-cli"
"""Where the root of the CLI is within the other one."""
_CLI = """#!/bin/sh
root=/opt/aws-cli libraries=MACHINE-linux-gnu
export PYTHONHOME=$root/usr PYTHONPATH=$root/usr/lib/python3/dist-packages
export OPENSSL_CONF=/dev/null OPENSSL_MODULES=$root/usr/lib/$libraries/ossl-modules
exec $root/usr/lib/$libraries/ld-linux-*.so.* --library-path $root/usr/lib/$libraries \\
    $root/usr/bin/python3.11 $root/usr/bin/aws "$@"
"""
"""Debian 12's own loader and libraries, because those of Debian 11 are too old for its programs."""


def _folder(release: str) -> Path:
    return Path(os.environ.get("TROOP_CLEAN_ROOT") or ROOT / ".build") / f"clean-root-{release}"


def missing() -> str | None:
    """What this machine lacks to make and enter one; None when there is nothing."""
    if os.geteuid() != 0:
        return "only root may enter another file system: sudo make agent-boot"
    for tool in ("chroot", "unshare", "mount", "ip", "timeout"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode:
        return "this machine allows no namespaces of networks, processes and mounts"
    if not _folder("bookworm").exists() and shutil.which("debootstrap") is None:
        return "there is no debootstrap: apt-get install debootstrap"
    return None


def make() -> Path:
    """The root, with the CLI; complete, or not there at all."""
    root, cli = _make_one("bullseye", "python3,ca-certificates"), _make_one("bookworm", "awscli,python3-cffi-backend")
    (root / CLI).mkdir(parents=True, exist_ok=True)
    aws = root / "usr/bin/aws"
    aws.write_text(_CLI.replace("MACHINE", platform.machine()))
    aws.chmod(0o755)
    assert (cli / "usr/bin/aws").exists()
    return root


def _make_one(release: str, packages: str) -> Path:
    final = _folder(release)
    if not final.exists():
        partial = final.with_name(f".{final.name}-{os.getpid()}")
        try:
            command = ["debootstrap", "--variant=minbase", f"--include={packages}", release, str(partial)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert done.returncode == 0, f"debootstrap failed:\n{done.stdout[-2000:]}"
            partial.rename(final)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return final


def enter(root: Path, line: list[str], environment: Mapping[str, str]) -> list[str]:
    """A command that runs ``line`` within the root and with this environment alone, with mounts that end with it."""
    inside = ["chroot", str(root), "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
    shell = f'mount -t proc proc "{root}/proc" && mount --bind "{_folder("bookworm")}" "{root / CLI}" && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", shell, "sh", *inside, *line]


def main() -> int:
    if problem := missing():
        print(f"agent-boot: skipped: {problem}")  # noqa: T201
        return 0
    make()
    network = "ip link set lo up && ip address add 169.254.169.254/32 dev lo && exec timeout --kill-after=10 "
    command = [*NAMESPACES, "sh", "-c", f'{network} {SECONDS} "$@"', "sh", *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, INSIDE: "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
