"""Holds a process that has imported the AWS CLI, of which the CLI's processes on nodes are copies.

This is not a difference from AWS, but saves time: a node calls the CLI ten times or more, and its imports take most of
a call. The Python of the CLI runs it, with two arguments: a listening socket and the CLI's script. ``CLIENT`` is the
`aws` of nodes. It sends its arguments, directory, environment, open files and network to the socket, and ends with the
code that the copy answers. If it is killed, the copy ends, too. It ends with the account, which holds its stdin. It
uses only the standard library and the CLI. It must stay single-threaded, because a copy has only the forking thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any

CLIENT = """#!{python} -IS
import json, os, socket, struct, sys

try:
    server = socket.socket(socket.AF_UNIX)
    server.connect({socket!r})
    files = [0, 1, 2, os.open("/proc/self/ns/net", os.O_RDONLY)]
    os.umask(mask := os.umask(0))
    message = dict(arguments=sys.argv[1:], directory=os.getcwd(), environment=dict(os.environ), umask=mask)
    body = json.dumps(message).encode()
    socket.send_fds(server, [struct.pack(">I", len(body))], files)
    server.sendall(body)
except OSError:  # the CLI itself: a kernel of its own reaches no socket of this machine
    os.execv({cli!r}, [{cli!r}, *sys.argv[1:]])
code = server.recv(1)
sys.exit(code[0] if code else 255)
"""
"""The template of a script with a Python, the path of a socket and the CLI's script."""

_CLONE_NEWNET = 0x40000000
_OWN_NETWORK = "/proc/self/ns/net"
_COMMAND = ("s3", "presign", "s3://bucket/key", "--region", "us-east-1")
"""Calls nothing. It imports all that most calls need."""
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}


def _import_cli() -> None:
    """Imports the CLI, and keeps what it reads."""
    import awscli.clidriver
    import awscli.customizations.s3.s3handler

    runpy.run_path(str(Path(__file__).with_name("sdk_cache.py")))
    before = dict(os.environ)
    os.environ.update(_CREDENTIALS)
    with contextlib.redirect_stdout(io.StringIO()):
        awscli.clidriver.create_clidriver().main(_COMMAND)
    os.environ.clear()
    os.environ.update(before)


def _receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, files, _, _ = socket.recv_fds(client, 4, 4, socket.MSG_WAITALL)
    if len(head) < 4:
        raise EOFError
    (length,) = struct.unpack(">I", head)
    body = client.recv(length, socket.MSG_WAITALL)
    if len(body) < length:
        raise EOFError
    message: dict[str, Any] = json.loads(body)
    return message, files


def _end_with(client: socket.socket) -> None:
    def wait() -> None:
        client.recv(1)
        os._exit(255)

    threading.Thread(target=wait, daemon=True).start()


def _run(client: socket.socket, script: str) -> int:
    """Becomes the CLI's process for a client; returns its exit code."""
    import awscli.clidriver

    message, (*standard, network) = _receive(client)
    # Without privileges, nodes share the machine's network, and nobody may enter even this one.
    shared = os.path.sameopenfile(network, own := os.open(_OWN_NETWORK, os.O_RDONLY))
    if not shared and ctypes.CDLL(None, use_errno=True).setns(network, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(own)
    os.close(network)
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    for one in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(one, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(message["umask"])
    os.chdir(message["directory"])
    data = os.environ["AWS_DATA_PATH"]  # the CLI sets it at its import
    os.environ.clear()
    os.environ.update(message["environment"], AWS_DATA_PATH=data)
    sys.argv = [script, *message["arguments"]]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    _end_with(client)
    try:
        code = awscli.clidriver.main()
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code or 0)


def _reap(_number: int, _frame: Any) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    listening, script = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    _import_cli()
    gc.freeze()
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)  # it ends with the account
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        readable, _, _ = select.select([0, listening.fileno()], [], [])
        if 0 in readable:
            return
        client, _ = listening.accept()
        if os.fork():
            client.close()
            continue
        code = 255
        try:
            listening.close()
            code = _run(client, script)
        except Exception:  # noqa: BLE001 - as the interpreter
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(OSError):
                client.sendall(bytes([code & 255]))
            os._exit(code)


if __name__ == "__main__":
    main()
