"""Lists the benchmarks that steps run through the deployment, each as small as its question allows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

_OWN = Path(__file__).resolve().parent
CATALOGUE = _OWN.parents[1] / "benchmarks"
"""The folder of benchmarks, as for the other commands."""
FLEET = _OWN / "fleet"
FLEET_PRICE = Decimal("0.05")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of one attempt.

    Attributes:
        folder: the folder of its file.
        price: the most that it may cost, in US dollars.
        changes: of the file's values.
        locally: further ones on local AWS; None if local AWS cannot run it.
    """

    folder: Path
    price: Decimal
    size: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    locally: Mapping[str, Any] | None = None


NODE = Run(folder=_OWN / "node", price=Decimal("0.05"), locally={"parameters.system": False})

SPOT = Run(folder=_OWN / "spot", price=Decimal("0.08"), locally={"fleets.nodes.spot_timeout": "30s"})

CACHES = Run(
    folder=CATALOGUE / "disk-io",
    price=Decimal("0.20"),
    size="smoke",
    changes={
        "expires_after": "40m",
        "parallel": 4,
        "fleets.disks": {
            "count": 1,
            "instance_type": "c6gd.medium",  # the smallest with an instance store, for the cache
            "boot_timeout": "6m",
            "volumes": [{"device": "/dev/sdf", "size_gib": 4}, {"device": "/dev/sdg", "size_gib": 4}],
        },
        "scale": {"raid0": {"parameters.layout": "ebs-raid0", "parameters.volumes": 2}},
        "matrix": {"parameters.cache": ["none", "dm-cache-writethrough", "dm-writecache", "bcache-writethrough"]},
        "phases.prepare.timeout": "4m",
        "phases.measure.points": {"pattern": ["mixed", "zipf-read"]},
    },
)

_NODE_OF_RING = {"count": 1, "instance_type": "t4g.medium", "boot_timeout": "8m"}
CASSANDRA = Run(
    folder=CATALOGUE / "cassandra-write",
    price=Decimal("0.16"),
    size="stress",
    changes={
        "expires_after": "45m",
        "fleets": {"servers": _NODE_OF_RING, "drivers": _NODE_OF_RING},
        "scale": {},
        **{f"phases.{name}.timeout": "3m" for name in ("schema", "load", "verify", "count")},
        "phases.install.timeout": "5m",
        "phases.ring.timeout": "5m",
        "phases.measure.warm_up": "15s",
        "phases.measure.measured": "20s",
        "phases.measure.timeout": "3m",
        "traffic.cross_zone_gb": 0,  # both nodes are of one type, and so in the same zone
        "parameters.replicas": 1,
        "parameters.disk": "root",
        "parameters.keys": 20_000,
        "parameters.threads": 16,
        "parameters.rate": 300,
        "parameters.load_seconds": 10,
        "parameters.ring_delay_ms": 5000,
    },
)

BUILT = {
    "k6-arm64": "http-load/build/k6-arm64",
    "k6-x86_64": "http-load/build/k6-x86_64",
    "jmeter.tar": "http-load/build/jmeter.tar",
    "locust-arm64.tar": "http-load/build/locust-arm64.tar",
    "locust-x86_64.tar": "http-load/build/locust-x86_64.tar",
    "latte-x86_64": "cassandra-write/build/latte",
    "iozone-x86_64": "disk-io/build/iozone",
}
"""The paths of programs that people build, in the catalogue, by their names on the nodes."""


def programs() -> Run | None:
    """Returns the run of the programs that were built on this machine; None if there are none."""
    paths = {name: CATALOGUE / place for name, place in BUILT.items()}
    built = [_artifact(name, path) for name, path in paths.items() if path.is_file()]
    if not built:
        return None
    types = {"arm": "t4g.small", "x86": "t3.small"}
    phase = {"name": "programs", "roles": [*types], "script": "ask.py", "timeout": "10m", "expected": "3m"}
    fleets = {role: {"count": 1, "instance_type": kind, "boot_timeout": "8m"} for role, kind in types.items()}
    changes = {"fleets": fleets, "phases": [phase], "artifacts": built}
    return Run(folder=NODE.folder, price=PROGRAMS_PRICE, changes=changes)


PROGRAMS_PRICE = Decimal("0.05")


def _artifact(name: str, path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": name, "source": os.path.relpath(path, NODE.folder), "sha256": digest}
