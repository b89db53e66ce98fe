"""Runs the user data of instances, and ensures that no process of the account outlives it.

It is a small, single-threaded process, so that starting an instance is cheap and the kernel's parent-death signal is
reliable (it follows the thread that forked). It imports only the standard library and the networks of instances. Its
argument is the account's process id. It reads and writes JSON lines:

  stdin   {"op": "start", "id", "address", "directory", "environment", "network", "kernel", "managed"}
          {"op": "stop", "id"}
  stdout  {"event": "ready", "id"} · {"event": "exited", "id", "code"} · {"event": "off", "id", "code"}
          {"event": "stopped", "id"}

The user data is the file `user-data` in the instance's directory. An instance is ready once its user data has started,
or, if the user data mentions READY_FILE, once the file named by that variable exists. As on EC2, user data that ends
does not end the instance, unless the file `off` in its directory says that the instance has turned itself off. At the
end of its stdin, the runner waits for the end of the account. Then it kills every process with the account's mark in
its environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from . import kernels
from .network import NetworkError, Networks, enter

MARK = "TROOP_LOCAL_RUN"
OFF_FILE = "off"
"""In an instance's directory: its user data, or its kernel, ends because the instance has turned itself off."""
_PR_SET_PDEATHSIG = 1
_END_SECONDS = 20
"""Seconds in which the account and killed processes must end, also on a busy machine."""
_CONSOLE_LIMIT = 1 << 20
_CONSOLE_TAIL = 1 << 18
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_prctl = ctypes.CDLL(None, use_errno=True).prctl


_STARTING = "id", "address", "directory", "environment", "network", "kernel", "managed"
_OWN_VIEW = (
    *("unshare", "--mount", "--pid", "--fork", "--kill-child", sys.executable, "-IS"),
    str(Path(__file__).with_name("inside") / "room.py"),
)
"""Runs the user data of an instance that Systems Manager manages."""
_OPEN_FILES = 1024
"""The soft limit of open files, as for a process that systemd starts on EC2."""


def _begin_as_on_ec2(namespace: int | None) -> None:
    """Runs in the new process: makes it end with its parent, sets the limits of systemd, and enters its network."""
    if namespace is not None:
        enter(namespace)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft > _OPEN_FILES or soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, most))


@dataclass
class Running:
    """The process of one instance, with its expected events."""

    process: subprocess.Popen[bytes] | None
    directory: Path
    ready: bool = False
    exited: bool = False


class Runner:
    def __init__(self) -> None:
        self.instances: dict[str, Running] = {}
        self.networks = Networks()

    def start(
        self,
        instance_id: str,
        address: str,
        directory: str,
        more: dict[str, str],
        network: dict[str, Any] | None,
        kernel: bool,
        managed: bool,
    ) -> None:
        home = Path(directory)
        script = home / "user-data"
        needs_file = b"READY_FILE" in script.read_bytes()
        environment = {
            **more,
            "PATH": f"{more['PATH']}:{_SYSTEM_PATH}:{Path(sys.base_prefix) / 'bin'}",
            "HOME": directory,
            "LANG": "C.UTF-8",
            "INSTANCE_ID": instance_id,
            "INSTANCE_IP": address,
            "READY_FILE": str(home / "ready"),
            MARK: _mark_of(instance_id),
        }
        with (home / "console.log").open("ab") as console:
            try:
                line, namespace = [*_OWN_VIEW, "small"] if managed else [str(script)], None
                if network:
                    namespace = self.networks.add(instance_id, address, **network, kernel=kernel)
                if network and kernel:
                    line = kernels.command(home, address, environment, network["doors"], managed)
                process = subprocess.Popen(
                    line,
                    cwd=directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=partial(_begin_as_on_ec2, namespace),
                )
            except NetworkError as error:
                console.write(f"the instance has no network: {error}\n".encode())
                self.instances[instance_id] = Running(None, home, exited=True)
                _report("exited", instance_id, code=125)
                return
            except OSError as error:
                # Not a script (cloud-config, MIME parts): report it on the console; the instance never becomes ready.
                console.write(f"user data cannot be run: {error}\n".encode())
                self.instances[instance_id] = Running(None, home, exited=True)
                _report("exited", instance_id, code=126)
                return
        self.instances[instance_id] = Running(process, home, ready=not needs_file)
        if not needs_file:
            _report("ready", instance_id)

    def stop(self, instance_id: str) -> None:
        running = self.instances.pop(instance_id, None)
        if running and running.process:
            _kill_group(running.process)
        # Daemons outside the process group still have the mark.
        for pid in marked_processes(_mark_of(instance_id)):
            _kill(pid)
        self.networks.remove(instance_id)
        _report("stopped", instance_id)

    def watch(self) -> bool:
        """Reports processes that became ready or ended; returns whether others are still pending."""
        for instance_id, running in self.instances.items():
            if not running.ready and (running.directory / "ready").exists():
                running.ready = True
                _report("ready", instance_id)
            if not running.exited and running.process and running.process.poll() is not None:
                running.exited = True
                event = "off" if (running.directory / OFF_FILE).exists() else "exited"
                _report(event, instance_id, code=running.process.returncode)
        return any(not running.ready and not running.exited for running in self.instances.values())

    def trim_consoles(self) -> None:
        for running in self.instances.values():
            _trim(running.directory / "console.log")

    def stop_all(self) -> None:
        for running in self.instances.values():
            if running.process:
                _kill_group(running.process)


def _mark_of(instance_id: str) -> str:
    return f"{os.environ[MARK]}/{instance_id}"


def _report(event: str, instance_id: str, **more: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps({"event": event, "id": instance_id, **more}), flush=True)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _trim(console: Path) -> None:
    # The process appends to the file, so further output follows the rest.
    if console.stat().st_size <= _CONSOLE_LIMIT:
        return
    with console.open("rb") as reading:
        reading.seek(-_CONSOLE_TAIL, os.SEEK_END)
        tail = reading.read()
    os.truncate(console, 0)
    with console.open("ab") as writing:
        writing.write(b"[earlier output dropped]\n" + tail)


def marked_processes(mark: str) -> list[int]:
    """Lists the ids of other processes whose environment has the mark or one below it."""
    ids = []
    exact, below = f"{MARK}={mark}\0".encode(), f"{MARK}={mark}/".encode()
    for entry in os.listdir("/proc"):  # noqa: PTH208 - twice as fast, and called for every termination
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = Path("/proc", entry, "environ").read_bytes() + b"\0"
        except OSError:
            continue
        if exact in environment or below in environment:
            ids.append(int(entry))
    return ids


def _sweep(account: int) -> None:
    """Waits until the account, this process's parent, has ended, then kills all its remaining processes.

    Until its end, the account may still start workers.
    """
    deadline = time.monotonic() + _END_SECONDS
    while os.getppid() == account and time.monotonic() < deadline:
        time.sleep(0.02)
    if os.getppid() == account:
        _kill(account)
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline and (left := marked_processes(os.environ[MARK])):
        for pid in left:
            _kill(pid)
        time.sleep(0.02)


def main() -> None:
    # Ctrl-C and SIGTERM reach the launcher and the account; this process ends with its stdin.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    account = int(sys.argv[1])
    runner, buffer, waiting, trimmed = Runner(), b"", False, time.monotonic()
    while True:
        readable, _, _ = select.select([0, wake_read], [], [], 0.05 if waiting else 5)
        if wake_read in readable:
            os.read(wake_read, 4096)
        if 0 in readable:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if message.pop("op") == "start":
                    runner.start(*map(message.__getitem__, _STARTING))
                else:
                    runner.stop(message["id"])
        waiting = runner.watch()
        if time.monotonic() - trimmed > 5:
            runner.trim_consoles()
            trimmed = time.monotonic()
    runner.stop_all()
    _sweep(account)


if __name__ == "__main__":
    main()
