"""Shares what the scripts need: the roles of this stack, the program data-service, and the ring of cassandra-write.

The modules that run a ring belong to the benchmark cassandra-write. On nodes, they are artifacts of this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

sys.path.append(os.environ.get("TROOP_ARTIFACTS", str(Path(__file__).parent.parent / "cassandra-write")))

import cluster
import install
import server
import start
from node import LOST, Phase, this_phase
from server import RefusedError, SilentError

__all__ = ["LOST", "Phase", "RefusedError", "SilentError", "cluster", "install", "server", "start", "this_phase"]

SERVICE_PORT, CACHE_PORT = 8080, 11211
KEYSPACE = TABLE = "items"
DATA_SET = "data-set.json"
"""The description of the data set, on each node that needs it."""


def addresses(phase: Phase, role: str) -> list[str]:
    """Returns the addresses of the nodes of a role, by rank; none if this stack lacks the role."""
    nodes = [node for node in phase.roster["nodes"] if node["role"] == role]
    return [str(node["address"]) for node in sorted(nodes, key=lambda node: int(node["rank"]))]


def with_port(hosts: list[str], port: int) -> str:
    return ",".join(f"{host}:{port}" for host in hosts)


def program(phase: Phase) -> str:
    """Returns the path of the program data-service."""
    return str(phase.artifacts / "data-service")


def ring_options(phase: Phase, consistency: str) -> list[str]:
    """Returns the options of data-service that say how to reach Cassandra."""
    return [
        *("-cassandra", ",".join(cluster.seeds(phase.servers)), "-keyspace", KEYSPACE, "-consistency", consistency),
        *("-cassandra-timeout", f"{int(phase.parameters['write_timeout_ms']) + 1000}ms"),
    ]


def data_set(phase: Phase) -> dict[str, Any]:
    """Returns the description of the data set, which the phase ``install`` has stored."""
    stored: dict[str, Any] = phase.read(DATA_SET)
    return stored


def run(command: list[str], stdin: IO[bytes] | None = None) -> str:
    """Runs a command and returns its output. Ends the script if it fails."""
    done = subprocess.run(command, stdin=stdin or subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.stderr:
        print(done.stderr[-20_000:], end="")
    if done.returncode:
        sys.exit(f"{Path(command[0]).name} {command[1]} failed with exit code {done.returncode}")
    return done.stdout


def launch(phase: Phase, command: list[str], log: str) -> int:
    """Starts a program that outlives the script, and returns its process id."""
    logs = phase.shared / "logs"
    logs.mkdir(exist_ok=True)
    with (logs / log).open("wb") as console:
        process = subprocess.Popen(
            command,
            cwd=phase.shared,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # otherwise the script's time limit would end it
        )
    return process.pid
