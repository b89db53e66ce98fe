"""Runs a phase's script: in a process group of its own, within its time, its output within bounds."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agent.output import BoundedOutput

GRACE_SECONDS = 5.0
"""Between asking a command to end and making it."""
DRAIN_SECONDS = 2.0
"""What the output of an ended command may still take to arrive."""

UMASK = 0o022
"""Not the one of user data: what a script installs must be there for others, such as the user of a database."""

OOM_SCORE = "500"
"""Of -1000 to 1000: how much rather than others the kernel kills a command that it has no memory for."""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: exit code, negative for a signal as in :mod:`subprocess`; None when its time was over.
    """

    code: int | None


def line_for(script: Path) -> list[str]:
    """Python scripts run by the Python that runs the agent; others say by their first line what they run by."""
    return [sys.executable, str(script)] if script.suffix == ".py" else [str(script)]


class Command:
    """One command. Only what is still in its process group is killed, and only when its time is over or it is stopped:
    a server that a phase leaves running serves the next one.
    """

    def __init__(self, line: list[str], folder: Path, environment: Mapping[str, str], output: BoundedOutput) -> None:
        """Starts it.

        Raises:
            OSError: it cannot be run.
        """
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            line,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=UMASK,
        )
        with contextlib.suppress(OSError):  # when memory runs out the script is to die, not who tells of it
            Path(f"/proc/{self._process.pid}/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=_keep, args=(self._process.stdout, output), daemon=True)
        self._reader.start()

    def wait(self, until: float) -> Ended:
        """Waits for it to end, and kills it at ``until``, a reading of the monotonic clock."""
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return Ended(None)
        self._reader.join(DRAIN_SECONDS)
        return Ended(self._process.returncode)

    def kill(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ends its whole group, first by asking."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self._signal(signal.SIGKILL)  # what is left of the group, whether or not its first process has ended
        self._process.wait()
        self._reader.join(DRAIN_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _keep(stream: IO[bytes], output: BoundedOutput) -> None:
    """Reads on for as long as anybody writes: what a phase leaves running must not die of its output."""
    with stream:
        while data := stream.read1(65536):  # type: ignore[attr-defined]
            output.write(data)
