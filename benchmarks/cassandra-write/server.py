"""The server of this node: its process, and what it says of itself over JMX, by the HTTP of the agent beside it."""

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
REQUEST = "org.apache.cassandra.metrics:type=ClientRequest,scope=Write,name="
DROPPED = "org.apache.cassandra.metrics:type=DroppedMessage,scope=MUTATION,name=Dropped"
SERVICE, PROXY = "org.apache.cassandra.db:type=StorageService", "org.apache.cassandra.db:type=StorageProxy"

SECONDS = 10.0
"""For an answer."""


class SilentError(Exception):
    """A server did not answer."""


class RefusedError(Exception):
    """A server's answer is an error; what was asked for may not be there yet."""


def ask(address: str, questions: Sequence[dict[str, Any]], seconds: float = SECONDS) -> list[Any]:
    """What a server answers, in the order of the questions, all in one request.

    Raises:
        SilentError: there was no answer.
        RefusedError: one of them has none.
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
        raise SilentError(f"{address} does not answer: {error}") from None
    for question, one in zip(questions, answers):
        if one.get("status") != 200:
            raise RefusedError(f"{address}: {question['mbean']}: {one.get('error', one.get('status'))}")
    return [one["value"] for one in answers]


def attributes(mbean: str, *names: str) -> dict[str, Any]:
    """A question: its answer is a mapping of these to their values."""
    return {"type": "read", "mbean": mbean, "attribute": list(names)}


def count(mbean: str) -> dict[str, Any]:
    return {"type": "read", "mbean": mbean, "attribute": "Count"}


def buckets(mbean: str) -> dict[str, Any]:
    """A question: its answer is how many values were in each bucket, since the server began."""
    return {"type": "exec", "mbean": mbean, "operation": "values"}


@dataclass(frozen=True)
class Ring:
    """The ring as a server sees it.

    Attributes:
        live: addresses of those it can talk to.
        moving: of those that are not (only) in their place: joining, leaving or moving, or not to be reached.
        schemas: versions of the schema, by how many servers have each.
    """

    mode: str
    live: frozenset[str]
    moving: frozenset[str]
    schemas: dict[str, int]

    def missing(self, servers: Sequence[cluster.Server]) -> str | None:
        """What it lacks to be up and normal on all servers, with one schema; None when it lacks nothing."""
        addresses = {server.address for server in servers}
        if self.mode != "NORMAL":
            return f"it is {self.mode}"
        if absent := sorted((addresses - self.live) | (addresses & self.moving)):
            return f"{len(absent)} of {len(addresses)} servers are not up and normal: {', '.join(absent[:5])}"
        if strange := sorted(self.live - addresses):
            return f"there are servers of another ring: {', '.join(strange[:5])}"
        return None if len(self.schemas) == 1 else f"there are {len(self.schemas)} versions of the schema"


def ring(address: str) -> Ring:
    """Raises SilentError or RefusedError."""
    names = ("OperationMode", "LiveNodes", "UnreachableNodes", "JoiningNodes", "LeavingNodes", "MovingNodes")
    service, schemas = ask(address, [attributes(SERVICE, *names), attributes(PROXY, "SchemaVersions")])
    moving = {one for name in names[2:] for one in service[name]}
    versions = {version: len(hosts) for version, hosts in schemas["SchemaVersions"].items()}
    return Ring(service["OperationMode"], frozenset(service["LiveNodes"]), frozenset(moving), versions)


TOTALS = {
    "coordinated": f"{TABLE}CoordinatorWriteLatency",
    "applied": f"{TABLE}WriteLatency",
    "timeouts": f"{REQUEST}Timeouts",
    "unavailables": f"{REQUEST}Unavailables",
    "failures": f"{REQUEST}Failures",
    "dropped": DROPPED,
}
"""What a server counts: writes it has coordinated for drivers, and those it has applied as a replica; and errors."""


def totals(address: str) -> dict[str, int]:
    """Since the server began; raises SilentError or RefusedError."""
    return dict(zip(TOTALS, ask(address, [count(mbean) for mbean in TOTALS.values()])))


@dataclass(frozen=True)
class Process:
    """A process that an earlier phase has started: its number alone may be another's by now."""

    pid: int
    began: str

    @property
    def is_alive(self) -> bool:
        return began(self.pid) == self.began


def began(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None when there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def started(phase: Phase) -> Process:
    """The server that an earlier phase has started."""
    return Process(**phase.read("server.json"))


def keep_started(phase: Phase, pid: int) -> Process:
    process = Process(pid, began(pid) or "")
    phase.keep("server.json", {"pid": process.pid, "began": process.began})
    return process


def log_tail(phase: Phase, lines: int = 12) -> str:
    """The end of what the server has had to say."""
    tail = []
    for name in ("system.log", "console.log"):
        path = phase.shared / "logs" / name
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 8192))
                tail += file.read().decode("utf-8", "replace").splitlines()[-lines:]
    return "\n".join(tail)


def await_seeds(phase: Phase, until: float) -> None:
    """Until all seeds are in their place: a server that is not one of them ends when it finds none that answers.

    Args:
        until: a reading of the monotonic clock; the script ends when it comes.
    """
    waited_for = cluster.seeds(phase.servers)
    while waited_for:
        if time.monotonic() > until:
            raise SystemExit(f"the seeds {', '.join(waited_for)} are not up and normal")
        time.sleep(1)
        waited_for = [address for address in waited_for if mode(address) != "NORMAL"]


def mode(address: str) -> str:
    """What a server is doing; empty while it does not answer."""
    try:
        (service,) = ask(address, [attributes(SERVICE, "OperationMode")], seconds=5)
    except (SilentError, RefusedError):
        return ""
    return str(service["OperationMode"])


def await_ring(phase: Phase, until: float) -> Ring:
    """The ring once this server sees all others up and normal, with one schema; ends the script when that fails.

    Args:
        until: a reading of the monotonic clock.
    """
    process, why = started(phase), "it has not answered yet"
    while time.monotonic() < until:
        if not process.is_alive:
            print(log_tail(phase))
            raise SystemExit("Cassandra has ended: see what it last said above")
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
    raise SystemExit(f"the ring is not whole: {why}")
