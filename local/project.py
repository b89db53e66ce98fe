"""Defines paths of the project, and checks whether `make setup` was run."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
ACCOUNT_PYTHON = ROOT / ".venv-account" / "bin" / "python"
NODE_AWS = ROOT / ".venv-node" / "bin" / "aws"
CDK = ROOT / "node_modules" / ".bin" / "cdk"
STATE = ROOT / ".local"


class NotSetUpError(RuntimeError):
    """Something that `make setup` installs is missing."""


def check_set_up() -> None:
    """Raises NotSetUpError if an installed tool is missing; its message says how to install it."""
    missing = [str(path.relative_to(ROOT)) for path in (BIN, ACCOUNT_PYTHON, NODE_AWS, CDK) if not path.exists()]
    if missing:
        raise NotSetUpError(f"local AWS is not set up ({', '.join(missing)} missing). Run: make setup")


def data_of(package: str) -> Path:
    """Returns the folder ``data`` of a package, without importing it. Raises NotSetUpError without the package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise NotSetUpError(f"local AWS is not set up ({package} missing). Run: make setup")
    return Path(spec.origin).parent / "data"


def tool_environment() -> dict[str, str]:
    """Returns this process's environment without the caller's AWS settings and Python paths.

    The project's tools come first in PATH.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "PYTHON", "CDK_", "TROOP_", "MINISTACK", "MOTO_")) and name != "VIRTUAL_ENV"
    }
    return {**environment, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
