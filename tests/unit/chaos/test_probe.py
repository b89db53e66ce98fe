"""The probe's script, run for real: in a mount, network and process namespace of its own, with what faults leave."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from troop import faults
from troop.chaos.probe import Reading, parse

SCRIPT = Path(__file__).parents[3] / "infra" / "probe.sh"
TOKEN = "0123456789abcdef0123456789abcdef"
NAMESPACE = "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"
SHELLS = "sh", "bash --posix", "dash"
BUSYBOX = "busybox sh"
"""Its own tc comes before that of PATH."""


def _no_namespace() -> str:
    """Returns why a process cannot have namespaces of its own here; empty if it can."""
    if shutil.which("unshare") is None:
        return "the command unshare is missing"
    tried = subprocess.run([*NAMESPACE, "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else ""


_REASON = _no_namespace()
pytestmark = pytest.mark.skipif(bool(_REASON), reason=f"the probe needs an instance to read: {_REASON}")


class Instance:
    """A place to run the script in. Its traces are made by shell commands before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.setup = [
            "mount -t tmpfs tmpfs /var/lib",
            "mkdir -p /var/lib/amazon/ssm",
            f"printf '127.0.0.1 localhost\\n' > {folder}/hosts",
            f"mount --bind {folder}/hosts /etc/hosts",
            "ip link set lo up",
        ]

    def program(self, name: str, text: str) -> None:
        """Adds a program, which is found before the machine's own."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def process(self, name: str) -> None:
        """Starts a process with a name, as the kernel knows it."""
        path = self.bin / f"running-{name}" / name
        path.parent.mkdir()
        shutil.copy(shutil.which("sleep") or "sleep", path)
        self.setup.append(f"{path} 60 & ")
        self.setup.append(f'while [ "$(cat /proc/$!/comm)" != {name} ]; do :; done')

    def run(self, shell: str = "sh", process: str = "", before: str = "", text: str = "") -> str:
        script = self.folder / "script"
        text = text or SCRIPT.read_text()
        script.write_text(text.replace("{{Token}}", TOKEN).replace("{{Process}}", process))
        lines = ["set -e", *self.setup, f"export PATH={self.bin}:$PATH", f"{before} {shell} {script}", "exit $?"]
        command = [*NAMESPACE, "sh", "-c", "\n".join(lines)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout

    def read(self, shell: str = "sh", process: str = "", before: str = "", text: str = "") -> Reading:
        reading = parse(self.run(shell, process, before, text), TOKEN)
        assert reading is not None
        return reading


@pytest.fixture
def instance(tmp_path: Path) -> Instance:
    return Instance(tmp_path)


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"missing here: {', '.join(missing)}")


def test_the_script_has_the_two_parameters_that_systems_manager_fills_in() -> None:
    assert sorted(re.findall(r"\{\{\s*(.*?)\s*\}\}", SCRIPT.read_text())) == ["Process", "Token"]


def test_script_looks_for_every_tool_of_the_faults(instance: Instance) -> None:
    instance.setup.append("mount -t tmpfs tmpfs /sys")
    instance.setup.append("mkdir /var/lib/bin && cp $(which grep df) /var/lib/bin")
    path = "$PATH:/usr/sbin:/usr/bin:/sbin:/bin"
    text = SCRIPT.read_text()
    assert path in text
    assert set(instance.read(text=text.replace(path, "/var/lib/bin")).missing) == set(faults.tools())


@pytest.mark.parametrize("shell", [pytest.param(shell, marks=needs(shell.split()[0])) for shell in SHELLS])
def test_every_shell_finds_traces(instance: Instance, shell: str) -> None:
    for name in ("stress-ng", "stress-ng-cpu", "atd", "nginx", "nginx-more"):
        instance.process(name)
    instance.program(
        "tc",
        "printf 'qdisc noqueue 0: dev lo root\\nqdisc prio 1: dev eth0 root\\n  flags\\n'"
        "; printf 'qdisc netem 10: dev eth0 parent 1:1\\nqdisc ingress ffff: dev eth0\\n'",
    )
    instance.program("iptables", "printf -- '-P INPUT DROP\\n-A INPUT -p tcp -j DROP\\n-A OUTPUT -j DROP -m x\\n'")
    instance.setup += [
        "cd /var/lib/amazon/ssm",
        "touch Run-Network-1.flag Run-Network-1-Rollback.sh 'a name-Rollback.sh' ipc other.sh",
        "printf '10.0.0.1 db #delete-after-fault-injection' >> /etc/hosts",
    ]
    reading = instance.read(shell, process="nginx")
    assert reading.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (reading.stress, reading.running, reading.qdiscs, reading.drops) == (2, 1, 3, 2)
    assert (reading.rollbacks, reading.hosts) == (3, 1)
    assert "atd" not in reading.missing
    assert "tc" not in reading.missing


@pytest.mark.parametrize("shell", [pytest.param(shell, marks=needs(shell.split()[0])) for shell in (*SHELLS, BUSYBOX)])
def test_a_clean_instance_has_no_traces(instance: Instance, shell: str) -> None:
    instance.program("tc", "echo 'qdisc fq_codel 0: dev eth0 root'")
    instance.program("iptables", "echo '-P INPUT ACCEPT'")
    reading = instance.read(shell)
    assert (reading.stress, reading.qdiscs, reading.drops, reading.rollbacks, reading.hosts) == (0, 0, 0, 0, 0)
    assert reading.running is None, "no name was asked for"
    assert "atd" in reading.missing


def test_used_is_what_df_says(instance: Instance) -> None:
    instance.program(
        "df",
        "printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\\n'"
        "; printf '/dev/root 2000 1000 600 63%% /\\n'",
    )
    assert instance.read().used == 62.5
    instance.program("df", "exit 1")
    assert instance.read().used is None


def test_failing_program_gives_no_count_and_an_absent_one_zero(instance: Instance) -> None:
    instance.program("tc", "exit 2")
    instance.program("iptables", "exit 4")
    # Neither program is there: AWS's documents cannot have added anything by it.
    failing = instance.read()
    assert (failing.qdiscs, failing.drops) == (None, None)
    for name in ("tc", "iptables"):
        (instance.bin / name).unlink()
        instance.setup.append(f"for f in $(which -a {name}); do mount --bind /dev/null $f; done")
    absent = instance.read()
    assert (absent.qdiscs, absent.drops) == (0, 0)
    assert {"tc", "iptables"} <= set(absent.missing)


def test_processes_that_cannot_be_read_are_not_none(instance: Instance) -> None:
    instance.program("grep", "exit 2")
    reading = instance.read(process="nginx")
    assert (reading.stress, reading.running) == (None, None)


def test_an_instance_without_proc_gives_no_reading(instance: Instance) -> None:
    instance.setup.append("mount -t tmpfs tmpfs /proc")
    assert parse(instance.run(), TOKEN) is None


def test_a_zombie_of_stress_ng_does_nothing_any_more(instance: Instance) -> None:
    instance.process("stress-ng-vm")
    program = instance.bin / "running-stress-ng-vm" / "stress-ng-vm"
    instance.setup[-2:] = [  # its parent becomes one that never waits for it
        f"sh -c '{program} 0 & exec sleep 60' &",
        "while ! grep -qs '(stress-ng-vm) Z' /proc/[0-9]*/stat; do :; done",
    ]
    assert instance.read().stress == 0


@needs("iptables")
def test_real_rule_of_iptables_counts(instance: Instance) -> None:
    assert instance.read().drops == 0
    instance.setup.append("iptables -I OUTPUT -p tcp --dport 5432 -j DROP")
    assert instance.read().drops == 1


@needs("iptables", "setpriv")
def test_without_the_right_to_read_rules_there_is_no_count(instance: Instance) -> None:
    instance.setup.append("iptables -I OUTPUT -p tcp --dport 5432 -j DROP")
    powers = "--bounding-set=-net_admin --inh-caps=-net_admin --ambient-caps=-net_admin"
    assert instance.read(before=f"setpriv {powers}").drops is None


@needs("strace")
def test_script_changes_nothing_and_starts_as_few_processes_among_many(instance: Instance) -> None:
    for number in range(20):
        instance.process(f"stress-ng-{number}")
    calls = "execve,kill,tkill,%file,socket"
    trace = instance.folder / "trace"
    reading = instance.read(process="nginx", before=f"strace -f -qq -e trace={calls} -o {trace}")
    assert reading.stress == 20
    lines = trace.read_text().splitlines()
    writing = [
        line for line in lines if re.search("O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", line) if "/dev/null" not in line
    ]
    assert not writing
    changing = "creat|mkdir|mknod|unlink|rename|r?link|symlink|chmod|chown|truncate|utime|mount|setxattr|t?kill"
    assert not [line for line in lines if re.match(rf"\d+ +({changing})\w*\(", line)]
    started = {line.split()[0] for line in lines if "execve(" in line and line.endswith("= 0")}
    assert len(started) <= 7, "the shell, and six more"
