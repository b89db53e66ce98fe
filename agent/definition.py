"""The parts of a benchmark that a node needs: which phases it takes part in, and what it has to have for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent.errors import UNREADABLE, AgentError

FORMAT = "troop.benchmark/1"


@dataclass(frozen=True)
class Setup:
    """A phase that a node does by itself: its name, and a file from beside the benchmark's."""

    phase: str
    script: str
    timeout_seconds: float


@dataclass(frozen=True)
class Definition:
    """Of one role.

    Attributes:
        phases: in order; only those that the role takes part in; none of a standing fleet's.
        parameters: for scripts, as they are.
        files: names of files from beside the benchmark's.
        artifacts: SHA-256 by name.
        standing: whether the node does not wait for others, but sets itself up and stays.
        setup: what it then runs.
    """

    phases: tuple[str, ...]
    parameters: Mapping[str, Any]
    files: tuple[str, ...]
    artifacts: Mapping[str, str]
    standing: bool = False
    setup: tuple[Setup, ...] = ()


def read(path: Path, role: str) -> Definition:
    """The accepted benchmark.

    Raises:
        AgentError: it is none.
    """
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}: must be {FORMAT}")
        phases = [phase for phase in document["phases"] if role in phase["roles"]]
        standing = bool(document.get("standing"))
        return Definition(
            phases=() if standing else tuple(str(phase["name"]) for phase in phases),
            standing=standing,
            setup=tuple(map(_setup, phases)) if standing else (),
            parameters=dict(document.get("parameters") or {}),
            files=tuple(_inside(name) for name in document.get("files") or ()),
            artifacts={_inside(one["name"]): str(one["sha256"]) for one in document.get("artifacts") or ()},
        )
    except (OSError, *UNREADABLE) as error:
        raise AgentError(f"the benchmark's definition cannot be read: {error!r}") from None


def _setup(phase: Mapping[str, Any]) -> Setup:
    return Setup(str(phase["name"]), _inside(phase["script"]), float(phase["timeout"]))


def _inside(name: Any) -> str:
    """A relative path that stays where it is put."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"{name!r} is no name of a file")
    return str(path)
