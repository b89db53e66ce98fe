"""Describes this phase on this node."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from troop.measure import phase_environment

LOST = 75
"""The exit code of a script whose subject is lost."""


class Phase(phase_environment.Phase):
    """This phase on this node."""

    @property
    def roster_path(self) -> Path:
        """The roster's file, which the application reads itself."""
        return Path(os.environ["TROOP_ROSTER"])

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
