"""Defines a release: which code a deployment runs, by hashes that are the same in every stage. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.shared import codec

FUNCTIONS_ASSET = "functions"
"""The asset of all functions; it contains the agent of nodes."""


@dataclass(frozen=True)
class Release:
    """The code of a deployment. Settings are no part of it.

    Attributes:
        version: Troop's.
        commit: of the checkout that it was built from; None if unknown.
        assets: SHA-256 in hexadecimal by name: of the archives of functions and layers, of the agent in the functions'
            archive, and of the definitions of all workflows.
    """

    version: str
    commit: str | None
    assets: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """Returns the release as JSON-like values."""
        return codec.to_document(self)


@dataclass(frozen=True)
class RunningRelease:
    """The release that a deployment runs.

    Attributes:
        since: when the watchdog saw it first; the deployment was at most a quarter of an hour earlier.
    """

    release: Release
    since: datetime
