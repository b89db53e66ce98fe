"""Runs a phase's script in its own process group, with a time limit and bounded output."""

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

from agent import processes
from agent.errors import Lost
from agent.output import BoundedOutput

GRACE_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL."""
DRAIN_SECONDS = 2.0
"""Seconds to wait for the last output of a command that has ended."""

UMASK = 0o022
"""Replaces the umask of user data: other users, such as a database's, must be able to read what a script installs."""

OOM_SCORE = "500"
"""The kernel's preference to kill the command when memory runs out, from -1000 to 1000."""


@dataclass(frozen=True)
class Ended:
    """The end of a command.

    Attributes:
        code: exit code, negative for a signal as in :mod:`subprocess`; None if the time limit was exceeded.
    """

    code: int | None

    def words(self, limit: float) -> str:
        """Describes how it ended.

        Args:
            limit: the time limit in seconds.
        """
        if self.code is None:
            return f"took longer than {limit:g} s and was stopped"
        return f"was killed by signal {-self.code}" if self.code < 0 else f"ended with exit code {self.code}"


def line_for(script: Path) -> list[str]:
    """Returns the command line: the agent's Python for ``.py`` files, otherwise the script itself, which needs a ``#!``
    line.
    """
    return [sys.executable, str(script)] if script.suffix == ".py" else [str(script)]


class Command:
    """A running command. When its time is over or it is stopped, only its process group is killed.

    A server that a phase leaves running serves the next phase.
    """

    def __init__(self, line: list[str], folder: Path, environment: Mapping[str, str], output: BoundedOutput) -> None:
        """Starts the command.

        Raises:
            OSError: the command cannot be run.
        """
        with processes.awaiting:
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
            processes.awaited.add(self._process.pid)
        with contextlib.suppress(OSError):  # when memory runs out, the script must die and not the agent
            Path(f"/proc/{self._process.pid}/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=_keep, args=(self._process.stdout, output), daemon=True)
        self._reader.start()

    def wait(self, until: float) -> Ended:
        """Waits for the command to end, and kills it at ``until``, a time of the monotonic clock.

        Raises:
            Lost: the agent must end; the command is killed, too.
        """
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            return Ended(None)
        except Lost:
            self.kill()
            raise
        processes.awaited.discard(self._process.pid)
        self._reader.join(DRAIN_SECONDS)
        return Ended(self._process.returncode)

    def kill(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ends the whole process group: SIGTERM first, then SIGKILL."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_seconds)
        self._signal(signal.SIGKILL)  # kills the rest of the group, even if its first process has ended
        self._process.wait()
        processes.awaited.discard(self._process.pid)
        self._reader.join(DRAIN_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _keep(stream: IO[bytes], output: BoundedOutput) -> None:
    """Reads until all writers have closed: a process that a phase leaves running must not block on its output."""
    with stream:
        while data := stream.read1(65536):  # type: ignore[attr-defined]
            output.write(data)
