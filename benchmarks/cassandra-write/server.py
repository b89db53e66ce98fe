"""Accesses this node's server: its process, and its metrics from JMX over the HTTP of the Jolokia agent."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cluster
from node import Phase

TABLE = "org.apache.cassandra.metrics:type=Table,keyspace=keyspace1,scope=standard1,name="
REQUEST = "org.apache.cassandra.metrics:type=ClientRequest,scope={},name={}"
DROPPED = "org.apache.cassandra.metrics:type=DroppedMessage,scope={},name=Dropped"
SERVICE, PROXY = "org.apache.cassandra.db:type=StorageService", "org.apache.cassandra.db:type=StorageProxy"

SECONDS = 10.0
"""Timeout of an answer."""


class SilentError(Exception):
    """A server did not answer."""


class RefusedError(Exception):
    """A server answered with an error; the requested value may not exist yet."""


def ask(address: str, questions: Sequence[dict[str, Any]], seconds: float = SECONDS) -> list[Any]:
    """Sends all questions to a server in one request, and returns the answers in order.

    Raises:
        SilentError: there was no answer.
        RefusedError: a question has no answer.
    """
    request = urllib.request.Request(
        f"http://{address}:{cluster.AGENT_PORT}/jolokia/",
        json.dumps(list(questions)).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=seconds) as answer:
            answers = json.load(answer)
    except (OSError, ValueError) as error:
        raise SilentError(f"no answer from {address}: {error}") from None
    for question, one in zip(questions, answers):
        if one.get("status") != 200:
            raise RefusedError(f"{address}: {question['mbean']}: {one.get('error', one.get('status'))}")
    return [one["value"] for one in answers]


def attributes(mbean: str, *names: str) -> dict[str, Any]:
    """Returns a question whose answer maps these names to their values."""
    return {"type": "read", "mbean": mbean, "attribute": list(names)}


def count(mbean: str) -> dict[str, Any]:
    return {"type": "read", "mbean": mbean, "attribute": "Count"}


def buckets(mbean: str) -> dict[str, Any]:
    """Returns a question whose answer is the number of values in each bucket since the server started."""
    return {"type": "exec", "mbean": mbean, "operation": "values"}


@dataclass(frozen=True)
class Ring:
    """The ring as a server sees it.

    Attributes:
        live: addresses of reachable servers.
        moving: addresses of servers that join, leave, move or are unreachable.
        schemas: number of servers by schema version.
    """

    mode: str
    live: frozenset[str]
    moving: frozenset[str]
    schemas: dict[str, int]

    def missing(self, servers: Sequence[cluster.Server]) -> str | None:
        """Returns what prevents the ring from being up and normal with one schema; None if nothing does."""
        addresses = {server.address for server in servers}
        if self.mode != "NORMAL":
            return f"the server is {self.mode}"
        if absent := sorted((addresses - self.live) | (addresses & self.moving)):
            return f"{len(absent)} of {len(addresses)} servers are not up and normal: {', '.join(absent[:5])}"
        if strange := sorted(self.live - addresses):
            return f"servers of another ring are connected: {', '.join(strange[:5])}"
        return None if len(self.schemas) == 1 else f"there are {len(self.schemas)} versions of the schema"


def ring(address: str) -> Ring:
    """Reads the ring. Raises SilentError or RefusedError."""
    names = ("OperationMode", "LiveNodes", "UnreachableNodes", "JoiningNodes", "LeavingNodes", "MovingNodes")
    service, schemas = ask(address, [attributes(SERVICE, *names), attributes(PROXY, "SchemaVersions")])
    moving = {one for name in names[2:] for one in service[name]}
    versions = {version: len(hosts) for version, hosts in schemas["SchemaVersions"].items()}
    return Ring(service["OperationMode"], frozenset(service["LiveNodes"]), frozenset(moving), versions)


TOTALS = {
    "coordinated": f"{TABLE}CoordinatorWriteLatency",
    "applied": f"{TABLE}WriteLatency",
    "timeouts": REQUEST.format("Write", "Timeouts"),
    "unavailables": REQUEST.format("Write", "Unavailables"),
    "failures": REQUEST.format("Write", "Failures"),
    "dropped": DROPPED.format("MUTATION"),
    "reads_coordinated": f"{TABLE}CoordinatorReadLatency",
    "reads_answered": f"{TABLE}ReadLatency",
    "read_timeouts": REQUEST.format("Read", "Timeouts"),
    "read_unavailables": REQUEST.format("Read", "Unavailables"),
    "read_failures": REQUEST.format("Read", "Failures"),
    "reads_dropped": DROPPED.format("READ"),
}
"""A server's counters: writes coordinated for drivers, writes applied as a replica, and errors; then those of reads."""


def totals(address: str) -> dict[str, int]:
    """Reads the counters since the server started. Raises SilentError or RefusedError."""
    return dict(zip(TOTALS, ask(address, [count(mbean) for mbean in TOTALS.values()])))


@dataclass(frozen=True)
class Process:
    """A process from an earlier phase. The start time identifies it, because ids are reused."""

    pid: int
    began: str

    @property
    def is_alive(self) -> bool:
        return began(self.pid) == self.began


def began(pid: int) -> str | None:
    """Returns the start time of a process in kernel ticks; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def started(phase: Phase) -> Process:
    """Returns the server process from an earlier phase."""
    return Process(**phase.read("server.json"))


def keep_started(phase: Phase, pid: int) -> Process:
    process = Process(pid, began(pid) or "")
    phase.keep("server.json", {"pid": process.pid, "began": process.began})
    return process


def log_tail(phase: Phase, lines: int = 12) -> str:
    """Returns the end of the server's logs."""
    tail = []
    for name in ("system.log", "console.log"):
        path = phase.shared / "logs" / name
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 8192))
                tail += file.read().decode("utf-8", "replace").splitlines()[-lines:]
    return "\n".join(tail)


def await_seeds(phase: Phase, until: float) -> None:
    """Waits until all seeds are up and normal: any other server ends if no seed answers.

    Args:
        until: a time of the monotonic clock, at which the script ends.
    """
    waited_for = cluster.seeds(phase.servers)
    while waited_for:
        if time.monotonic() > until:
            raise SystemExit(f"the seeds {', '.join(waited_for)} are not up and normal")
        time.sleep(1)
        waited_for = [address for address in waited_for if mode(address) != "NORMAL"]


def mode(address: str) -> str:
    """Returns a server's operation mode; empty while it does not answer."""
    try:
        (service,) = ask(address, [attributes(SERVICE, "OperationMode")], seconds=5)
    except (SilentError, RefusedError):
        return ""
    return str(service["OperationMode"])


def await_ring(phase: Phase, until: float) -> Ring:
    """Waits until this server sees all others up and normal with one schema, and returns the ring. Ends the script on
    failure.

    Args:
        until: a time of the monotonic clock.
    """
    process, why = started(phase), "the server has not answered yet"
    while time.monotonic() < until:
        if not process.is_alive:
            print(log_tail(phase))
            raise SystemExit("Cassandra has ended: see the end of its log above")
        try:
            seen = ring(phase.address)
        except (SilentError, RefusedError) as error:
            why = str(error)
        else:
            why = seen.missing(phase.servers) or ""
            if not why:
                return seen
        time.sleep(1)
    print(log_tail(phase))
    raise SystemExit(f"the ring is incomplete: {why}")
