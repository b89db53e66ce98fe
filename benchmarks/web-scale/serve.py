"""Starts this node's server: nginx, a service of the application, or memcached. Tiers find each other by the roster."""

from __future__ import annotations

import time

import server
from node import Phase

SECONDS = 60.0
"""The time in which a server must listen."""
SETTLING = 0.5
"""Seconds after which a server that cannot listen has ended."""


def main() -> None:
    phase = Phase.of_script()
    running = server.start(phase)
    server.await_listening(phase, running, SECONDS)
    time.sleep(SETTLING)
    server.await_listening(phase, running, SECONDS)  # another process may have had the port
    print(f"{phase.role}: process {running.pid} serves at {phase.address}")


if __name__ == "__main__":
    main()
