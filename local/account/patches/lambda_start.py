"""Unpacks the code and layers of a function once.

This is not a difference from AWS, but saves time: MiniStack unpacks them for every worker, so Python compiles all of a
layer at each start of a function.
"""

from __future__ import annotations

import hashlib
import tempfile
import threading
import types
import zipfile
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime


def apply(run: Path) -> None:
    store = run / "unpacked"
    store.mkdir()
    lock = threading.Lock()

    class UnpackedOnce(zipfile.ZipFile):
        def extractall(self, path: Any = None, members: Any = None, pwd: bytes | None = None) -> None:
            """Replaces the empty directory `path` by a link to the unpacked archive."""
            unpacked = store / hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
            with lock:
                if not unpacked.exists():
                    part = tempfile.mkdtemp(dir=store)
                    super().extractall(part, members, pwd)
                    Path(part).rename(unpacked)
            Path(path).rmdir()
            Path(path).symlink_to(unpacked)

    lambda_runtime.zipfile = types.SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})
