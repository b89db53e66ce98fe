"""Represents how many of the deployment's nodes each open run or standing fleet reserves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reservations:
    """All reservations at one moment.

    Attributes:
        nodes: by run.
        version: increases with each change, so that a write can require that nothing has changed since the read.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    version: int = 0

    def others(self, run: str) -> dict[str, int]:
        """Returns the nodes that other runs hold, by run."""
        return {other: nodes for other, nodes in self.nodes.items() if other != run}

    def unknown(self, runs: Collection[str]) -> list[str]:
        """Lists the holders that are not among ``runs``."""
        return sorted(set(self.nodes) - set(runs))
