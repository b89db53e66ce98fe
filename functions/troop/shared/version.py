"""Defines Troop's version, which reports contain, and which versions of the command an API understands.

The version equals that of ``pyproject.toml``, which is not deployed.
"""

from __future__ import annotations

import re

VERSION = "0.1.0"

OLDEST_COMMAND = "0.1.0"
"""The oldest command whose requests this API understands. Raise it when a request changes its meaning."""

VERSION_HEADER = "Troop-Version"
"""The header of every answer with the deployment's version."""
COMMAND_HEADER = "Troop-Command-Version"
"""The header of the command's requests with its own version. Other programs send none, and are not checked."""

_PARTS = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")


def is_older(version: str, than: str) -> bool:
    """Checks whether a version such as ``0.1.0`` is older than another. A text that is no version is not."""
    one, other = _PARTS.fullmatch(version), _PARTS.fullmatch(than)
    return one is not None and other is not None and _numbers(one) < _numbers(other)


def _numbers(match: re.Match[str]) -> tuple[int, ...]:
    return tuple(map(int, match.groups()))
