"""Holds a process that has imported the AWS SDK, of which the workers of functions are copies.

Its arguments are a socket, and a JSON list of the entries of ``sys.path``. For each message ``{"script", "cwd",
"environment"}`` with three open files, it answers the process id of a copy that has these files as stdin, stdout and
stderr, and runs the script. It ends with the account, at the end of the socket. It must stay single-threaded, because
a copy has only the thread that forked. It imports nothing that a function brings along, so that a package that is
missing from a layer stays missing.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import runpy
import signal
import socket
import struct
import sys
import types
from pathlib import Path
from typing import Any

CLIENTS = ("autoscaling", "cloudwatch", "dynamodb", "ec2", "events", "lambda", "s3", "sns", "sqs", "stepfunctions")
"""The services whose models most functions read. A copy reads others itself."""


def _import_sdk() -> None:
    """Imports the AWS SDK, and keeps what it reads: parsing models takes longer than importing the SDK."""
    import boto3

    runpy.run_path(str(Path(__file__).with_name("sdk_cache.py")))
    session: Any = boto3.Session(region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
    for name in CLIENTS:
        session.client(name)


def _run(script: str, cwd: str, environment: dict[str, str], files: list[int]) -> None:
    """Becomes a worker; returns when its script ends."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, max(files) + 1)
    for one in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/comm").write_text(environment.get("POWERTOOLS_SERVICE_NAME", "function"), encoding="utf-8")
    sys.argv = [script]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    exec(compile(Path(script).read_text(encoding="utf-8"), script, "exec"), vars(module))
    sys.stdout.flush()


def _receive(accounts: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns the next message and its files; ends the process at the end of the socket."""
    head, files, _, _ = socket.recv_fds(accounts, 4, 3)
    if not head:
        os._exit(0)
    while len(head) < 4:
        head += accounts.recv(4 - len(head))
    (length,) = struct.unpack(">I", head)
    body = io.BytesIO()
    while body.tell() < length:
        body.write(accounts.recv(length - body.tell()))
    message: dict[str, Any] = json.loads(body.getvalue())
    return message, files


def _reap(_number: int, _frame: Any) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    accounts = socket.socket(fileno=int(sys.argv[1]))
    sys.path[:] = json.loads(sys.argv[2])
    _import_sdk()
    gc.freeze()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)  # it ends with the account, which may still need workers
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        message, files = _receive(accounts)
        pid = os.fork()
        if not pid:
            try:
                accounts.close()
                _run(message["script"], message["cwd"], message["environment"], files)
            except Exception:  # noqa: BLE001 - as the interpreter
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(0)
        for file in files:
            os.close(file)
        accounts.sendall(struct.pack(">I", pid))


if __name__ == "__main__":
    main()
