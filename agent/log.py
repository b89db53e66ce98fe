"""Writes log lines to standard output; user data sends them to the instance's console."""

from __future__ import annotations

import sys
import time

_about: dict[str, str] = {}


def about(**known: str | None) -> None:
    """Sets the fields that every further line contains: run, cell, node, phase. None removes a field.

    The names are those of the functions' logs, so that one search finds both.
    """
    for name, value in known.items():
        if value is None:
            _about.pop(name, None)
        else:
            _about[name] = value


def say(message: str) -> None:
    where = "".join(f" {name}={value}" for name, value in _about.items())
    sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} troop{where}: {message}\n")
    sys.stdout.flush()
