"""Reads a script's environment from the agent, and runs programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import load as loads
from load import FIO, Load

from troop.disks.errors import DiskError

LAST_OUTPUT = 20_000
"""Characters of a program's output to print."""


def parameters() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    return document


def shared() -> Path:
    return Path(os.environ["TROOP_SHARED"])


def own_load() -> Load:
    """Returns the load of this phase."""
    memory = loads.memory_bytes(Path("/proc/meminfo").read_text(encoding="ascii"))
    return loads.from_parameters(parameters(), memory)


def run(command: Sequence[str]) -> str:
    """Runs a program and returns its output.

    Raises:
        DiskError: it cannot run, or it fails.
    """
    print("$ " + " ".join(command)[:1000], flush=True)
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as error:
        raise DiskError(f"cannot run {command[0]}: {error}") from error
    output = done.stdout.decode(errors="replace")
    print(output[-LAST_OUTPUT:], flush=True)
    if done.returncode:
        raise DiskError(f"{Path(command[0]).name} failed with exit code {done.returncode}")
    return output


def check_files(load: Load, folder: Path) -> None:
    """Checks that all files of fio are complete. iozone writes its own.

    Raises:
        DiskError: a file is missing or has another size.
    """
    if load.tool != FIO:
        return
    for path in load.files(folder):
        size = path.stat().st_size if path.exists() else 0
        if size != load.file_mib * loads.MIB:
            raise DiskError(f"{path} has {size} bytes instead of {load.file_mib * loads.MIB}")


def free_bytes(folder: Path) -> tuple[int, int]:
    """Returns the size of a folder's file system, and what is free, in bytes."""
    usage = shutil.disk_usage(folder)
    return usage.total, usage.free


def end(main: Callable[[], None]) -> None:
    """Runs a script, and shows an error as its last line."""
    try:
        main()
    except DiskError as error:
        sys.exit(str(error))
