"""Plays amazon-ssm-agent inside an instance: takes commands from a folder, runs each in a worker, and reports.

The folder HOME/ssm takes the place of the connection to Systems Manager, so that kernels have it, too:

  ping            when the agent was last alive, in seconds
  inbox/ID.json   a command that is delivered: {"steps": [{"name", "script", "timeout", "stops"}]}
  cancel/ID       a command that must end
  outbox/ID.json  the agent's report: {"status", "steps": [{"name", "status", "code", "stdout", "stderr", "began",
                  "ended"}]}
  current/ID/     the agent's own state of a command
  kill-shell/ID   kills the shell of a command: tests create it

As amazon-ssm-agent 3.3: a worker is a process of its own, and outlives the agent, which finds it again when it starts.
A cancel is SIGKILL to the process group of the shell, so no trap of a document runs; so is a timeout of the execution.
At most five commands run at a time. What a reboot has interrupted runs again, at most 15 times.

    ssm_agent.py [small]      the agent; small: on this machine, where stress-ng takes almost nothing; else in a kernel
    ssm_agent.py worker ID    a worker

It uses only the standard library.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MARKER = Path("/.instance")
MOST_COMMANDS, MOST_RUNS = 5, 15
_POLL_SECONDS, _PING_SECONDS = 0.1, 1.0
_SIZES = {"stdout": 24_000, "stderr": 8_000}
"""The most characters that Systems Manager keeps of an output."""
_KILLED = 137
_FINAL = ("Success", "Failed", "TimedOut", "Cancelled")

Command = dict[str, Any]


def put(path: Path, value: Any) -> None:
    """Writes a JSON document at once: who reads it never sees a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(value), encoding="utf-8")
    part.rename(path)


def read(path: Path) -> Any:
    """Returns a JSON document; None if it does not exist."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def environment(small: bool) -> dict[str, str]:
    """Returns the environment of documents. `small`: as for the agent."""
    programs = [HERE / "bin", HERE / ("small" if small else "kernel")]
    return {**os.environ, "PATH": ":".join([*map(str, programs), os.environ["PATH"]])}


class Agent:
    """The agent. `home`: the instance's folder."""

    def __init__(self, home: Path, small: bool) -> None:
        self._ssm = home / "ssm"
        self._environment = environment(small)
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._pinged = 0.0
        for name in ("inbox", "cancel", "outbox", "current", "kill-shell"):
            (self._ssm / name).mkdir(exist_ok=True)

    def run(self) -> None:
        """Runs until the process ends."""
        for state in sorted((self._ssm / "current").iterdir()):
            self._find_again(state)
        while True:
            if time.monotonic() - self._pinged >= _PING_SECONDS:
                put(self._ssm / "ping", time.time())
                self._pinged = time.monotonic()
            self._report()
            self._take()
            time.sleep(_POLL_SECONDS)

    def _find_again(self, state: Path) -> None:
        """Continues with a command of an earlier agent: its worker lives, or has failed, or the instance was booted."""
        last = read(state / "worker") or {"boot": "", "pid": 0, "runs": 0}
        if (state / "result.json").exists():
            return
        if last["boot"] != boot_id():
            self._work(state, last["runs"] + 1)
        elif not _is_worker(last["pid"], state.name):
            put(state / "result.json", {"status": "Failed", "steps": []})

    def _take(self) -> None:
        for message in sorted((self._ssm / "inbox").glob("*.json")):
            cancelled = (self._ssm / "cancel" / message.stem).exists()
            if not cancelled and len(list((self._ssm / "current").iterdir())) >= MOST_COMMANDS:
                continue
            state = self._ssm / "current" / message.stem
            state.mkdir()
            message.rename(state / "message.json")
            if cancelled:
                put(state / "result.json", {"status": "Cancelled", "steps": []})
            else:
                self._work(state, 1)

    def _work(self, state: Path, runs: int) -> None:
        if runs > MOST_RUNS:
            put(state / "result.json", {"status": "Failed", "steps": []})
            return
        words = [sys.executable, "-IS", __file__, "worker", state.name]
        worker = subprocess.Popen(words, env=self._environment, stdin=subprocess.DEVNULL, start_new_session=True)
        self._workers[state.name] = worker
        put(state / "worker", {"boot": boot_id(), "pid": worker.pid, "runs": runs})
        put(self._ssm / "outbox" / f"{state.name}.json", {"status": "InProgress", "steps": []})

    def _report(self) -> None:
        for command, worker in list(self._workers.items()):
            state = self._ssm / "current" / command
            if worker.poll() is not None:
                del self._workers[command]
                if state.exists() and not (state / "result.json").exists():
                    put(state / "result.json", {"status": "Failed", "steps": []})
        for state in list((self._ssm / "current").iterdir()):
            if result := read(state / "result.json"):
                put(self._ssm / "outbox" / f"{state.name}.json", result)
                for left in state.iterdir():
                    left.unlink()
                state.rmdir()


def _is_worker(pid: int, command: str) -> bool:
    try:
        return command.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


class Worker:
    """Runs the steps of one command."""

    def __init__(self, ssm: Path, command: str) -> None:
        self._state = ssm / "current" / command
        self._cancel, self._kill = ssm / "cancel" / command, ssm / "kill-shell" / command

    def run(self) -> None:
        """Runs all steps, and writes the result."""
        message = read(self._state / "message.json")
        steps: list[Command] = []
        status = "Success"
        for step in message["steps"]:
            if status in ("Cancelled", "TimedOut") or (status == "Failed" and steps[-1]["stops"]):
                break
            steps.append(self._step(step, len(steps)) | {"stops": step["stops"]})
            if steps[-1]["status"] != "Success":
                status = steps[-1]["status"]
        put(self._state / "result.json", {"status": status, "steps": steps})

    def _step(self, step: Command, number: int) -> Command:
        paths = {name: self._state / f"{name}.{number}" for name in _SIZES}
        began, status = time.time(), ""
        with paths["stdout"].open("wb") as stdout, paths["stderr"].open("wb") as stderr:
            words = ["/bin/sh", "-c", step["script"]]
            shell = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
            )
            while True:
                try:
                    code = shell.wait(_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    status = status or self._interrupt(shell.pid, began + step["timeout"])
        code = _KILLED if code < 0 else code
        return {
            "name": step["name"],
            "status": status or ("Failed" if code else "Success"),
            "code": code,
            "began": began,
            "ended": time.time(),
            **{name: paths[name].read_text(encoding="utf-8", errors="replace")[:size] for name, size in _SIZES.items()},
        }

    def _interrupt(self, shell: int, until: float) -> str:
        """Kills the process group of a shell that must end; returns the status of its step, "" if nothing changes."""
        status = "Cancelled" if self._cancel.exists() else "TimedOut" if time.time() > until else ""
        if status or self._kill.exists():
            os.killpg(shell, signal.SIGKILL)
        return status


def main() -> None:
    if not MARKER.exists():
        sys.exit("the agent of local AWS runs only inside an instance with a view of its own")
    home = Path(os.environ["HOME"])
    worker = sys.argv[1:2] == ["worker"]
    Path("/proc/self/comm").write_text("ssm-document-wo" if worker else "amazon-ssm-agen", encoding="ascii")
    if worker:
        Worker(home / "ssm", sys.argv[2]).run()
    else:
        Agent(home, small="small" in sys.argv[1:]).run()


if __name__ == "__main__":
    main()
