"""Interrupts Spot instances: first the notice in an instance's metadata, later its termination."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from .subjects import backend

WARNING_SECONDS = 120.0
"""Seconds between EC2's notice and the end of the instance; scaled like the waits of state machines."""


class Interruptions:
    """Pending interruptions. `taken_back`: ids of terminated instances. `wait_scale`: factor of the two minutes."""

    def __init__(self, lock: threading.RLock, wait_scale: float) -> None:
        self.taken_back: set[str] = set()
        self._lock = lock
        self._seconds = WARNING_SECONDS * wait_scale
        self._notices: dict[str, dict[str, str]] = {}
        self._recommended: dict[str, str] = {}

    def order(self, instance_id: str, seconds: float | None = None) -> None:
        """Publishes the notice, and terminates the instance after `seconds`; if None, after two scaled minutes."""
        seconds = self._seconds if seconds is None else seconds
        self._notices[instance_id] = {"action": "terminate", "time": _iso(seconds)}
        timer = threading.Timer(seconds, self._end, (instance_id,))
        timer.daemon = True
        timer.start()

    def recommend(self, instance_id: str) -> None:
        self._recommended[instance_id] = _iso(0)

    def notice(self, instance_id: str) -> dict[str, str] | None:
        """Returns the document `spot/instance-action`."""
        return self._notices.get(instance_id)

    def recommendation(self, instance_id: str) -> dict[str, str] | None:
        """Returns the document `events/recommendations/rebalance`."""
        recommended = self._recommended.get(instance_id)
        return {"noticeTime": recommended} if recommended else None

    def _end(self, instance_id: str) -> None:
        with self._lock:
            instance: Any = backend("ec2").get_instance_by_id(instance_id)
            if instance is None or instance.state not in ("pending", "running"):
                return
            self.taken_back.add(instance_id)
            backend("ec2").terminate_instances([instance_id])
            backend("autoscaling").notify_terminate_instances([instance_id])


def _iso(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
