"""Runs commands on a node, and prints an answer for each, as a line of JSON after :data:`MARK`. For Python 3.9."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "TROOP-ANSWER "
LONGEST = 600
"""Characters of an output, from its end."""

# Not an import: in the package for other people's environments, it would get another name.
_ASK_NVME = """
import importlib
nvme = importlib.import_module("agent" + ".nvme")
volumes = nvme.Volumes()
names = nvme.names_in(nvme.Path("/sys/block"))
print(volumes.problem, [volumes.mapped_name(one) for one in names if nvme.NVME.fullmatch(one)])
"""
_ASK_ETHTOOL = """
import importlib
limits = importlib.import_module("agent" + ".ethtool").NetworkLimits()
print(limits.problem, [sorted(one) for one in (limits.read() or {}).values()])
"""
_PACKAGES = (
    *("fio", "mdadm", "device-mapper", "bcache-tools", "xfsprogs", "e2fsprogs", "nginx", "memcached", "python3.11"),
    "java-17-amazon-corretto-headless",
)
_MODULES = ("raid0", "loop", "dm-cache", "dm-cache-smq", "dm-writecache", "bcache")


@dataclass(frozen=True)
class Check:
    """A command, and a pattern that its output must match; without one, it must end with 0."""

    name: str
    command: tuple[str, ...]
    pattern: str = ""
    changes: bool = False


def checks(release: str) -> Iterator[Check]:
    """Yields all checks, in order; modules come after the package that may contain them."""
    yield Check("python", (sys.executable, "--version"), r"Python 3\.9\.")
    yield Check("kernel", ("uname", "-r"), "amzn2023")
    yield Check("console", ("cat", "/proc/cmdline"), "console=ttyS0")
    yield Check("aws-cli", ("aws", "--version"), "aws-cli/2")
    yield Check("cloud-init", ("cloud-init", "--version"))
    yield Check("per-boot-script", ("test", "-x", "/var/lib/cloud/scripts/per-boot/troop"))
    yield Check("scheduled-shutdown", ("cat", "/run/systemd/shutdown/scheduled"), "MODE=(poweroff|halt)")
    for unit in ("dnf-makecache.timer", "amazon-ssm-agent.service"):
        yield Check(f"masked-{unit}", ("systemctl", "is-enabled", unit), "masked")
    yield Check("oom-policy", ("systemctl", "show", "cloud-final.service", "-p", "OOMPolicy", "-p", "KillMode"), "Kill")
    yield Check("disks", ("lsblk", "--json", "-o", "NAME,MODEL,SERIAL,SIZE"), "Amazon Elastic Block Store")
    yield Check("by-id", ("sh", "-c", "ls /dev/disk/by-id"), "nvme-Amazon_Elastic_Block_Store")
    yield Check("sdf-link", ("readlink", "/dev/sdf"), "nvme")
    yield Check("nvme-ioctl", (sys.executable, "-c", _ASK_NVME), r"^None .*sdf")
    yield Check("ethtool-ioctl", (sys.executable, "-c", _ASK_ETHTOOL), r"^None \[\[")
    yield Check("open-files", ("bash", "-c", "ulimit -n 1048576"))
    yield Check("map-count", ("sysctl", "-w", "vm.max_map_count=1048575"), changes=True)
    yield Check("drop-caches", ("sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"), changes=True)
    install = ("dnf", "install", "--assumeyes", "--quiet")
    for package in _PACKAGES:
        yield Check(f"package-{package}", (*install, package), changes=True)
    # Its name depends on the series of the kernel.
    version, series = release.rsplit(".", 1)[0], ".".join(release.split(".")[:2])
    names = [f"kernel{series}-modules-extra-{version}", f"kernel-modules-extra-{version}"]
    either = " || ".join(f"{' '.join(install)} {name}" for name in names)
    yield Check("package-kernel-modules-extra", ("sh", "-c", either), changes=True)
    for module in _MODULES:
        yield Check(f"module-{module}", ("modprobe", module), changes=True)


def answer(check: Check) -> dict[str, object]:
    """Runs a check."""
    try:
        done = subprocess.run(
            check.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=180,
            check=False,
        )
        code, output = done.returncode, done.stdout.decode(errors="replace").strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"name": check.name, "ok": False, "code": None, "output": str(error)[-LONGEST:]}
    holds = bool(re.search(check.pattern, output)) if check.pattern else code == 0
    return {"name": check.name, "ok": holds, "code": code, "output": output[-LONGEST:]}


def main() -> None:
    parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    # On local AWS the node is a process on somebody's machine.
    may_change = parameters["system"] and "AWS_EC2_METADATA_SERVICE_ENDPOINT" not in os.environ
    for check in checks(platform.release()):
        if may_change or not check.changes:
            sys.stdout.write(MARK + json.dumps(answer(check)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
