"""Starts this node's server: nginx, a service of the application, or memcached. Tiers find each other by the roster."""

from __future__ import annotations

import server
from node import this_phase

SECONDS = 60.0
"""The time in which a server must listen."""


def main() -> None:
    phase = this_phase()
    running = server.start(phase)
    server.await_listening(phase, running, SECONDS)
    print(f"{phase.role}: process {running.pid} serves at {phase.address}")


if __name__ == "__main__":
    main()
