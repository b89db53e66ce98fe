"""Unpacks the code and layers of a function once.

This is not a difference from AWS, but saves time: MiniStack unpacks them for every worker, so Python compiles all of a
layer at each start of a function. It also resolves the name of each file of a layer.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import types
import zipfile
from pathlib import Path

from ministack.core import lambda_runtime


def apply(run: Path) -> None:
    store = run / "unpacked"
    store.mkdir()
    lock = threading.Lock()

    class UnpackedOnce:
        """What MiniStack uses of a ZipFile."""

        def __init__(self, archive: str) -> None:
            self._archive = Path(archive)

        def __enter__(self) -> UnpackedOnce:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def namelist(self) -> list[str]:
            """Returns no names: MiniStack checks that none leaves the directory, which a ZipFile prevents itself."""
            return []

        def extractall(self, path: str) -> None:
            """Replaces the empty directory `path` by a link to the unpacked archive."""
            unpacked = store / hashlib.sha256(self._archive.read_bytes()).hexdigest()
            with lock:
                if not unpacked.exists():
                    part = tempfile.mkdtemp(dir=store)
                    with zipfile.ZipFile(self._archive) as archive:
                        archive.extractall(part)
                    Path(part).rename(unpacked)
            Path(path).rmdir()
            Path(path).symlink_to(unpacked)

    lambda_runtime.zipfile = types.SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})
