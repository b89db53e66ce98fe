"""The last resort: nobody has removed this node in time, so it removes itself."""

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
"""After the run's expiry, so that others come first."""
_POLL_SECONDS = 20.0
"""The time of day is looked at again so often, as a clock may be set."""
_LEAVE_SECONDS = 60.0
"""For what is at work to say so."""


class Expiry:
    """Watches over the run's expiry in a thread of its own; ``over`` says that it has come."""

    def __init__(self, expires_at: float, clock: Callable[[], float] = time.time) -> None:
        self._until, self._clock, self.over = expires_at + GRACE_SECONDS, clock, False

    def start(self) -> None:
        threading.Thread(target=self._watch, name="expiry", daemon=True).start()

    def _watch(self) -> None:
        while (left := self._until - self._clock()) > 0:
            time.sleep(min(left, _POLL_SECONDS))
        say("the run has expired, and this node is still there: it ends itself")
        self.over = True
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_LEAVE_SECONDS)
        shut_down()
        os._exit(1)


def shut_down() -> None:
    """Ends the instance, which its launch template makes a termination. Only on EC2: no other machine is ours."""
    if metadata.is_real():
        subprocess.run(["shutdown", "-h", "now"], check=False)
