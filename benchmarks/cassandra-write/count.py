"""Checks after the measurement whether the servers counted all writes of the drivers.

Each driver reports its writes to the first driver, which asks all servers. With the parameter ``exact`` a difference is
a failure: then no write may have been dropped. After the loss of a server, its counts are lost, too.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterable, Mapping

import server
from node import Phase, this_phase

PORT = 8779
SECONDS = 120.0


def main() -> None:
    phase = this_phase()
    own: dict[str, int] = phase.read("writes.json")
    print(f"this driver: {own}")
    if phase.rank > 0:
        tell(phase, own)
        return
    drivers = added([own, *heard(phase, len(phase.drivers) - 1)])
    counted, silent = totals_of(phase)
    servers = added(counted)
    copies = min(int(phase.parameters["replicas"]), len(phase.servers))
    print(json.dumps({"drivers": drivers, "servers": servers, "replicas": copies}))
    problems = [*silent, *differences(drivers, servers, copies)]
    print("\n".join(problems) or "the servers coordinated and applied all writes of the drivers")
    if problems and phase.parameters["exact"]:
        sys.exit("; ".join(problems))


def totals_of(phase: Phase) -> tuple[list[dict[str, int]], list[str]]:
    """Returns the counts of the servers that answer, and a sentence about each of the others."""
    counts: list[dict[str, int]] = []
    silent: list[str] = []
    for one in phase.servers:
        try:
            counts.append(server.totals(one.address))
        except server.SilentError as error:
            silent.append(f"{error}, so its counts are missing")
    return counts, silent


def added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            totals[name] = totals.get(name, 0) + count
    return totals


def differences(drivers: Mapping[str, int], servers: Mapping[str, int], copies: int) -> list[str]:
    """Returns sentences about differences. There are none if the servers coordinated each write once and applied it
    once per replica.
    """
    written, problems = drivers["writes"], []
    if servers["coordinated"] != written:
        problems.append(f"the drivers wrote {written} rows, but the servers coordinated {servers['coordinated']}")
    if servers["applied"] != copies * written:
        dropped = f"{servers['dropped']} were dropped"
        problems.append(
            f"the servers applied {servers['applied']} writes instead of {copies} times {written}: {dropped}"
        )
    return problems


def tell(phase: Phase, own: Mapping[str, int]) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            with socket.create_connection((phase.drivers[0], PORT), timeout=10) as connection:
                connection.sendall(json.dumps(own).encode())
            return
        except OSError as error:
            if time.monotonic() > until:
                sys.exit(f"cannot connect to the first driver: {error}")
            time.sleep(0.5)


def heard(phase: Phase, count: int) -> list[dict[str, int]]:
    """Receives the writes of the other drivers."""
    reports: list[dict[str, int]] = []
    with socket.create_server((phase.address, PORT), backlog=count + 1) as listening:
        listening.settimeout(SECONDS)
        while len(reports) < count:
            try:
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as stream:
                    reports.append(json.load(stream))
            except (OSError, ValueError) as error:
                sys.exit(f"only {len(reports)} of {count} other drivers reported their writes: {error}")
    return reports


if __name__ == "__main__":
    main()
