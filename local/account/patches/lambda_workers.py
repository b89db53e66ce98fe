"""Starts the workers of functions as copies of a process that has imported the AWS SDK.

This is not a difference from AWS, but saves time: the SDK, its models and the imports of handlers take most of a
worker's start.
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
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ministack.core import lambda_runtime

from local.account import worker_template


class Template:
    """A process of which workers are copies. It starts with the first of them.

    Args:
        start: starts the process with its end of a socket.
    """

    def __init__(self, start: Callable[[socket.socket], Any]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def copy(self, message: dict[str, Any], files: list[int]) -> int:
        """Starts a copy by a message of :mod:`worker_template`, with these open files; returns its process id."""
        encoded = json.dumps(message).encode()
        with self._lock:
            own = self._socket = self._socket or self._connect()
            socket.send_fds(own, [struct.pack(">I", len(encoded))], files)
            own.sendall(encoded)
            answer = own.recv(4, socket.MSG_WAITALL)
        if len(answer) < 4:
            raise RuntimeError("the process that starts workers has ended: see the account's log")
        return int(struct.unpack(">I", answer)[0])

    def _connect(self) -> socket.socket:
        mine, its = socket.socketpair()
        with its:
            self._start(its)
        return mine


class Templates:
    """A template with the SDK, and a copy of it for each combination of code and layers, with what handlers import.

    Args:
        path: entries of ``sys.path`` with which functions run.
    """

    def __init__(self, path: list[str]) -> None:
        self._path = path
        self._with_sdk = Template(self._start)
        self._by_code: dict[tuple[str, ...], Template] = {}
        self._lock = threading.Lock()

    def of(self, code: Path, layers: list[Path]) -> Template:
        """Returns the template of functions with this unpacked code and these layers."""
        if not (code / "handlers").is_dir():
            return self._with_sdk
        # The worker searches a layer's folder first, and its folder for Python before that.
        searched = [str(folder) for layer in layers[::-1] for folder in (layer, layer / "python")]
        message = {"code": str(code), "layers": searched}
        with self._lock:
            return self._by_code.setdefault(
                (str(code), *searched), Template(lambda its: self._with_sdk.copy(message, [its.fileno()]))
            )

    def _start(self, its: socket.socket) -> None:
        words = [sys.executable, "-I", worker_template.__file__, str(its.fileno()), json.dumps(self._path)]
        subprocess.Popen(words, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)


class Copy:
    """A worker, with what MiniStack uses of a Popen. Its exit code is unknown: the template's kernel collects it."""

    def __init__(self, template: Template, script: str, cwd: str, environment: dict[str, str]) -> None:
        self._handle = -1
        (its_in, mine_in), (mine_out, its_out), (mine_err, its_err) = os.pipe(), os.pipe(), os.pipe()
        try:
            message = {"script": script, "cwd": cwd, "environment": environment}
            self.pid = template.copy(message, [its_in, its_out, its_err])
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
    templates = Templates(path)

    def popen(words: list[str], *, cwd: Any = None, env: Any = None, **more: Any) -> Any:
        if words[0] != sys.executable or Path(words[-1]).name != "_worker.py":
            return subprocess.Popen(words, cwd=cwd, env=env, **more)
        layers = [Path(one).resolve() for one in env.get("_LAMBDA_LAYERS_DIRS", "").split(os.pathsep) if one]
        return Copy(templates.of(Path(cwd).resolve(), layers), words[-1], str(cwd), dict(env))

    lambda_runtime.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": popen})
