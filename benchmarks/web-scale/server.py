"""Starts, finds and asks this node's server, which outlives the script that starts it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiers
from node import Phase

FILE = "server.json"
ANSWER_SECONDS = 5.0
TAIL = 3000
"""Bytes of a log's end to print."""


@dataclass(frozen=True)
class Process:
    """A server's process. The time of its start tells it from a later process with the same id."""

    pid: int
    started: str

    @property
    def is_alive(self) -> bool:
        return bool(self.started) and started(self.pid) == self.started


def started(pid: int) -> str:
    """Returns when a process started, in ticks since the boot; empty if it does not exist or has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def start(phase: Phase) -> Process:
    """Starts the server in the background, with its log in its folder."""
    folder = folder_of(phase)
    folder.mkdir(exist_ok=True)
    if phase.role == "proxies":
        (folder / "nginx.conf").write_text(tiers.nginx_configuration(phase, folder), encoding="utf-8")
    with log(phase).open("ab") as output:
        process = subprocess.Popen(
            list(tiers.command(phase, folder)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    running = Process(process.pid, started(process.pid))
    (phase.shared / FILE).write_text(json.dumps([running.pid, running.started]), encoding="utf-8")
    return running


def started_process(phase: Phase) -> Process:
    """Returns the server that an earlier phase started."""
    pid, began = json.loads((phase.shared / FILE).read_text(encoding="utf-8"))
    return Process(int(pid), str(began))


def await_listening(phase: Phase, running: Process, seconds: float) -> None:
    """Waits until the server accepts connections. Ends the script if it does not."""
    until = time.monotonic() + seconds
    while True:
        if not running.is_alive:
            print(log_tail(phase))
            sys.exit(f"the server of the role {phase.role} has ended at its start: see the output above")
        if listens(phase.address, tiers.PORTS[phase.role]):
            return
        if time.monotonic() > until:
            print(log_tail(phase))
            sys.exit(f"the server of the role {phase.role} did not listen within {seconds:.0f} s")
        time.sleep(0.1)


def listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def counters(phase: Phase) -> Mapping[str, Any]:
    """Returns what the server has counted since its start.

    Of the application: ``{name: {"times": {microseconds: count}, "errors": count}}``. Of memcached: its statistics.
    nginx has none: an empty mapping.

    Raises:
        OSError, ValueError: it does not answer, or something else.
    """
    if phase.role == "data":
        return statistics(phase.address)
    if phase.role == "proxies":
        socket.create_connection((phase.address, tiers.PORTS["proxies"]), ANSWER_SECONDS).close()
        return {}
    connection = http.client.HTTPConnection(phase.address, tiers.PORTS[phase.role], timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/counters")
        document: dict[str, Any] = json.loads(connection.getresponse().read())
    except http.client.HTTPException as error:
        raise OSError(f"no answer in HTTP: {error!r}") from None
    finally:
        connection.close()
    return document


def statistics(address: str) -> dict[str, int]:
    """Returns the whole numbers among memcached's statistics."""
    with socket.create_connection((address, tiers.PORTS["data"]), ANSWER_SECONDS) as connection:
        connection.sendall(b"stats\r\nquit\r\n")
        with connection.makefile("r", encoding="ascii", newline="\r\n") as lines:
            words = [line.split() for line in lines]
    return {one[1]: int(one[2]) for one in words if len(one) == 3 and one[2].isdigit()}


def folder_of(phase: Phase) -> Path:
    return phase.shared / "server"


def log(phase: Phase) -> Path:
    return folder_of(phase) / "output.log"


def log_tail(phase: Phase) -> str:
    """Returns the end of what the server has written."""
    tails = []
    for path in (log(phase), folder_of(phase) / "nginx.log"):
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
                tails.append(file.read().decode(errors="replace"))
    return "\n".join(tails)
