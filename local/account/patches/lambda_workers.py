"""Starts the workers of functions as copies of a process that has imported the AWS SDK.

This is not a difference from AWS, but saves time: the SDK and its models take most of a worker's start.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import IO, Any

from ministack.core import lambda_runtime

from local.account import worker_template


class Template:
    """The process of which workers are copies. It starts with the first worker."""

    def __init__(self, path: list[str]) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def copy(self, script: str, cwd: str, environment: dict[str, str], files: list[int]) -> int:
        """Starts a copy that runs a script with these open files; returns its process id."""
        message = json.dumps({"script": script, "cwd": cwd, "environment": environment}).encode()
        with self._lock:
            own = self._socket = self._socket or self._start()
            socket.send_fds(own, [struct.pack(">I", len(message))], files)
            own.sendall(message)
            answer = own.recv(4, socket.MSG_WAITALL)
        if len(answer) < 4:
            raise RuntimeError("the process that starts workers has ended: see the account's log")
        return int(struct.unpack(">I", answer)[0])

    def _start(self) -> socket.socket:
        mine, its = socket.socketpair()
        with its:
            words = [sys.executable, "-I", worker_template.__file__, str(its.fileno()), json.dumps(self._path)]
            subprocess.Popen(words, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)
        return mine


class Copy:
    """A worker, with what MiniStack uses of a Popen. Its exit code is unknown: the template's kernel collects it."""

    def __init__(self, template: Template, script: str, cwd: str, environment: dict[str, str]) -> None:
        self._handle = -1
        (its_in, mine_in), (mine_out, its_out), (mine_err, its_err) = os.pipe(), os.pipe(), os.pipe()
        try:
            self.pid = template.copy(script, cwd, environment, [its_in, its_out, its_err])
        finally:
            for one in (its_in, its_out, its_err):
                os.close(one)
        self.stdin: IO[str] = os.fdopen(mine_in, "w", buffering=1, encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(mine_out, encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(mine_err, encoding="utf-8")
        self.returncode: int | None = None
        with contextlib.suppress(ProcessLookupError):  # it has ended
            self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Returns 0 if the worker has ended, else None."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Waits until the worker has ended.

        Raises:
            TimeoutExpired: it has not ended in time.
        """
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return 0

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _ended(self, timeout: float | None) -> int | None:
        if self._handle >= 0 and self.returncode is None:
            ends = select.poll()
            ends.register(self._handle, select.POLLIN)
            if not ends.poll(None if timeout is None else timeout * 1000):
                return None
        self.returncode = 0
        return 0

    def __del__(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)


def apply(path: list[str]) -> None:
    """Replaces the start of Python's workers.

    Args:
        path: entries of ``sys.path`` with which functions run.
    """
    template = Template(path)

    def popen(words: list[str], *, cwd: Any = None, env: Any = None, **more: Any) -> Any:
        if words[0] != sys.executable or Path(words[-1]).name != "_worker.py":
            return subprocess.Popen(words, cwd=cwd, env=env, **more)
        return Copy(template, words[-1], str(cwd), dict(env))

    lambda_runtime.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": popen})
