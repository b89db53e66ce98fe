"""Watches for EC2's spot interruption notice and its rebalance recommendation.

A thread polls the metadata service every few seconds from boot to the end. Two local requests do not disturb a
measurement.
"""

from __future__ import annotations

import json
import signal
import threading
from typing import Any, Callable

from agent import metadata
from agent.errors import Lost
from agent.log import say
from agent.processes import notify_main
from troop.measure.s3.web import ERRORS, Web

SIGNAL = signal.SIGUSR1
"""The signal with which the thread stops the agent's work."""
POLL_SECONDS = 5.0
TOKEN_SECONDS = 21_600
LEAVE_SECONDS = 20.0
"""Seconds to report the notice, after the agent's own report."""

_LIFE_CYCLE = "meta-data/instance-life-cycle"
_ACTION = "meta-data/spot/instance-action"
_REBALANCE = "meta-data/events/recommendations/rebalance"


class Interrupted(Lost):
    """Spot takes this node back during its work.

    Attributes:
        notice: ``{"action", "time"}``, as EC2 states them.
    """

    def __init__(self, notice: dict[str, str]) -> None:
        self.notice = notice
        super().__init__(f"spot interruption: {notice['action']} at {notice['time']}")


class Metadata:
    """A client of the metadata service that keeps its connection."""

    def __init__(self, base: str) -> None:
        self._base, self._web, self._token = base, Web(), ""

    def read(self, path: str) -> str | None:
        """Returns the content at ``path``; None if there is none, or no answer this time."""
        for is_last in (False, True):  # between two polls the connection may be closed, and the token expired
            try:
                answer = self._ask(path)
            except ERRORS as error:
                if is_last:
                    say(f"no answer from the metadata service: {error!r}")
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
                raise OSError(f"the metadata service refused a token with status {answer.status}")
            self._token = answer.body.decode()
        return self._web.ask(f"{self._base}/latest/{path}", "GET", {"X-aws-ec2-metadata-token": self._token})


class Watch:
    """Watches for the notice and the recommendation.

    Args:
        tell: reports a notice; called once, in the thread, after the agent was stopped.

    Attributes:
        notice: ``{"action", "time"}`` once there is one.
        rebalance_at: time of EC2's rebalance recommendation, as EC2 states it.
    """

    def __init__(self, tell: Callable[[dict[str, str]], None]) -> None:
        self.notice: dict[str, str] | None = None
        self.rebalance_at: str | None = None
        self._tell, self._over = tell, threading.Event()
        self._metadata = Metadata(metadata.address())
        self._thread = threading.Thread(target=self._watch, name="spot", daemon=True)

    def start(self) -> None:
        """Starts the thread. Must be called in the main thread, which a notice stops with :class:`Interrupted`."""
        signal.signal(SIGNAL, self._stop)
        self._thread.start()

    def finish(self) -> None:
        """Ends the watch: no notice stops the agent any more, and a notice that has arrived gets some time to be
        reported.
        """
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
            while (bought := self._metadata.read(_LIFE_CYCLE)) is None:  # EC2 always has it, if not at the first try
                if self._over.wait(POLL_SECONDS):
                    return
            if bought != "spot":
                return
            while self.notice is None:
                self._poll()
                if self.notice is None and self._over.wait(POLL_SECONDS):
                    return
            say(f"spot takes this node back: {self.notice}")
            notify_main(SIGNAL)
            self._tell(self.notice)
        except Exception as error:  # noqa: BLE001 - a node without this watch is better than none
            say(f"watching for interruptions failed: {error!r}")

    def _poll(self) -> None:
        if self.rebalance_at is None and (answer := self._metadata.read(_REBALANCE)) is not None:
            self.rebalance_at = str(_parsed(answer).get("noticeTime") or "unknown")
            say(f"EC2 recommended a rebalance at {self.rebalance_at}")
        if (answer := self._metadata.read(_ACTION)) is not None:
            document = _parsed(answer)
            self.notice = {key: str(document.get(key) or "unknown") for key in ("action", "time")}


def _parsed(text: str) -> dict[str, Any]:
    """Returns the service's document; {} if it is unreadable, which still counts as a notice."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
