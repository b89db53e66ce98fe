"""Records what a step is about to create, and removes all of it: at its end, after Ctrl-C, or at the next start."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cli.shared import show
from cli.shared.errors import CliError, Exit

PREFIX = "troop-prove-"
"""Every created name begins with it. Nothing else is removed, whatever the file says."""

_TROOP_KINDS = ("run", "fleet")
"""Kinds whose names the deployment gives, and which it removes."""

Remove = Callable[[str], None]


class Ledger:
    """The resources of this command in the account.

    Args:
        path: the file of the record. A file of an interrupted command is continued.
        removers: by kind, what removes one thing by its name; a missing thing is no error.
    """

    def __init__(self, path: Path, removers: Mapping[str, Remove]) -> None:
        self._path, self._removers = path, removers
        self._things: list[tuple[str, str]] = []
        if path.exists():
            try:
                things = json.loads(path.read_text(encoding="utf-8"))
                self._things = [(str(kind), str(name)) for kind, name in things]
            except (TypeError, ValueError):
                raise CliError(
                    Exit.FAILED,
                    f"{path} is no record of this command: remove what begins with {PREFIX} from the account, then it",
                ) from None

    def add(self, kind: str, name: str) -> None:
        """Records a thing that is about to be created."""
        self._things.append((kind, name))
        self._write()

    def remove_all(self) -> bool:
        """Removes everything, the newest first; continues after an error.

        Returns:
            Whether nothing is left.
        """
        for kind, name in reversed(list(self._things)):
            try:
                if not (kind in _TROOP_KINDS or name.startswith(PREFIX)):
                    raise ValueError(f"only names with {PREFIX} are removed")
                self._removers[kind](name)
            except Exception as error:  # noqa: BLE001 one failure must not keep the others
                show.note(f"not removed: {kind} {name}: {' '.join(str(error).split())}")
                continue
            self._things.remove((kind, name))
            self._write()
        return not self._things

    def _write(self) -> None:
        if self._things:
            replace_text(self._path, json.dumps(self._things))
        else:
            self._path.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Writes a text in place of the file, in one step."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def tags(question: str) -> list[dict[str, Any]]:
    """Returns the tags of a thing, as most services take them."""
    return [{"Key": "troop:prove", "Value": question}]
