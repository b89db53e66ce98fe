"""Runs commands on a node, and prints an answer for each, as a line of JSON after :data:`MARK`. For Python 3.9."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MARK = "TROOP-ANSWER "
PRESIGNED = "presigned"
"""The name of the answer with an address, which is for the nodes' network only."""
LONGEST = 600
"""Characters of a command, from its beginning, and of an output, from its end."""

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
_READ_VOLUME = """
import importlib
parts = (".block_devices", ".nvme", ".initialization")
devices, nvme, volumes = (importlib.import_module("agent" + part) for part in parts)
volumes.read_whole({"/dev/sdf": devices.path_of("/dev/sdf", nvme.Volumes().mapped_name)})
"""
_FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).status)"
_FILL_MEMORY = """
open("/proc/self/oom_score_adj", "w").write("1000")
parts = []
while True:
    parts.append(b"x" * (1 << 26))
"""
_INSTALL = ("dnf", "install", "--assumeyes", "--quiet")
_PACKAGES = (
    *("fio", "mdadm", "device-mapper", "bcache-tools", "xfsprogs", "e2fsprogs", "nginx", "memcached", "python3.11"),
    *("java-17-amazon-corretto-headless", "iproute-tc"),
)
_MODULES = ("raid0", "loop", "dm-cache", "dm-cache-smq", "dm-writecache", "bcache", "sch_netem")
_SLOW = "tc qdisc add dev {0} root netem delay 1ms && tc qdisc del dev {0} root && tc qdisc show dev {0} root"
"""A planned fault of the network, and what is left after it."""


@dataclass(frozen=True)
class Check:
    """A command, and a pattern that its output must match; without one, it must end with ``code``."""

    name: str
    command: tuple[str, ...]
    pattern: str = ""
    changes: bool = False
    code: int = 0
    longest: int = LONGEST


def checks(release: str) -> Iterator[Check]:
    """Yields the checks of the system, in order; modules come after the package that may contain them."""
    yield Check("python", (sys.executable, "--version"), r"Python 3\.9\.")
    yield Check("kernel", ("uname", "-r"), "amzn2023")
    yield Check("console", ("cat", "/proc/cmdline"), "console=ttyS0")
    yield Check("aws-cli", ("aws", "--version"), "aws-cli/2")
    yield Check("cloud-init", ("cloud-init", "--version"))
    yield Check("per-boot-script", ("test", "-x", "/var/lib/cloud/scripts/per-boot/troop"))
    yield Check("scheduled-shutdown", ("cat", "/run/systemd/shutdown/scheduled"), "MODE=(poweroff|halt)")
    for unit in ("dnf-makecache.timer", "amazon-ssm-agent.service"):
        yield Check(f"masked-{unit}", ("systemctl", "is-enabled", unit), "masked")
    yield Check("oom-policy", ("systemctl", "show", "cloud-final.service", "-p", "OOMPolicy"), "=continue")
    yield Check("disks", ("lsblk", "--json", "-o", "NAME,MODEL,SERIAL,SIZE"), "Amazon Elastic Block Store")
    yield Check("by-id", ("sh", "-c", "ls /dev/disk/by-id"), "nvme-Amazon_Elastic_Block_Store")
    yield Check("sdf-link", ("readlink", "/dev/sdf"), "nvme")
    yield Check("nvme-ioctl", (sys.executable, "-c", _ASK_NVME), r"^None .*sdf")
    yield Check("ethtool-ioctl", (sys.executable, "-c", _ASK_ETHTOOL), r"^None \[\[")
    yield Check("initialize-read", (sys.executable, "-c", _READ_VOLUME))
    yield Check("open-files", ("bash", "-c", "ulimit -n 1048576"))
    yield Check("map-count", ("sysctl", "-w", "vm.max_map_count=1048575"), changes=True)
    yield Check("drop-caches", ("sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"), changes=True)
    for package in _PACKAGES:
        yield Check(f"package-{package}", (*_INSTALL, package), changes=True)
    # Its name depends on the series of the kernel.
    version, series = release.rsplit(".", 1)[0], ".".join(release.split(".")[:2])
    names = [f"kernel{series}-modules-extra-{version}", f"kernel-modules-extra-{version}"]
    either = " || ".join(f"{' '.join(_INSTALL)} {name}" for name in names)
    yield Check("package-kernel-modules-extra", ("sh", "-c", either), changes=True)
    for module in _MODULES:
        yield Check(f"module-{module}", ("modprobe", module), changes=True)
    # Programs of the packages.
    yield Check("corretto", ("java", "-version"), r'(?s)version "17.*Corretto', changes=True)
    yield Check("nginx", ("nginx", "-t"), changes=True)
    yield Check("memcached", ("memcached", "-V"), changes=True)
    yield Check("fio", ("fio", "--version"), changes=True)
    yield Check("make-bcache", ("sh", "-c", "command -v make-bcache"), changes=True)
    interface = "$(ip -oneline route show default | sed 's/.* dev \\([^ ]*\\).*/\\1/;q')"
    yield Check("slow-network", ("sh", "-c", _SLOW.format(interface)), "qdisc (mq|fq_codel|pfifo_fast)", changes=True)


def access(boot: Mapping[str, str], *, filtered: bool) -> Iterator[Check]:
    """Yields the checks of what a node may read, write and resolve.

    Args:
        boot: the document from which the agent starts.
        filtered: whether the network resolves only names of AWS and its own.
    """
    cell = f"s3://{boot['bucket']}/runs/{boot['run']}/{boot['cell']}"
    other = f"{cell}/nodes/{boot['role_id']}:i-00000000000000000.json"
    presign = ("aws", "s3", "presign", f"{cell}/definition.json", "--expires-in", "3600")
    yield Check("objects-of-other-nodes", ("aws", "s3", "cp", "/etc/os-release", other), "AccessDenied")
    yield Check(PRESIGNED, presign, "^https?://", longest=5000)
    yield Check("presigned-inside", ("sh", "-c", f'"{sys.executable}" -c "{_FETCH}" "$({" ".join(presign)})"'), "200")
    yield Check("other-names", ("getent", "hosts", "example.com"), code=2 if filtered else 0, changes=True)


def programs(folder: Path, machine: str) -> Iterator[Check]:
    """Yields the checks of the programs in a folder that are for a machine."""
    for package in ("java-17-amazon-corretto-headless", "python3.11"):
        yield Check(f"package-{package}", (*_INSTALL, package), changes=True)
    for path in sorted(folder.iterdir()):
        name, _, built_for = path.name.partition(".")[0].partition("-")
        if built_for in ("", {"aarch64": "arm64"}.get(machine, machine)):
            yield Check(path.name, ("sh", "-c", f"cd {path.parent} && {_PROGRAMS[name].format(path.name)}"))


_PROGRAMS = {
    "k6": "chmod +x {0} && echo 'export default () => {{}}' | ./{0} run --quiet --iterations 3 -",
    "jmeter": "tar -xf {0} && java -jar */bin/ApacheJMeter.jar --version",
    "locust": "mkdir -p locust && tar -xf {0} -C locust && PYTHONPATH=locust python3.11 -m locust --version",
    "latte": "chmod +x {0} && ./{0} --version",
    "iozone": "chmod +x {0} && ./{0} -s 1m -r 64k -i 0 -i 1",
}


def phase_checks(phase: str, home: Path, parameters: Mapping[str, bool]) -> Iterator[Check]:
    """Yields the checks of a phase.

    Args:
        home: the folder of the agent's files.
    """
    if phase == "ask":
        yield from checks(platform.release())
        boot = json.loads((home / "boot.json").read_text(encoding="utf-8"))
        yield from access(boot, filtered=parameters["filtered"])
    elif phase == "programs":
        yield from programs(home / "artifacts", platform.machine())
    elif phase == "memory":
        # systemd may stop the agent's unit, too: then the node reports nothing more.
        yield Check("out-of-memory", (sys.executable, "-c", _FILL_MEMORY), changes=True, code=-9)
    else:
        yield Check("reboot", ("sh", "-c", "sync; systemctl reboot --force --force; sleep 120"), changes=True)


def answer(check: Check) -> dict[str, object]:
    """Runs a check."""
    shown = {"name": check.name, "command": " ".join(check.command)[:LONGEST]}
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
        return {**shown, "ok": False, "code": None, "output": str(error)[-LONGEST:]}
    holds = bool(re.search(check.pattern, output)) if check.pattern else code == check.code
    if len(output) > check.longest:
        output = re.sub(r"^\S*", "...", output[-check.longest :])  # the rest of a word can be a part of an id
    return {**shown, "ok": holds, "code": code, "output": output}


def main() -> None:
    place = Path(os.environ["TROOP_PARAMETERS"])
    parameters = json.loads(place.read_text(encoding="utf-8"))
    # On local AWS the node is a process on somebody's machine.
    may_change = parameters["system"] and "AWS_EC2_METADATA_SERVICE_ENDPOINT" not in os.environ
    for check in phase_checks(os.environ["TROOP_PHASE"], place.parent, parameters):
        if may_change or not check.changes:
            sys.stdout.write(MARK + json.dumps(answer(check)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
