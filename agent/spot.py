"""On spot instances: EC2's notice that it takes the node back, and its warning that it may.

A thread asks the metadata service every few seconds, from boot to the end. What a measurement feels of it is nothing:
two requests to the machine it runs on.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any, Callable

from agent import metadata
from agent.errors import Lost
from agent.log import say
from agent.web import ERRORS, Web

SIGNAL = signal.SIGUSR1
"""By which the thread stops what the agent is at."""
POLL_SECONDS = 5.0
TOKEN_SECONDS = 21_600
LEAVE_SECONDS = 20.0
"""For the notice to be passed on, after the agent's own farewell."""

_LIFE_CYCLE = "meta-data/instance-life-cycle"
_ACTION = "meta-data/spot/instance-action"
_REBALANCE = "meta-data/events/recommendations/rebalance"


class Interrupted(Lost):
    """Spot takes this node back while it is at work.

    Attributes:
        notice: ``{"action", "time"}``, as EC2 gives them.
    """

    def __init__(self, notice: dict[str, str]) -> None:
        self.notice = notice
        super().__init__(f"spot interruption: {notice['action']} at {notice['time']}")


class Metadata:
    """Some paths of the metadata service, asked over a kept connection."""

    def __init__(self, base: str) -> None:
        self._base, self._web, self._token = base, Web(), ""

    def read(self, path: str) -> str | None:
        """What there is; None when there is nothing, or no answer this time."""
        for is_last in (False, True):  # between two looks the connection may be closed, and the token be over
            try:
                answer = self._ask(path)
            except ERRORS as error:
                if is_last:
                    say(f"the metadata service does not answer: {error!r}")
                continue
            if answer.status == 401:
                self._token = ""
            else:
                return answer.body.decode(errors="replace") if answer.status == 200 else None
        return None

    def _ask(self, path: str) -> Any:
        if not self._token:
            lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_SECONDS)}
            answer = self._web.ask(f"{self._base}/latest/api/token", "PUT", lifetime)
            if answer.status != 200:
                raise OSError(f"a token was refused: {answer.status}")
            self._token = answer.body.decode()
        return self._web.ask(f"{self._base}/latest/{path}", "GET", {"X-aws-ec2-metadata-token": self._token})


class Watch:
    """Looks out for both.

    Args:
        tell: passes a notice on; called once, in the thread, after the agent was stopped.

    Attributes:
        notice: ``{"action", "time"}`` once there is one.
        rebalance_at: when EC2 began to expect an interruption, as it gives the moment.
    """

    def __init__(self, tell: Callable[[dict[str, str]], None]) -> None:
        self.notice: dict[str, str] | None = None
        self.rebalance_at: str | None = None
        self._tell, self._over = tell, threading.Event()
        self._metadata = Metadata(metadata.address())
        self._thread = threading.Thread(target=self._watch, name="spot", daemon=True)

    def start(self) -> None:
        """To be called in the main thread, which a notice stops by :class:`Interrupted`."""
        signal.signal(SIGNAL, self._stop)
        self._thread.start()

    def finish(self) -> None:
        """The agent has come to its end: nothing stops it any more, and a notice has some time to be passed on."""
        signal.signal(SIGNAL, signal.SIG_IGN)
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(LEAVE_SECONDS)

    def _stop(self, *_: object) -> None:
        signal.signal(SIGNAL, signal.SIG_IGN)
        if self.notice is not None:
            raise Interrupted(self.notice)

    def _watch(self) -> None:
        try:
            while (bought := self._metadata.read(_LIFE_CYCLE)) is None:  # it is always told, if not at the first try
                if self._over.wait(POLL_SECONDS):
                    return
            if bought != "spot":
                return
            while self.notice is None:
                self._poll()
                if self.notice is None and self._over.wait(POLL_SECONDS):
                    return
            say(f"spot takes this node back: {self.notice}")
            os.kill(os.getpid(), SIGNAL)
            self._tell(self.notice)
        except Exception as error:  # noqa: BLE001 - a node that is not warned is worth more than none
            say(f"the watch for interruptions has ended: {error!r}")

    def _poll(self) -> None:
        if self.rebalance_at is None and (answer := self._metadata.read(_REBALANCE)) is not None:
            self.rebalance_at = str(_parsed(answer).get("noticeTime") or "unknown")
            say(f"EC2 expects an interruption since {self.rebalance_at}")
        if (answer := self._metadata.read(_ACTION)) is not None:
            document = _parsed(answer)
            self.notice = {key: str(document.get(key) or "unknown") for key in ("action", "time")}


def _parsed(text: str) -> dict[str, Any]:
    """What the service says; {} for what cannot be read, which is as good a notice as any."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
