"""The parts of a benchmark that a node needs: which phases it takes part in, and what it has to have for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent.errors import AgentError

FORMAT = "troop.benchmark/1"


@dataclass(frozen=True)
class Definition:
    """Of one role.

    Attributes:
        phases: in order; only those that the role takes part in.
        parameters: for scripts, as they are.
        files: names of files from beside the benchmark's.
        artifacts: SHA-256 by name.
    """

    phases: tuple[str, ...]
    parameters: Mapping[str, Any]
    files: tuple[str, ...]
    artifacts: Mapping[str, str]


def read(path: Path, role: str) -> Definition:
    """The accepted benchmark.

    Raises:
        AgentError: it is none.
    """
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}: must be {FORMAT}")
        return Definition(
            phases=tuple(str(phase["name"]) for phase in document["phases"] if role in phase["roles"]),
            parameters=dict(document.get("parameters") or {}),
            files=tuple(_inside(name) for name in document.get("files") or ()),
            artifacts={_inside(one["name"]): str(one["sha256"]) for one in document.get("artifacts") or ()},
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise AgentError(f"the benchmark's definition cannot be read: {error!r}") from None


def _inside(name: Any) -> str:
    """A relative path that stays where it is put."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"{name!r} is no name of a file")
    return str(path)
