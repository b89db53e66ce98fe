"""Locates a node's files, and builds the environment of its scripts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import troop.measure
from agent.barrier import Release
from agent.boot import Boot
from agent.metadata import Identity

CODE = Path(troop.measure.__file__).parents[2]
"""The path from which scripts import :mod:`troop.measure`: the packed agent, from which Python imports like a folder.
"""


@dataclass(frozen=True)
class Place:
    """A node's home folder and identity.

    Attributes:
        data: the URL below which scripts may create objects to measure with; empty if they may not.
    """

    home: Path
    boot: Boot
    identity: Identity
    data: str = ""

    @property
    def files(self) -> Path:
        return self.home / "files"

    @property
    def artifacts(self) -> Path:
        return self.home / "artifacts"

    @property
    def shared(self) -> Path:
        """The folder for files that phases leave for later phases."""
        return self.home / "shared"

    @property
    def work(self) -> Path:
        """The folder by which the agent and a fleet's workers know of each other."""
        return self.home / "work"

    @property
    def parameters(self) -> Path:
        return self.home / "parameters.json"

    def parameters_of(self, point: str) -> Path:
        """The parameters of a point. Each has its own file, because earlier scripts may leave processes that read
        theirs.
        """
        return self.home / "points" / f"{point}.json"

    @property
    def roster(self) -> Path:
        return self.home / "roster.json"

    @property
    def current(self) -> Path:
        """The name of the phase or the point that the node does or waits for; for a report after a reboot."""
        return self.home / "phase.txt"

    def summary(self, phase: str) -> Path:
        return self.phase(phase) / "summary.json"

    @property
    def targets(self) -> Path:
        """The file of the targets that the node can reach besides S3 and its cell."""
        return self.home / "targets.json"

    def phase(self, name: str) -> Path:
        """The working folder of the script of a phase or a point."""
        return self.home / "phases" / name

    def results(self, phase: str) -> Path:
        return self.phase(phase) / "results"

    def environment(
        self, phase: str, rank: int | None, release: Release, start_at: float, fault: str | None = None
    ) -> dict[str, str]:
        """Returns the agent's environment with the variables for a script.

        Args:
            phase: the name of the phase, or of the point.
            rank: None if nodes have no rank.
            start_at: by this node's clock; the measured time begins after the warm-up that follows.
            fault: what a planned fault's script is called for; None for the script of a phase.
        """
        variables = {
            "RUN": self.boot.run,
            "CELL": self.boot.cell,
            "ROLE": self.boot.role,
            "RANK": "" if rank is None else str(rank),
            "NODE": self.identity.id,
            "ADDRESS": self.identity.address,
            "PHASE": phase.partition(".")[0],
            "POINT": "" if release.point is None else str(release.point),
            "ROSTER": str(self.roster),
            "TARGETS": str(self.targets),
            "PARAMETERS": str(self.parameters if release.point is None else self.parameters_of(phase)),
            "FILES": str(self.files),
            "ARTIFACTS": str(self.artifacts),
            "DATA": self.data,
            "SHARED": str(self.shared),
            "DEPLOYMENT": self.boot.deployment,
            "STAGE": self.boot.stage,
            "RESULTS": str(self.results(phase)),
            "WARM_UP_SECONDS": f"{release.warm_up_seconds:.6g}",
            "MEASURED_SECONDS": f"{release.measured_seconds:.6g}",
            "START_AT": f"{start_at:.6f}",
            "MEASURED_FROM": f"{start_at + release.warm_up_seconds:.6f}",
        }
        only_sometimes = {
            "STEP_SECONDS": release.step_seconds,
            "FAULT": fault,
            "REPAIR": release.repair,
            "WORK": self.work if self.work.is_dir() else None,
        }
        variables.update({name: str(value) for name, value in only_sometimes.items() if value is not None})
        path = os.pathsep.join(part for part in (str(CODE), os.environ.get("PYTHONPATH")) if part)
        return {**os.environ, **{f"TROOP_{name}": value for name, value in variables.items()}, "PYTHONPATH": path}
