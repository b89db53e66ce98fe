"""Creates the schema, loads the data set, and verifies it: one phase each. All runs on the nodes of the service.

Parameters: ``data_set``, ``rows``, ``value_bytes``, ``seed``; ``replicas``; ``compaction``, the class of the strategy;
``load_workers``, concurrent writes of each node.

Writes of the load wait for all replicas, so the verification of one replica covers what was loaded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import stack
from stack import Phase, cluster, this_phase


def main() -> None:
    phase = this_phase()
    {"schema": schema, "load": load, "verify": verify}[phase.name](phase)


def schema(phase: Phase) -> None:
    """Creates keyspace and table, on the first node for all."""
    if phase.rank:
        return
    replicas = min(int(phase.parameters["replicas"]), len(phase.servers))
    stack.run(
        [
            *(stack.program(phase), "schema", *stack.ring_options(phase, "ALL")),
            *("-replicas", str(replicas), "-datacenter", cluster.DATACENTER),
            *("-compaction", str(phase.parameters["compaction"])),
        ]
    )
    print(f"the schema is ready, with {replicas} copies")


def load(phase: Phase) -> None:
    """Loads this node's share of the data set."""
    described, nodes = stack.data_set(phase), len(stack.addresses(phase, "service"))
    options = [*stack.ring_options(phase, "ALL"), "-workers", str(phase.parameters["load_workers"])]
    command = [stack.program(phase), "load", *options]
    if "address" not in described:
        first, end = share(int(described["rows"]), phase.rank, nodes)
        loaded = json.loads(stack.run([*command, *generated(described, first, end)])) if end > first else {"rows": 0}
        due = end - first
    else:
        loaded, due = {"rows": 0}, 0
        for part in range(phase.rank, int(described["parts"]), nodes):
            loaded["rows"] += load_part(f"{described['address']}/{part_name(part)}", command)["rows"]
            first, end = part_rows(described, part)
            due += end - first
            print(f"part {part}: {loaded['rows']:,} rows so far", flush=True)
    if loaded["rows"] != due:
        sys.exit(f"loaded {loaded['rows']:,} rows instead of {due:,}: the data set is not as its manifest says")
    print(f"loaded {due:,} rows")


def share(rows: int, rank: int, nodes: int) -> tuple[int, int]:
    """Returns the first row of a node and the end, which is excluded."""
    return rows * rank // nodes, rows * (rank + 1) // nodes


def part_name(part: int) -> str:
    return f"part-{part:05d}.tsv"


def part_rows(described: dict[str, Any], part: int) -> tuple[int, int]:
    """Returns the first row of a part and the end, which is excluded."""
    length = int(described["rows_per_part"])
    return part * length, min((part + 1) * length, int(described["rows"]))


def generated(described: dict[str, Any], first: int, end: int) -> list[str]:
    """Returns the options of data-service that describe generated rows."""
    return [
        *("-first", str(first), "-end", str(end)),
        *("-value-bytes", str(described["value_bytes"]), "-seed", str(described["seed"])),
    ]


def load_part(address: str, command: list[str]) -> dict[str, Any]:
    """Loads an object of the bucket while it arrives. Ends the script if a part of it is missing."""
    with subprocess.Popen(["aws", "s3", "cp", "--only-show-errors", address, "-"], stdout=subprocess.PIPE) as reading:
        answer: dict[str, Any] = json.loads(stack.run(command, reading.stdout))
    if reading.returncode:
        sys.exit(f"{address} cannot be read: aws failed with exit code {reading.returncode}")
    return answer


def verify(phase: Phase) -> None:
    """Reads the whole table, and compares number and digest of its rows with the data set's; on the first node."""
    if phase.rank:
        return
    described = stack.data_set(phase)
    expected = {"rows": described["rows"], "digest": described.get("digest") or digest(phase, described)}
    stored = json.loads(stack.run([stack.program(phase), "verify", *stack.ring_options(phase, "ONE")]))
    print(json.dumps({"expected": expected, "stored": stored}))
    if stored != expected:
        sys.exit(
            f"Cassandra has {stored['rows']:,} rows with the digest {stored['digest']}, and the data set has "
            f"{expected['rows']:,} with {expected['digest']}"
        )


def digest(phase: Phase, described: dict[str, Any]) -> str:
    """Returns the digest of generated rows, which it generates once more."""
    command = [stack.program(phase), "dataset", *generated(described, 0, int(described["rows"]))]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return str(json.loads(done.stderr)["digest"])


if __name__ == "__main__":
    main()
