"""Keeps a node of a standing fleet in touch with the workflow, in a thread: reads orders and stores reports.

A failure of either ends nothing, because the node serves: the next request tries again.

A watched node sends about 10,080 requests a day, for about a cent: it reads its orders every 10 s, and stores a report
every minute. Other nodes read their orders every 5 minutes.
"""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from typing import Any, Callable

from agent import orders as orders_of
from agent.expiry import Expiry
from agent.health_watch import HealthWatch
from agent.live import Put
from agent.log import say
from agent.place import Place
from troop.work.work_folder import DRAIN, LEAVE, Counts, WorkFolder

FORMAT = "troop.report/1"
ORDER_SECONDS, RARE_ORDER_SECONDS = 10.0, 300.0
"""Seconds between two looks at the orders, of a watched node and of another one."""
REPORT_SECONDS = 60.0
RETRY_SECONDS = 5.0
"""Seconds before a report that failed is repeated."""
DRAIN_SECONDS = 1.0
"""Seconds between two looks at the workers of a node that drains."""


class Keeper:
    """Reads orders and stores reports.

    Args:
        fetch: returns the orders' object.
        put: stores a report.
        is_watched: whether the node reports.
        notice: returns spot's notice, if there is one.
    """

    def __init__(
        self,
        place: Place,
        fetch: Callable[[], bytes],
        put: Put,
        expiry: Expiry,
        notice: Callable[[], dict[str, str] | None],
        *,
        is_watched: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place, self._fetch, self._put, self._expiry, self._notice = place, fetch, put, expiry, notice
        self.is_watched, self._clock = is_watched, clock
        self.folder = WorkFolder(place.work)
        self.health: HealthWatch | None = None
        self._ready_at: float | None = None
        self._repair: dict[str, Any] | None = None
        self._begun: set[str] = set()
        self._repairs: queue.Queue[str] = queue.Queue()
        self._changed, self._over = threading.Event(), threading.Event()
        self._storing = threading.Lock()
        self._stored: Any = None
        self._order_at, self._report_at = 0.0, 0.0
        self._failing: set[str] = set()

    def start(self) -> None:
        threading.Thread(target=self._keep, name="keeper", daemon=True).start()

    def serve(self, health: HealthWatch | None) -> None:
        """Begins the reports: the node is ready."""
        self.health, self._ready_at = health, self._clock()
        self._changed.set()

    def change(self) -> None:
        """Says that something has changed that a report has."""
        self._changed.set()

    def next_repair(self, seconds: float) -> str | None:
        """Waits for the order of a restart. Returns None if none comes for so long."""
        try:
            return self._repairs.get(timeout=seconds)
        except queue.Empty:
            return None

    def begin_repair(self, repair: str) -> None:
        """Reports that a restart goes on."""
        self._repair = {"id": repair, "at": self._clock(), "code": None}
        self._changed.set()

    def end_repair(self, repair: str, code: int) -> None:
        """Reports the end of a restart."""
        if self.health is not None:
            self.health.begin_grace()
        self._repair = {"id": repair, "at": self._clock(), "code": code}
        self._changed.set()

    def close(self) -> None:
        """Ends the thread's work, and stores a last report."""
        self._over.set()
        if self.is_watched and self._ready_at is not None:
            self._try(self._report, "store the last report")

    def _keep(self) -> None:
        while not self._over.is_set():
            self._changed.clear()
            self.step(time.monotonic())
            self._changed.wait(self._pause(time.monotonic()))

    def step(self, now: float) -> None:
        """Does what is due.

        Args:
            now: by the monotonic clock.
        """
        if now >= self._order_at:
            each = ORDER_SECONDS if self.is_watched else RARE_ORDER_SECONDS
            self._order_at = now + each * random.uniform(0.9, 1.1)
            self._try(self._obey, "read the orders")
        if not self.is_watched or self._ready_at is None:
            return
        if now >= self._report_at or self._urgent() != self._stored:
            self._report_at = now + RETRY_SECONDS
            if self._try(self._report, "store a report"):
                self._report_at = now + REPORT_SECONDS * random.uniform(0.9, 1.0)

    def _pause(self, now: float) -> float:
        due = self._order_at
        if self.is_watched and self._ready_at is not None:
            due = min(due, self._report_at)
        if self.folder.reason is not None:
            due = min(due, now + DRAIN_SECONDS)
        return max(0.2, due - now)

    def _try(self, action: Callable[[], None], purpose: str) -> bool:
        """Does something, and says that it fails; only once in a row."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - a node that serves must not end
            if purpose not in self._failing:
                say(f"cannot {purpose}, and tries again: {error!r}")
            self._failing.add(purpose)
            return False
        self._failing.discard(purpose)
        return True

    def _obey(self) -> None:
        orders = orders_of.read(self._fetch(), self._place.identity.id)
        self._expiry.move(orders.expires_at)
        reason = self.folder.reason
        if orders.is_draining and reason is None:
            say("draining: workers take no more tasks")
            self.folder.stop(DRAIN)
        elif not orders.is_draining and reason == DRAIN:
            say("the node drains no more")
            self.folder.resume()
        if orders.repair is not None and orders.repair not in self._begun:
            self._begun.add(orders.repair)
            self._repairs.put(orders.repair)

    def _report(self) -> None:
        with self._storing:
            urgent = self._urgent()
            self._put(json.dumps(self.document(), separators=(",", ":"), allow_nan=False).encode())
            self._stored = urgent

    def _urgent(self) -> Any:
        """What a report says at once when it changes."""
        health = None if self.health is None else self.health.urgent
        return health, *self._draining(), self._repair, self._notice()

    def _draining(self) -> tuple[bool, bool]:
        """Whether the node drains, and whether no worker has a task any more, nor can get one."""
        is_draining = self.folder.reason is not None
        counts = self.folder.counts()
        return is_draining, is_draining and (counts is None or (not counts.held and not counts.receiving))

    def document(self) -> dict[str, Any]:
        """Returns the report as of now."""
        draining, drained = self._draining()
        counts = self.folder.counts() or Counts()
        return {
            "format": FORMAT,
            "id": self._place.identity.id,
            "role": self._place.boot.role,
            "at": self._clock(),
            "ready_at": self._ready_at,
            "health": None if self.health is None else self.health.condition.document(),
            "work": {"done": counts.done, "held": counts.held, "idle_since": counts.idle_since},
            "draining": draining,
            "drained": drained,
            "repair": self._repair,
            "notice": self._notice(),
        }

    def leave(self) -> bool:
        """Tells workers that the node ends. Returns whether they have tasks to hand back."""
        self.folder.stop(LEAVE)
        counts = self.folder.counts()
        return counts is not None and counts.held > 0
