"""Sends events of AWS's services to the default bus of EventBridge, a little later than they happen.

Delays differ, so events can change places. EC2, Auto Scaling and Systems Manager deliver on a best effort basis: a
share of their events may be lost. CloudWatch guarantees the delivery of its events.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import threading
import time
import traceback
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import eventbridge

from .config import ACCOUNT_ID, REGION, instance_arn

_LATE_SECONDS = (0.1, 0.5)
"""The least and the most time from a change to the delivery of its event."""
_BEST_EFFORT = frozenset({"aws.ec2", "aws.autoscaling", "aws.ssm"})


class ServiceEvents:
    """A queue of events, and a thread that delivers them. Events before :meth:`deliver` are dropped."""

    def __init__(self) -> None:
        self._lost = 1.0
        self._open = False
        self._due: list[tuple[float, int, dict[str, Any]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()

    def deliver(self, lost: float) -> None:
        """Starts the delivery. `lost`: the share of events of best effort that never come, from 0 to 1."""
        self._lost, self._open = lost, True
        threading.Thread(target=self._run, name="service-events", daemon=True).start()

    def send(self, source: str, kind: str, detail: Mapping[str, Any], resources: Sequence[str]) -> None:
        """Sends an event that happens now. `kind`: its `detail-type`."""
        if not self._open or (source in _BEST_EFFORT and random.random() < self._lost):
            return
        event = {
            "EventId": str(uuid.uuid4()),
            "Source": source,
            "DetailType": kind,
            "Detail": json.dumps(detail),
            "EventBusName": "default",
            "Time": int(time.time()),
            "Resources": list(resources),
            "Account": ACCOUNT_ID,
            "Region": REGION,
        }
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + random.uniform(*_LATE_SECONDS), next(self._numbers), event))
            self._changed.notify()

    def instance_changed(self, instance_id: str, state: str) -> None:
        """Sends the event of an instance that has another state."""
        detail = {"instance-id": instance_id, "state": state}
        self.send("aws.ec2", "EC2 Instance State-change Notification", detail, [instance_arn(instance_id)])

    def _run(self) -> None:
        set_request_account_id(ACCOUNT_ID)
        set_request_region(REGION)
        while True:
            event = self._next()
            try:
                eventbridge._events_log_list().append(event)
                eventbridge._dispatch_event(event)
            except Exception:  # noqa: BLE001 - the other events must come
                traceback.print_exc()

    def _next(self) -> dict[str, Any]:
        with self._changed:
            while True:
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[-1]
                self._changed.wait(wait)


events = ServiceEvents()
