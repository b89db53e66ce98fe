"""Reads a script's environment from the agent: parameters, roster and folders."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cluster
from cluster import Server

LOST = 75
"""The exit code of a script whose subject is lost."""


@dataclass(frozen=True)
class Phase:
    """This phase on this node.

    Attributes:
        shared: folder for files that phases leave for later phases.
        measured_from: seconds since 1970, for a measured phase.
        warm_up_seconds: load time before it.
    """

    name: str
    role: str
    rank: int
    address: str
    parameters: dict[str, Any]
    roster: dict[str, Any]
    files: Path
    artifacts: Path
    shared: Path
    results: Path
    measured_from: float
    measured_seconds: float
    warm_up_seconds: float = 0.0

    @property
    def servers(self) -> list[Server]:
        return cluster.servers(self.roster)

    @property
    def own(self) -> Server:
        """This server."""
        return self.servers[self.rank]

    @property
    def drivers(self) -> list[str]:
        """Addresses by rank."""
        nodes = [node for node in self.roster["nodes"] if node["role"] == "drivers"]
        return [str(node["address"]) for node in sorted(nodes, key=lambda node: int(node["rank"]))]

    @property
    def home(self) -> Path:
        """The folder of the unpacked distribution, which contains ``lib``."""
        return next((self.shared / "cassandra").glob("*/lib")).parent

    def read(self, name: str) -> Any:
        """Reads a document of an earlier phase on this node; returns None if there is none."""
        path = self.shared / name
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def keep(self, name: str, value: Any) -> None:
        (self.shared / name).write_text(json.dumps(value), encoding="utf-8")


def this_phase() -> Phase:
    """Returns the phase from the script's environment."""

    def variable(name: str) -> str:
        return os.environ[f"TROOP_{name}"]

    def document(name: str) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(Path(variable(name)).read_text(encoding="utf-8"))
        return read

    return Phase(
        name=variable("PHASE"),
        role=variable("ROLE"),
        rank=int(variable("RANK")),
        address=variable("ADDRESS"),
        parameters=document("PARAMETERS"),
        roster=document("ROSTER"),
        files=Path(variable("FILES")),
        artifacts=Path(variable("ARTIFACTS")),
        shared=Path(variable("SHARED")),
        results=Path(variable("RESULTS")),
        measured_from=float(variable("MEASURED_FROM")),
        measured_seconds=float(variable("MEASURED_SECONDS")),
        warm_up_seconds=float(variable("WARM_UP_SECONDS")),
    )
