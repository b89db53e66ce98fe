"""A Python 3.9, as Amazon Linux 2023 has, if this machine has one."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path


@functools.cache
def python39() -> str | None:
    """``python3.9`` on the PATH or of pyenv; None when there is none that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which("python3.9"), *sorted(map(str, pyenv.glob("versions/3.9.*/bin/python3.9")))]
    return next((candidate for candidate in candidates if candidate and _runs(candidate)), None)


def _runs(python: str) -> bool:
    question = [python, "-c", "import sys; print(sys.version_info[:2] == (3, 9))"]
    try:
        return subprocess.run(question, capture_output=True, text=True, check=False).stdout.strip() == "True"
    except OSError:
        return False
