"""Reads a script's environment from the agent: parameters, roster and folders."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOST = 75
"""The exit code of a script whose subject is lost."""


@dataclass(frozen=True)
class Phase:
    """This phase on this node.

    Attributes:
        roster: the path of the roster, which the application reads itself.
        nodes: addresses by role and rank.
        shared: folder for files that phases leave for later phases.
        measured_from: seconds since 1970, for a measured phase.
        warm_up_seconds: load time before it.
    """

    role: str
    rank: int
    address: str
    parameters: dict[str, Any]
    roster: Path
    nodes: dict[str, list[str]]
    files: Path
    artifacts: Path
    shared: Path
    results: Path
    measured_from: float
    measured_seconds: float
    warm_up_seconds: float

    @property
    def program(self) -> Path:
        """The application for this node's processor."""
        return self.shared / "flights" / architecture()

    @property
    def jmeter(self) -> Path:
        """The folder of JMeter."""
        return self.shared / "jmeter"

    @property
    def may_change(self) -> bool:
        """Whether packages may be installed."""
        return bool(self.parameters["system"])


def architecture() -> str:
    """Returns ``x86_64`` or ``arm64``."""
    return "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"


def by_role(roster: dict[str, Any]) -> dict[str, list[str]]:
    """Returns the addresses of each role, by rank."""
    nodes: dict[str, list[str]] = {}
    for node in sorted(roster["nodes"], key=lambda node: int(node["rank"])):
        nodes.setdefault(str(node["role"]), []).append(str(node["address"]))
    return nodes


def this_phase() -> Phase:
    """Returns the phase from the script's environment."""

    def variable(name: str) -> str:
        return os.environ[f"TROOP_{name}"]

    def document(name: str) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(Path(variable(name)).read_text(encoding="utf-8"))
        return read

    return Phase(
        role=variable("ROLE"),
        rank=int(variable("RANK")),
        address=variable("ADDRESS"),
        parameters=document("PARAMETERS"),
        roster=Path(variable("ROSTER")),
        nodes=by_role(document("ROSTER")),
        files=Path(variable("FILES")),
        artifacts=Path(variable("ARTIFACTS")),
        shared=Path(variable("SHARED")),
        results=Path(variable("RESULTS")),
        measured_from=float(variable("MEASURED_FROM") or 0),
        measured_seconds=float(variable("MEASURED_SECONDS") or 0),
        warm_up_seconds=float(variable("WARM_UP_SECONDS") or 0),
    )
