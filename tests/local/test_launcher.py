"""The launcher: only on loopback, everything ended however it ends, and plain words when something is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from local import project
from local.launcher import LocalAccount
from tests.patience import PATIENCE, eventually

CHILD = """
import json, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests in the background has it ignored
from local.launcher import LocalAccount
from tests.local.helpers import Fleet, World, allow
SCRIPT = "#!/bin/sh\\nsetsid sleep 4243 &\\nsleep 4244 &\\ntouch $READY_FILE\\nexec sleep 4245\\n"
SLOW = "import time\\ndef handler(event, context):\\n    time.sleep(60)\\n"
with LocalAccount("killed") as account:
    fleet, world = Fleet(account), World(account)
    fleet.in_service(fleet.group(2, SCRIPT), 2)
    world.functions.invoke(FunctionName=world.function(SLOW, timeout=60), InvocationType="Event")
    print(json.dumps({"run": str(account.run), "pid": account.pid}), flush=True)
    time.sleep(600)
"""


def running(run: Path) -> dict[int, str]:
    """Processes that belong to an account's run: id -> command line."""
    commands_by_id = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(run).encode() in environment:
                commands_by_id[int(entry.name)] = command
    return commands_by_id


Child = tuple[subprocess.Popen[str], Path]
_WAYS = ("SIGKILL", "SIGTERM", "SIGINT", "account")


@pytest.fixture(scope="module")
def children() -> Iterator[dict[str, Child]]:
    """Programs that have brought up an account with busy instances and a busy function: one for each way to end."""
    programs = {
        way: subprocess.Popen(
            [sys.executable, "-c", CHILD],
            cwd=project.ROOT,
            env={**os.environ, "PYTHONPATH": str(project.ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for way in _WAYS
    }
    try:
        yield {way: (program, _run_of(program)) for way, program in programs.items()}
    finally:
        for program in programs.values():
            program.kill()
            program.communicate()


def _run_of(program: subprocess.Popen[str]) -> Path:
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line, "the program ended before its account was up"
    return Path(json.loads(line)["run"])


def _is_running(run: Path, words: str) -> bool:
    return words in " ".join(running(run).values())


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_is_left_when_the_launcher_ends(children: dict[str, Child], name: str) -> None:
    program, run = children[name]
    for expected in ("local.account", "sleep 4243", "sleep 4244", "sleep 4245"):
        eventually(partial(_is_running, run, expected))
    eventually(lambda: sum("worker_template.py" in command for command in running(run).values()) > 1)
    program.send_signal(signal.Signals[name])
    program.wait(PATIENCE)
    if name == "SIGKILL":
        eventually(lambda: not running(run))
    else:
        assert not running(run)


def test_nothing_is_left_when_the_account_is_killed(children: dict[str, Child]) -> None:
    _, run = children["account"]
    (account,) = [pid for pid, command in running(run).items() if command.strip().endswith("-m local.account")]
    os.kill(account, signal.SIGKILL)
    eventually(lambda: not running(run))


def test_account_listens_on_loopback_only(account: LocalAccount) -> None:
    """The inodes of the account's sockets, looked up among the listening ones."""
    inodes = set()
    for descriptor in Path(f"/proc/{account.pid}/fd").iterdir():
        target = str(descriptor.readlink())
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{account.pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                listening.append((table, address, int(port, 16)))
    assert {(table, address) for table, address, _ in listening} == {("tcp", "0100007F")}
    assert len(listening) == 2
    assert all(port > 1024 for _, _, port in listening)


def test_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(project, "CDK", tmp_path / "node_modules" / ".bin" / "cdk")
    with pytest.raises(project.NotSetUpError, match=r"node_modules/.bin/cdk missing.*make setup"):
        project.check_set_up()
