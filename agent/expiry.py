"""Shuts the node down if nothing else has removed it in time: the last resort."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import Callable

from agent import metadata
from agent.log import say

GRACE_SECONDS = 300.0
"""Seconds after the run's expiry, so that the workflow and the reaper act first."""
_POLL_SECONDS = 20.0
"""Seconds between two readings of the time of day, because a clock may be set."""
_LEAVE_SECONDS = 60.0
"""Seconds for the agent to send its report."""


class Expiry:
    """Watches the run's expiry in a thread; ``over`` is true once it has come."""

    def __init__(self, expires_at: float, clock: Callable[[], float] = time.time) -> None:
        self._until, self._clock, self.over = expires_at + GRACE_SECONDS, clock, False

    def start(self) -> None:
        threading.Thread(target=self._watch, name="expiry", daemon=True).start()

    def _watch(self) -> None:
        while (left := self._until - self._clock()) > 0:
            time.sleep(min(left, _POLL_SECONDS))
        say("the run has expired but this node still exists: shutting down")
        self.over = True
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LEAVE_SECONDS)
        shut_down()
        os._exit(1)


def shut_down() -> None:
    """Shuts the machine down, which terminates the instance by its launch template. Does nothing outside EC2."""
    if metadata.is_real():
        subprocess.run(["shutdown", "-h", "now"], check=False)
