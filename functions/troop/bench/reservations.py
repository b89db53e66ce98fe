"""How many nodes each open run or standing fleet holds of those that the deployment allows in total."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reservations:
    """The reservations at one moment.

    Attributes:
        nodes: by run.
        version: grows with each change, so that a write can require that nothing has changed since the read.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    version: int = 0

    def others(self, run: str) -> dict[str, int]:
        """Lists what other runs hold."""
        return {other: nodes for other, nodes in self.nodes.items() if other != run}

    def unknown(self, runs: Collection[str]) -> list[str]:
        """Lists the holders that are not among ``runs``."""
        return sorted(set(self.nodes) - set(runs))
