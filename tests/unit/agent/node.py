"""A node in a fake account: its user data runs with nothing on its PATH but what it may need."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agent.definition import steps
from agent.pack import pack
from tests.patience import PATIENCE
from tests.unit.agent.fake_account import FakeAccount
from troop.bench.definition import names
from troop.bench.fleets.user_data import user_data

RUN, CELL, ROLE, BUCKET, ID = "20261121-150312-1f0c9b2e", "c001", "drivers", "results", "i-0123456789abcdef0"
BOOT = {
    "format": "troop.boot/1",
    "bucket": BUCKET,
    "region": "us-west-2",
    "run": RUN,
    "cell": CELL,
    "role": ROLE,
    "role_id": "",
    "deployment": "troop-test",
    "stage": "test",
    "standing": False,
    "agent_sha256": "0" * 64,
    "expires_at": 1_790_000_000,
}
AWAIT_SAMPLES = f"""
import time
until, on_time = time.monotonic() + {PATIENCE}, 0
while on_time < 3 and time.monotonic() < until:
    second = int(time.time()) + 1
    time.sleep(max(0, second - time.time()))
    on_time = on_time + 1 if int(time.time()) == second else 0
"""
"""Part of a Python script that ends once it ran at the beginning of three seconds in a row, as a sampler then did."""

TOOLS = (
    "bash",
    "env",
    "date",
    "mkdir",
    "seq",
    "sha256sum",
    "mv",
    "sleep",
    "cat",
    "sh",
    "kill",
    "chmod",
    "sync",
    "timeout",
)
"""Of Amazon Linux's. The machine's own shutdown, for one, must not be found."""


def key(name: str) -> str:
    """Of an object of the cell."""
    return f"{BUCKET}/{names.cell_prefix(RUN, CELL)}{name}"


def alive(pid: int) -> bool:
    """Whether it runs; one that has ended and is not waited for does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")


def _as_systemd() -> None:
    """Its units begin with so few open files, and may have more."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Node:
    """One node.

    Attributes:
        home: of the agent's files.
        bin: its PATH.
    """

    def __init__(self, account: FakeAccount, folder: Path, python: str = sys.executable) -> None:
        self.account, self.home, self.bin = account, folder / "home", folder / "bin"
        self._console = folder / "console.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        self.tool("python3", f'#!/bin/sh\nexec {python} "$@"\n')
        self.tool("aws", f'#!/bin/sh\nexec {python} -SE {Path(__file__).parent / "fake_aws.py"} "$@"\n')
        agent = folder / "agent.pyz"
        self.sha256 = pack(agent)
        account.put(f"{BUCKET}/{names.agent_key(RUN)}", agent.read_bytes())
        self.environment = {
            "PATH": str(self.bin),
            "AWS_ENDPOINT_URL": account.url,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": account.metadata_of(ID),
            "TROOP_NODE_HOME": str(self.home),
        }

    def tool(self, name: str, text: str) -> None:
        """Puts a script on its PATH."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def benchmark(self, *phases: dict[str, Any], files: dict[str, str], **changes: Any) -> None:
        """Stores a definition with its files, and a barrier that holds before each step."""
        document: dict[str, Any] = {
            "format": "troop.benchmark/1",
            "name": "a-test",
            "phases": [{"roles": [ROLE], **phase} for phase in phases],
            "parameters": {"threads": 4, "keys": ["a", "b"]},
            "files": sorted(files),
            "artifacts": [],
            **changes,
        }
        self.account.put(f"{BUCKET}/{names.cell_definition_key(RUN, CELL)}", document)
        for name, text in files.items():
            self.account.put(f"{BUCKET}/{names.file_key(RUN, name)}", text.encode())
        for phase in document["phases"]:
            for step in [*steps(phase, ROLE)] or [phase["name"]]:
                self.barrier(step, "hold")

    def barrier(self, phase: str, state: str = "release", **changes: Any) -> None:
        """Writes what the workflow would."""
        times = {"timeout_seconds": PATIENCE, "warm_up_seconds": 0, "measured_seconds": 0, "start_at": None}
        document = {"format": "troop.barrier/1", "phase": phase, "state": state, "script": "run.py", **times, **changes}
        self.account.put(key(f"barriers/{phase}.json"), document)

    def roster(self, rank: int = 3, node: str = ID) -> None:
        entry = {"id": node, "role": ROLE, "rank": rank, "zone": "us-west-2a", "address": "127.0.0.1"}
        self.account.put(key("roster.json"), {"format": "troop.roster/1", "nodes": [entry]})

    def boot(self, **changes: Any) -> None:
        """Runs its user data."""
        expires_at = int(time.time()) + 3600
        script = self.home.parent / "user-data"
        script.write_text(user_data({**BOOT, "agent_sha256": self.sha256, "expires_at": expires_at, **changes}))
        script.chmod(0o755)
        self._console.write_bytes(b"")
        self._start(script)

    def join(self, rank: int = 3) -> None:
        """Boots it, and puts it on the roster once it has registered. It waits at its first barrier."""
        self.boot()
        self.registration()
        self.roster(rank)

    def reboot(self) -> None:
        """Kills all of its processes, empties /run, and runs cloud-init's scripts for each boot."""
        self.end()
        shutil.rmtree(self.home / "run")
        self.run_boot_scripts()

    def run_boot_scripts(self) -> None:
        (script,) = (self.home / "var/lib/cloud/scripts/per-boot").iterdir()
        assert os.access(script, os.X_OK)
        self._start(script)

    def _start(self, script: Path) -> None:
        with self._console.open("ab") as console:
            self._process = subprocess.Popen(
                [str(self.bin / "bash"), str(script)],
                env=self.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_as_systemd,
            )

    def registration(self) -> dict[str, Any]:
        document: dict[str, Any] = self.account.document(key(f"nodes/{ID}.json"))
        return document

    def summary(self, phase: str) -> dict[str, Any]:
        document: dict[str, Any] = self.account.document(key(f"phases/{phase}/{ID}.json"))
        return document

    def output(self, phase: str) -> bytes:
        return self.account.objects[key(f"output/{phase}/{ID}.log.gz")]

    def over(self) -> int:
        """Waits until it has ended."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def terminate(self) -> None:
        """As a shutdown does: the agent is asked to end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def console(self) -> str:
        return self._console.read_text(errors="replace")

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
