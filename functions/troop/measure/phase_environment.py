"""Reads a script's environment, in which the agent describes the phase."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

_P = TypeVar("_P", bound="Phase")


@dataclass(frozen=True)
class Phase:
    """A phase on this node. A benchmark can derive a class with further properties.

    Attributes:
        parameters: those of the file, with those of the point.
        roster: ``{"nodes": [{"id", "role", "rank", "zone", "address", ...}]}``.
        shared: the folder for files that phases leave for later phases.
        start_at: when the load begins, seconds since 1970; in the future during ``start_up``.
        measured_from: seconds since 1970.
        measured_seconds: 0 if the phase is not measured.
        warm_up_seconds: load time before the measured time.
        targets: by name, those of the node's role.
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
    measured_from: float = 0.0
    measured_seconds: float = 0.0
    warm_up_seconds: float = 0.0
    targets: dict[str, Any] = field(default_factory=dict)
    start_at: float = 0.0

    @classmethod
    def of_script(cls: type[_P], environment: Mapping[str, str] = os.environ) -> _P:
        """Returns the phase from the script's environment. A standing fleet has no phases.

        Raises:
            KeyError: the agent did not start this script.
        """

        def document(name: str) -> dict[str, Any]:
            read: dict[str, Any] = json.loads(Path(environment[f"TROOP_{name}"]).read_text(encoding="utf-8"))
            return read

        def path(name: str) -> Path:
            return Path(environment[f"TROOP_{name}"])

        def seconds(name: str) -> float:
            return float(environment.get(f"TROOP_{name}") or 0)

        return cls(
            name=environment.get("TROOP_PHASE", ""),
            role=environment["TROOP_ROLE"],
            rank=int(environment["TROOP_RANK"]),
            address=environment.get("TROOP_ADDRESS", ""),
            parameters=document("PARAMETERS"),
            roster=document("ROSTER"),
            files=path("FILES"),
            artifacts=path("ARTIFACTS"),
            shared=path("SHARED"),
            results=path("RESULTS"),
            measured_from=seconds("MEASURED_FROM"),
            measured_seconds=seconds("MEASURED_SECONDS"),
            warm_up_seconds=seconds("WARM_UP_SECONDS"),
            targets=document("TARGETS")["targets"] if environment.get("TROOP_TARGETS") else {},
            start_at=seconds("START_AT"),
        )

    @property
    def nodes(self) -> dict[str, list[str]]:
        """The addresses of each role, by rank."""
        nodes: dict[str, list[str]] = {}
        for node in sorted(self.roster["nodes"], key=lambda node: int(node["rank"])):
            nodes.setdefault(str(node["role"]), []).append(str(node["address"]))
        return nodes


class Measured(NamedTuple):
    """The measured time of a phase.

    Attributes:
        begin: of the measured time, after the warm-up; seconds since 1970.
        seconds: its length; 0 if the phase is not measured.
        warm_up: seconds of the warm-up before it.
    """

    begin: float
    seconds: float
    warm_up: float


def measured(environment: Mapping[str, str] = os.environ) -> Measured:
    """Returns the measured time from the environment.

    Raises:
        KeyError: the agent did not start this script.
    """
    warm_up = float(environment.get("TROOP_WARM_UP_SECONDS", 0))
    return Measured(float(environment["TROOP_MEASURED_FROM"]), float(environment["TROOP_MEASURED_SECONDS"]), warm_up)


def await_start(environment: Mapping[str, str] = os.environ) -> None:
    """Waits until the load of the phase begins: a phase with ``start_up`` starts its script before."""
    time.sleep(max(0.0, float(environment.get("TROOP_START_AT") or 0) - time.time()))


def results(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder for results that the agent collects.

    Raises:
        KeyError: the agent did not start this script.
    """
    return Path(environment["TROOP_RESULTS"])
