"""Describes this phase on this driver: the target, and what a plan gets."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troop.measure.phase_environment import Phase

SLACK = 2
"""Seconds that a plan continues after the measured time."""

_PLACE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class Node(Phase):
    """This phase on this driver."""

    @property
    def tool(self) -> str:
        return str(self.parameters["tool"])

    @property
    def plan(self) -> str:
        return str(self.parameters["plan"])

    @property
    def drivers(self) -> int:
        """The number of drivers."""
        return len(self.nodes[self.role])

    @property
    def work(self) -> Path:
        """The folder with the plan and this driver's part of the data."""
        return self.shared / "plan"

    @property
    def software(self) -> Path:
        """The folder or file of the tool."""
        return self.shared / "software"

    @property
    def measured_until(self) -> float:
        return self.measured_from + self.measured_seconds

    @property
    def seconds(self) -> int:
        """The seconds that a plan must run."""
        return math.ceil(self.warm_up_seconds + self.measured_seconds) + SLACK

    def target(self) -> tuple[str, int]:
        """Returns host and port of the target; ends the script if they are unknown."""
        name = str(self.parameters["target"])
        target = self.targets.get(name)
        if target is None:
            known = ", ".join(self.targets) or "none"
            sys.exit(f"the drivers have no target {name!r}: add drivers to its roles, or set target to one of: {known}")
        host = str(self.parameters.get("host") or target.get("host") or "")
        if not host:
            sys.exit(f"the target {name} has several addresses: set the parameter host to the one for requests")
        return host, int(target["port"])

    def values(self) -> dict[str, str]:
        """Returns the text of each name that properties and arguments can contain in braces."""
        host, port = self.target()
        simple = {name: text(value) for name, value in self.parameters.items() if not isinstance(value, (dict, list))}
        own: dict[str, Any] = {"host": host, "port": port, "rank": self.rank, "nodes": self.drivers}
        own.update(seconds=self.seconds, warm_up=self.warm_up_seconds, measured=self.measured_seconds)
        return {**simple, **{name: text(value) for name, value in own.items()}}

    def properties(self) -> dict[str, str]:
        """Returns the properties of the plan."""
        properties = self.parameters.get("properties") or {}
        values = self.values()
        return {name: filled(value, values, f"properties.{name}") for name, value in properties.items()}

    def arguments(self) -> list[str]:
        """Returns further arguments of the tool's command line."""
        values = self.values()
        return [filled(value, values, "arguments") for value in self.parameters.get("arguments") or []]


def text(value: Any) -> str:
    """Returns a parameter as a plan gets it: ``true``, ``5`` and ``a,b``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(text, value))
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)


def filled(value: Any, values: Mapping[str, str], where: str) -> str:
    """Replaces names in braces; ends the script for an unknown name."""

    def replaced(match: re.Match[str]) -> str:
        if match[1] not in values:
            sys.exit(f"{where} contains {match[0]}: known names are {', '.join(sorted(values))}")
        return values[match[1]]

    return _PLACE.sub(replaced, text(value))
