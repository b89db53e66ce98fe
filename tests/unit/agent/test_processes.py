"""The processes that scripts leave, as the agent finds, halts and waits for them. Each test is a process of its own,
because it stays the parent of all that its children leave.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from infra import ROOT
from tests.patience import PATIENCE

BEGIN = """
import os, pathlib, signal, subprocess, sys, time
from agent import processes
from agent.command import Command
from agent.errors import FaultError
from agent.output import BoundedOutput

def run(text, seconds=300):
    command = Command(["sh", "-c", text], pathlib.Path("."), dict(os.environ), BoundedOutput())
    return command.wait(time.monotonic() + seconds).code

def eventually(probe):
    while not probe():
        time.sleep(0.01)

processes.adopt()
"""


def run(folder: Path, text: str) -> None:
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}", "PATH": "/usr/bin:/bin"}
    line = [sys.executable, "-c", BEGIN + text]
    done = subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_exit_codes_of_scripts_are_their_own_while_orphans_end(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
codes = [run("setsid sh -c 'exit 4' & exit 3") for _ in range(30)]
assert codes == [3] * 30, codes
assert [subprocess.run(["sh", "-c", "exit 5"]).returncode for _ in range(30)] == [5] * 30
assert processes.left() == []
eventually(lambda: not pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().strip())
""",
    )


def test_only_processes_of_scripts_are_listed(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
own = subprocess.Popen(["sleep", "300"])
assert run("(setsid sleep 300 & echo $! > one) ; setsid sh -c 'sleep 300 & echo $! > two; wait' &") == 0
eventually(lambda: all(pathlib.Path(name).exists() and pathlib.Path(name).read_text() for name in ("one", "two")))
listed = processes.left()
assert {int(pathlib.Path(name).read_text()) for name in ("one", "two")} < {one.pid for one in listed}, listed
assert own.pid not in {one.pid for one in listed}
assert sorted(one.name for one in listed) == ["sh", "sleep", "sleep"], listed
processes.pause()
assert {one.state for one in processes.left()} == {"T"}
processes.resume()
assert "T" not in {one.state for one in processes.left()}
processes.kill()
assert processes.left() == []
assert own.poll() is None
own.kill()
try:
    processes.pause()
except FaultError as error:
    assert str(error) == "the scripts of earlier phases have left no process running"
else:
    raise AssertionError
processes.resume()
""",
    )


def test_a_process_that_does_not_end_is_named(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
processes.LONGEST = 0.3
processes._PAUSE = 0
assert run("setsid sleep 300 &") == 0
real = os.kill
processes.os.kill = lambda pid, number: None
try:
    processes.kill()
except FaultError as error:
    assert str(error) == "there are processes that do not end, such as sleep", error
else:
    raise AssertionError
processes.os.kill = real
processes.kill()
""",
    )
