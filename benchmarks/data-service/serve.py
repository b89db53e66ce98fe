"""Starts memcached on caches, and then the service, and waits until they answer.

Parameters: ``cache_mib``, the memory of each cache for items, 0 for most of the node's; ``on_write``, what a write does
to a cached item: ``set`` or ``delete``; ``consistency`` of the service's reads and writes; ``serve_seconds``, the
limit.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import urllib.request
from pathlib import Path

import stack
from stack import Phase, server, start, this_phase

SHARE = 0.85
"""The part of a cache's memory for items."""


def main() -> None:
    phase = this_phase()
    if phase.role == "cache":
        pid, answers = server.keep_started(phase, stack.launch(phase, cache_command(phase), "memcached.log")), has_cache
    else:
        pid, answers = server.keep_started(phase, stack.launch(phase, command(phase), "service.log")), is_healthy
    until = time.monotonic() + float(phase.parameters["serve_seconds"])
    while not answers(phase):
        if not pid.is_alive or time.monotonic() > until:
            print("".join(log.read_text(errors="replace")[-4000:] for log in (phase.shared / "logs").iterdir()))
            sys.exit(f"the {phase.role} on {phase.address} does not answer: see its log above")
        time.sleep(0.5)
    print(f"the {phase.role} on {phase.address} answers")


def cache_command(phase: Phase) -> list[str]:
    mib = int(phase.parameters["cache_mib"]) or int(start.memory_mib() * SHARE)
    return [
        *("memcached", "-l", phase.address, "-p", str(stack.CACHE_PORT), "-m", str(mib)),
        *("-c", "16384", "-t", str(max(1, os.cpu_count() or 1))),
        *(("-u", "nobody") if os.geteuid() == 0 else ()),
    ]


def command(phase: Phase) -> list[str]:
    caches = stack.addresses(phase, "cache")
    return [
        *(stack.program(phase), "serve", "-listen", f"{phase.address}:{stack.SERVICE_PORT}"),
        *stack.ring_options(phase, str(phase.parameters["consistency"])),
        *("-memcached", stack.with_port(caches, stack.CACHE_PORT), "-on-write", str(phase.parameters["on_write"])),
    ]


def has_cache(phase: Phase) -> bool:
    try:
        socket.create_connection((phase.address, stack.CACHE_PORT), timeout=5).close()
    except OSError:
        return False
    return True


def is_healthy(phase: Phase) -> bool:
    try:
        return get(phase.address, "health") == b"ok\n"
    except OSError:
        return False


def get(address: str, path: str) -> bytes:
    """Returns the answer of this node's service. Raises OSError."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{address}:{stack.SERVICE_PORT}/{path}", timeout=10) as answer:
        body: bytes = answer.read()
    return body


def has_ended(phase: Phase) -> str:
    """Returns the end of the logs if the program of this node has ended; otherwise an empty text."""
    if server.started(phase).is_alive:
        return ""
    logs = sorted(Path(phase.shared / "logs").iterdir())
    return "\n".join(log.read_text(errors="replace")[-4000:] for log in logs) or "there is no log"


if __name__ == "__main__":
    main()
