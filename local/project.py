"""Where things are in the project, and whether `make setup` has been run."""

from __future__ import annotations

import os
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
    """NotSetUpError that names what is missing and how to get it."""
    missing = [str(path.relative_to(ROOT)) for path in (BIN, ACCOUNT_PYTHON, NODE_AWS, CDK) if not path.exists()]
    if missing:
        raise NotSetUpError(f"local AWS is not set up ({', '.join(missing)} missing). Run: make setup")


def tool_environment() -> dict[str, str]:
    """This process's environment without AWS settings and Python paths of the caller's own, with the project's tools
    first in PATH."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "PYTHON", "CDK_", "TROOP_", "MINISTACK", "MOTO_")) and name != "VIRTUAL_ENV"
    }
    return {**environment, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
