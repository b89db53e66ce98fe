"""A node on simulated EC2: real user data, agent, scripts and AWS CLI 2, with Python 3.9 and nothing of ours installed.

Not real are S3, the instance metadata service, systemd, and ``shutdown``, which would end this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import ROOT
from tests.patience import PATIENCE, eventually
from tests.unit.agent import clean_root
from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.node import BOOT, BUCKET, ID, RUN, Node, key
from tests.unit.agent.simulated_ec2 import SimulatedEc2
from troop.bench.definition import names
from troop.bench.fleets.user_data import user_data
from troop.measure import live as lives
from troop.measure import summary as summaries
from troop.measure.merge import Merger
from troop.measure.partial import partial

pytestmark = [
    pytest.mark.clean_root,
    pytest.mark.skipif(clean_root.INSIDE not in os.environ, reason="only in a network of its own: make agent-boot"),
]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""All that cloud-init leaves of an environment; not even HOME."""
FOLDER = ROOT / "benchmarks/s3-range-read"
SCRIPTS = {path.name: path.read_text() for path in FOLDER.glob("*.py")}
PARAMETERS = yaml.safe_load((FOLDER / "benchmark.yaml").read_text())["parameters"]
PHASES = ("prepare", "measure", "clean-up")
ROLE_ID = "AROAEXAMPLEROLEID000"
WRITER = f"{ROLE_ID}:{ID}"
LEFT = ("var/lib/troop", "var/lib/cloud", "run/troop-first-boot", "run/systemd", "root", "calls")
STUBS = ("shutdown", "systemctl")
NOTICE = {"action": "terminate", "time": "2026-11-26T11:40:00Z"}


class Machine:
    """The node's machine.

    Attributes:
        console: what user data has printed.
    """

    def __init__(self, root: Path, ec2: SimulatedEc2, folder: Path) -> None:
        self._root, self.ec2, self.console = root, ec2, folder / "console.log"
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in STUBS:
            stub = root / "usr/local/sbin" / name
            stub.write_text(f'#!/bin/sh\necho "{name} $*" >> /calls\n')
            stub.chmod(0o755)
        (root / "root").mkdir(exist_ok=True)
        shutil.copyfile(ec2.trust, root / "root/trust.pem")
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost {ec2.host}\n")

    def start(self, *line: str) -> subprocess.Popen[bytes]:
        environment = {"PATH": PATH, "AWS_CA_BUNDLE": "/root/trust.pem"}  # the simulated S3 has its own certificate
        with self.console.open("ab") as file:
            process = subprocess.Popen(
                clean_root.enter(self._root, list(line), environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def run(self, *line: str) -> str:
        """What a command prints that ends well."""
        self.console.write_bytes(b"")
        assert self.start(*line).wait(PATIENCE) == 0, self.console.read_text()
        return self.console.read_text()

    def boot(self, sha256: str) -> subprocess.Popen[bytes]:
        expires_at = int(time.time()) + 3600
        script = user_data({**BOOT, "role_id": ROLE_ID, "agent_sha256": sha256, "expires_at": expires_at})
        (self._root / "root/user-data").write_text(script)
        return self.start("bash", "/root/user-data")

    @property
    def calls(self) -> list[str]:
        return (self._root / "calls").read_text().splitlines()

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for path in (*LEFT, *(f"usr/local/sbin/{name}" for name in STUBS)):
            shutil.rmtree(self._root / path, ignore_errors=True)
            if (self._root / path).is_file():
                (self._root / path).unlink()


@pytest.fixture
def machine(account: FakeAccount, tmp_path: Path) -> Iterator[Machine]:
    ec2 = SimulatedEc2(account, tmp_path, BUCKET, ID, WRITER)
    machine = Machine(clean_root.make(), ec2, tmp_path)
    yield machine
    machine.close()
    ec2.close()


def written(account: FakeAccount, folder: str) -> Any:
    return account.document(key(f"{folder}/{WRITER}.json"))


def begin(node: Node, machine: Machine) -> subprocess.Popen[bytes]:
    """Boots a node of s3-range-read, which creates its objects itself."""
    node.benchmark(
        *({"name": name} for name in PHASES),
        files=SCRIPTS,
        parameters={**PARAMETERS, "fill_objects": 100, "threads": 4},
        own_data=True,
    )
    process = machine.boot(node.sha256)
    registered = written(node.account, "nodes")
    assert "error" not in registered, registered
    assert registered["python"].startswith("3.9.")
    node.roster(rank=0)
    node.barrier("prepare", script="prepare.py")
    prepared = summaries.parse(written(node.account, "phases/prepare"))
    assert (prepared.outcome, prepared.reason) == ("ok", None)
    return process


def test_a_node_boots_measures_and_reports_its_reboot(node: Node, machine: Machine) -> None:
    account, ec2 = node.account, machine.ec2
    packages = "import pkgutil, sys; print([m.name for m in pkgutil.iter_modules(p for p in sys.path if 'dist' in p)])"
    assert machine.run("python3", "-c", packages) == "[]\n"
    assert machine.run("aws", "--version").startswith("aws-cli/2.")

    process = begin(node, machine)
    start_at = time.time() + 8
    node.barrier("measure", script="read.py", warm_up_seconds=2, measured_seconds=5, start_at=start_at)
    measured = summaries.parse(written(account, "phases/measure"))
    node.barrier("clean-up", script="fill.py")
    assert summaries.parse(written(account, "phases/clean-up")).outcome == "ok"
    assert process.wait(PATIENCE) == 0, machine.console.read_text()

    assert (measured.outcome, measured.reason) == ("ok", None)
    assert measured.samples is not None
    assert len([value for value in measured.samples.series["cpu_user"] if value is not None]) >= 2
    merger = Merger()
    merger.add(measured)
    (row,) = merger.table()
    assert row["operation"] == "read"
    assert row["count"] > 100
    assert row["errors"] == {}
    assert 0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]
    assert {key(f"output/{phase}/{WRITER}.log.gz") for phase in PHASES} <= account.objects.keys()
    assert f"{BUCKET}/{names.agent_key(RUN)}" in account.objects
    assert not [name for name in account.objects if name.startswith(f"{BUCKET}/data/")]
    assert ec2.refused == []
    assert min(ec2.programs["CLI"], ec2.programs["own"]) > 0
    assert machine.calls[0] in ("shutdown -h +65", "shutdown -h +66")
    assert "systemctl daemon-reload" in machine.calls

    machine.run("rm", "/run/troop-first-boot")
    del account.objects[key(f"phases/clean-up/{WRITER}.json")]
    machine.run("rm", "/var/lib/troop/phases/clean-up/summary.json")
    machine.run("/var/lib/cloud/scripts/per-boot/troop")
    assert written(account, "phases/clean-up")["reason"] == "the node rebooted"
    assert machine.calls[-1] == "shutdown -h now"


def test_measurements_of_a_spot_node_survive_its_interruption(node: Node, machine: Machine) -> None:
    account = node.account
    account.spot = {}
    process = begin(node, machine)
    node.barrier("measure", script="read.py", measured_seconds=PATIENCE)
    eventually(lambda: '"measured":[[' in account.objects.get(key(f"live/{WRITER}.json"), b"").decode())
    account.spot = {"spot/instance-action": json.dumps(NOTICE)}
    summary = summaries.parse(written(account, "phases/measure"))
    assert (summary.outcome, summary.interruption) == ("lost", NOTICE)
    assert written(account, "interruptions")["action"] == "terminate"
    assert process.wait(PATIENCE) == 1
    measured = partial(lives.parse(written(account, "live")), summary, 0)
    assert measured is not None
    assert measured.operations["read"].times.count > 0
    assert machine.ec2.refused == []


@pytest.mark.parametrize(
    "name", [f"nodes/{ROLE_ID}:i-0fedcba9876543210.json", "barriers/measure.json", "results.json", "definition.json"]
)
def test_a_node_cannot_write_what_is_not_its_own(machine: Machine, name: str) -> None:
    where = f"s3://{key(name)}"
    process = machine.start("aws", "s3", "cp", "/etc/hosts", where, "--region", "us-west-2")
    assert process.wait(PATIENCE) == 1
    assert "AccessDenied" in machine.console.read_text()
    assert machine.ec2.account.objects.keys().isdisjoint({key(name)})
    assert machine.ec2.refused
