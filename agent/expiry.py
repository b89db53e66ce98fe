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
from agent.processes import notify_main

GRACE_SECONDS = 300.0
"""Seconds after the run's expiry, so that the workflow and the reaper act first."""
ORDER_SECONDS = 600.0
"""Seconds that a node of a standing fleet has to read its orders, if it boots after the expiry that its boot document
has: the fleet may have been extended.
"""
_POLL_SECONDS = 20.0
"""Seconds between two readings of the time of day, because a clock may be set."""
_LEAVE_SECONDS = 60.0
"""Seconds for the agent to send its report."""


class Expiry:
    """Watches the run's expiry in a thread; ``over`` is true once it has come.

    Args:
        least: seconds for which the node stays at least, unless :meth:`move` says otherwise.
    """

    def __init__(self, expires_at: float, clock: Callable[[], float] = time.time, least: float = 0.0) -> None:
        self._clock, self.over = clock, False
        self._scheduled = expires_at + GRACE_SECONDS
        self._until = max(self._scheduled, clock() + least if least else 0.0)

    def start(self) -> None:
        threading.Thread(target=self._watch, name="expiry", daemon=True).start()

    def move(self, expires_at: float) -> None:
        """Takes over another expiry, also for the shutdown that user data has scheduled."""
        self._until = until = expires_at + GRACE_SECONDS
        if until != self._scheduled:
            self._scheduled = until
            say(f"the fleet now expires at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(expires_at))}")
            schedule_shutdown(until - self._clock())

    def _watch(self) -> None:
        while (left := self._until - self._clock()) > 0:
            time.sleep(min(left, _POLL_SECONDS))
        say("the run has expired but this node still exists: shutting down")
        self.over = True
        notify_main(signal.SIGTERM)
        time.sleep(_LEAVE_SECONDS)
        shut_down()
        os._exit(1)


def shut_down() -> None:
    """Shuts the machine down, which terminates the instance by its launch template. Does nothing outside EC2."""
    if metadata.is_real():
        subprocess.run(["shutdown", "-h", "now"], check=False)


def schedule_shutdown(seconds: float) -> None:
    """Replaces the scheduled shutdown, which does not depend on the agent. Does nothing outside EC2."""
    if metadata.is_real():
        subprocess.run(["shutdown", "-c"], check=False)
        subprocess.run(["shutdown", "-h", f"+{max(1, int(seconds // 60) + 1)}"], check=False)
