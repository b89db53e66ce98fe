#!/usr/bin/env python3
"""The user data of an instance: a service that is restarted when it dies, and a client that measures its neighbours.

The service does a little of everything in each request, so that every fault shows in an answer. The client is another
kernel's view of it: what no program on the hit instance can make better than it is. It uses only the standard library.

  HOME/peers        addresses of the neighbours, one a line
  HOME/seen.json    the client's last rounds: [{"at", "address", "ms", "memory", "room", "lost"}]
  HOME/no-restart   exists: the service is not restarted
  HOME/fill         exists: the service fills the root volume to the last block
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PORT = 7000
SERVICE = "troopweb"
"""The name of the service's process."""
_RESTART_SECONDS = 3
_TIMEOUT_SECONDS = 1.5
_PAUSE_SECONDS = 0.3
_PACKETS, _PACKET_SECONDS = 10, 0.4
_HASHES = 60
_WRITTEN = bytes(64 << 10)
_ROOM = 1 << 30
"""Bytes that must be free for an answer to say that there is room."""
_MOST_ROUNDS = 60


def serve(address: str) -> None:
    """Answers requests and returns packets, until it is killed."""
    Path("/proc/self/comm").write_text(SERVICE, encoding="ascii")
    threading.Thread(target=_return_packets, args=(address,), daemon=True).start()
    with socket.create_server((address, PORT)) as listening:
        while True:
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(json.dumps(_work()).encode())


def _work() -> dict[str, Any]:
    for _ in range(_HASHES):
        hashlib.sha256(_WRITTEN).digest()
    try:
        with Path("/service-data").open("wb") as data:
            data.write(_WRITTEN)
            data.flush()
            os.fsync(data.fileno())
        room = _has_room()
    except OSError:
        room = False
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return {"memory": int(lines["MemAvailable"].split()[0]) // 1024, "room": room}


def _has_room() -> bool:
    free = os.statvfs("/")
    return free.f_bavail * free.f_frsize >= _ROOM


def _return_packets(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        packets.bind((address, PORT))
        while True:
            packet, sender = packets.recvfrom(64)
            packets.sendto(packet, sender)


def measure(home: Path) -> None:
    """Asks all neighbours in turn, for ever, and writes down what the last rounds were like."""
    rounds: list[dict[str, Any]] = []
    while True:
        peers = home / "peers"
        for address in peers.read_text(encoding="ascii").split() if peers.exists() else ():
            rounds.append({"at": time.time(), "address": address, **_ask(address), "lost": _lose(address)})
        part = home / "seen.part"
        part.write_text(json.dumps(rounds[-_MOST_ROUNDS:]), encoding="ascii")
        part.rename(home / "seen.json")
        time.sleep(_PAUSE_SECONDS)


def _ask(address: str) -> dict[str, Any]:
    began = time.monotonic()
    try:
        with socket.create_connection((address, PORT), _TIMEOUT_SECONDS) as connection:
            answer = json.loads(connection.recv(4096) or b"null") or {}
    except (OSError, ValueError):
        answer = {}
    ms = round((time.monotonic() - began) * 1000, 1) if answer else None
    return {"ms": ms, "memory": answer.get("memory"), "room": answer.get("room")}


def _lose(address: str) -> int:
    """Returns how many of ten packets do not come back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        for number in range(_PACKETS):
            with contextlib.suppress(OSError):
                packets.sendto(b"%d" % number, (address, PORT))
        came: set[bytes] = set()
        until = time.monotonic() + _PACKET_SECONDS
        with contextlib.suppress(OSError):
            while len(came) < _PACKETS and (left := until - time.monotonic()) > 0:
                packets.settimeout(left)
                came.add(packets.recv(64))
    return _PACKETS - len(came)


def main() -> None:
    home, address = Path(os.environ["HOME"]), os.environ["INSTANCE_IP"]
    if sys.argv[1:]:
        serve(address)
    threading.Thread(target=measure, args=(home,), daemon=True).start()
    threading.Thread(target=_fill_on_request, args=(home,), daemon=True).start()
    Path(os.environ["READY_FILE"]).touch()
    while True:
        if not (home / "no-restart").exists():
            subprocess.run([sys.executable, __file__, "serve"], check=False)
        time.sleep(_RESTART_SECONDS)


def _fill_on_request(home: Path) -> None:
    while not (home / "fill").exists():
        time.sleep(_PAUSE_SECONDS)
    with contextlib.suppress(OSError), Path("/everything").open("wb") as everything:
        for size in (1 << 30, 1 << 26, 1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while True:
                    os.posix_fallocate(everything.fileno(), everything.seek(0, os.SEEK_END), size)


if __name__ == "__main__":
    main()
