"""Reads a run's stored files from a folder, as ``aws s3 sync s3://BUCKET/runs/RUN DIR`` writes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.shared import safe_files
from cli.shared.safe_files import OutsideError
from troop.bench.records.archive import refuse_large


@dataclass(frozen=True)
class FolderArchive:
    """A :class:`troop.bench.records.archive.Archive` in the folder of one run."""

    folder: Path

    def read(self, name: str) -> bytes | None:
        """Returns a file's content; None if there is no such file. Names come from files, so they must stay inside.

        Raises:
            OSError: the file cannot be read.
            DamagedError: it comes from a node and is too large.
        """
        root = self.folder.resolve()
        try:
            with safe_files.opened(root, safe_files.resolved(root, name)) as file:
                refuse_large(name, os.fstat(file.fileno()).st_size)
                return file.read()
        except (FileNotFoundError, NotADirectoryError, OutsideError):
            return None

    def names(self, below: str) -> Sequence[str]:
        """Lists the full names of all files whose names begin with ``below``, sorted.

        Raises:
            OSError: a folder cannot be read.
        """
        top = self._inside(below.rpartition("/")[0])
        if top is None or not top.is_dir():
            return []
        root = self.folder.resolve()
        paths = (path.relative_to(root).as_posix() for path in top.rglob("*") if path.is_file())
        return sorted(name for name in paths if name.startswith(below))

    def _inside(self, name: str) -> Path | None:
        root = self.folder.resolve()
        try:
            return root / safe_files.resolved(root, name)
        except OutsideError:
            return None
