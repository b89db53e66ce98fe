"""Sets up a node of the ring: a server joins it or takes over the place of a lost one; a driver starts its clients.

Parameters: those of the ring in the benchmark cassandra-write; and those of :mod:`clients`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(os.environ.get("TROOP_ARTIFACTS", str(Path(__file__).parents[2] / "benchmarks" / "cassandra-write")))

import cluster
import cql
import install
import server
import start
from node import Phase, this_phase
from server import RefusedError, SilentError

TABLE = "ring.rows"


def main() -> None:
    phase = this_phase()
    until = time.monotonic() + float(phase.parameters["ring_seconds"])
    if phase.role == "drivers":
        create_table(phase, until)
        start_clients(phase)
        return
    install.main()
    if predecessor(phase):
        replace(phase, until)
    else:
        start.main()


def predecessor(phase: Phase) -> str:
    """Returns the address of the server that had this rank before; empty if this is the first one."""
    (own,) = [one for one in phase.roster["nodes"] if (one["role"], one["rank"]) == (phase.role, phase.rank)]
    return str(own.get("predecessor", ""))


def replace(phase: Phase, until: float) -> None:
    """Joins the ring in place of the server that owns this rank's token, with the rows of the other replicas."""
    lost = await_loss(phase, until)
    others = [one for one in phase.servers if one.address != phase.address]
    changes = {
        "initial_token": None,  # the token comes from the lost server
        "auto_bootstrap": True,
        "seed_provider": cluster.configuration(phase.own, others, ["-"], 1)["seed_provider"],
    }
    process = server.keep_started(
        phase, start.launch(phase, changes, [f"-Dcassandra.replace_address_first_boot={lost}"])
    )
    say(f"Cassandra is process {process.pid}, at {phase.address}, in place of {lost}")
    server.await_ring(phase, until)
    await_token(phase, until)
    say("the ring is complete again, and all servers know the new owner of the token")


def await_loss(phase: Phase, until: float) -> str:
    """Returns the address of the server that owns this rank's token, once all others know that it is down.

    A predecessor may have been lost before it had joined, so the ring itself says who the owner is.
    """
    token, why = str(phase.own.token), "no other server answers"
    while time.monotonic() < until:
        answers = [one for one in (ownership(other.address) for other in phase.servers) if one]
        owners = {tokens.get(token, "") for tokens, _ in answers}
        alive = set().union(*(live for _, live in answers)) if answers else set()
        if len(owners) == 1 and "" not in owners and not owners & alive:
            return owners.pop()
        if answers:
            why = f"the server of the token {token} is still up" if owners & alive else "the others disagree about it"
        time.sleep(1)
    sys.exit(f"nobody can be replaced: {why}")


def await_token(phase: Phase, until: float) -> None:
    """Waits until all servers say that this one owns the token of its rank."""
    token = str(phase.own.token)
    while time.monotonic() < until:
        answers = [ownership(one.address) for one in phase.servers]
        if all(one is not None and one[0].get(token) == phase.address for one in answers):
            return
        time.sleep(1)
    sys.exit(f"not all servers name {phase.address} as the owner of the token {token}")


def ownership(address: str) -> tuple[dict[str, str], set[str]] | None:
    """Returns the address of each token, and the addresses of the servers that are up, as a server sees them; None if
    it does not answer.
    """
    try:
        (service,) = server.ask(
            address, [server.attributes(server.SERVICE, "TokenToEndpointMap", "LiveNodes")], seconds=3
        )
    except (SilentError, RefusedError):
        return None
    return service["TokenToEndpointMap"], set(service["LiveNodes"])


def create_table(phase: Phase, until: float) -> None:
    """Waits for the ring; the first driver creates keyspace and table, for which the others wait."""
    keyspace, _, _ = TABLE.partition(".")
    replicas = f"{{'class': 'NetworkTopologyStrategy', '{cluster.DATACENTER}': {int(phase.parameters['replicas'])}}}"
    statements = (
        f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replicas}",
        f"CREATE TABLE IF NOT EXISTS {TABLE} (key bigint PRIMARY KEY, value bigint)",
    )
    for one in phase.servers:
        while server.mode(one.address) != "NORMAL":
            if time.monotonic() > until:
                sys.exit(f"the server {one.address} is not up and normal")
            time.sleep(1)
    if phase.rank == 0:
        with cql.Connection(phase.servers[0].address, cluster.NATIVE_PORT, 30) as connection:
            for statement in statements:
                connection.query(statement)
    for one in phase.servers:  # each must know the table
        while not answers(one.address):
            if time.monotonic() > until:
                sys.exit(f"the server {one.address} does not know the table {TABLE}")
            time.sleep(1)


def answers(address: str) -> bool:
    """Checks whether a server can read the table."""
    try:
        with cql.Connection(address, cluster.NATIVE_PORT, 30) as connection:
            connection.query(f"SELECT value FROM {TABLE} WHERE key = ?", [-1])
    except (OSError, cql.RefusedError) as error:
        say(f"{address}: {error}")
        return False
    return True


def start_clients(phase: Phase) -> None:
    with (phase.shared / "clients.log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, str(phase.files / "clients.py")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    say("the clients are running")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
