"""Functions start quickly: code and layers are unpacked once, and an exception does not cost the environment.

MiniStack unpacks a function's code and layers anew for every worker, so Python compiles all of it each time, and ends
the worker of a function that raised. On AWS the environment lives on and serves the next call.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import types
import zipfile
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime

_RAISED = '{"status": "error", "error": str(e), "type"'


def apply(run: Path) -> None:
    """After `lambda_errors`, whose change to the worker this one builds on."""
    if _RAISED not in lambda_runtime._PYTHON_WORKER_SCRIPT:
        raise RuntimeError("the worker does not report errors the way this patch expects")
    # Any status but "ok" is a failed call; "error" alone ends the worker.
    lambda_runtime._PYTHON_WORKER_SCRIPT = lambda_runtime._PYTHON_WORKER_SCRIPT.replace(
        _RAISED, _RAISED.replace('"error"', '"raised"', 1)
    )
    store = run / "unpacked"
    store.mkdir()
    lock = threading.Lock()

    class UnpackedOnce(zipfile.ZipFile):
        def extractall(self, path: Any = None, members: Any = None, pwd: bytes | None = None) -> None:
            archive = Path(str(self.filename))
            unpacked = store / hashlib.sha256(archive.read_bytes()).hexdigest()
            with lock:
                if not unpacked.exists():
                    part = tempfile.mkdtemp(dir=store)
                    super().extractall(part, members, pwd)
                    Path(part).rename(unpacked)
            os.rmdir(path)
            os.symlink(unpacked, path)

    lambda_runtime.zipfile = types.SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})
