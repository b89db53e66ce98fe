"""Renews the leases of the tasks in hand, and hands tasks back when the node ends."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Callable

from troop.work.errors import WorkError, say
from troop.work.queue import GONE, Queue
from troop.work.work_folder import LEAVE, WorkFolder

LONGEST_SECONDS = 12 * 3600
"""How long SQS hides a message at most, from the moment it was received."""
TICK_SECONDS = 1.0
"""Seconds between two looks at the leases and at the folder."""
RETRY_SECONDS = 5.0
"""Seconds before a failed renewal is repeated, at most."""
HAND_BACK_TRIES, RENEWAL_TRIES = 4, 3
"""More than one: SQS closes a connection that is silent between two of these requests."""
CLOSE_SECONDS = 30.0
"""How long the end of the process waits until its tasks are handed back."""


@dataclass
class Lease:
    """The lease of one task; moments are of the monotonic clock.

    Attributes:
        name: the task's id, for people.
        renew_at: when it is due; infinity if it cannot be renewed any more.
    """

    receipt: str
    name: str
    taken_at: float
    renew_at: float


class Leases:
    """The leases of one process, for any number of threads.

    Args:
        seconds: the length of a lease.
    """

    def __init__(
        self, queue: Queue, folder: WorkFolder, seconds: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queue, self._folder, self._seconds, self._clock = queue, folder, seconds, clock
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)

    def start(self) -> None:
        """Starts the thread that renews."""
        self._thread.start()

    def take(self, receipt: str, name: str) -> None:
        """Adds a task that was received just now."""
        now = self._clock()
        with self._lock:
            self._leases[receipt] = Lease(receipt, name, now, now + self._seconds / 3)

    def release(self, receipt: str) -> bool:
        """Removes a task. Returns whether it was still in hand; only one caller gets true."""
        with self._lock:
            return self._leases.pop(receipt, None) is not None

    def leave(self) -> None:
        """Lets the thread hand everything back, and end. Must be called once: a second call in a handler of signals
        could wait for the first one.
        """
        self._leave.set()

    def join(self) -> None:
        """Waits until the thread has ended."""
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS)

    def _keep(self) -> None:
        while True:
            is_over = self._leave.wait(TICK_SECONDS)
            try:
                if is_over or self._folder.reason == LEAVE:
                    self.hand_back()
                else:
                    self.renew()
            except Exception as error:  # noqa: BLE001 - the other leases must be renewed all the same
                say(f"cannot keep the leases: {error!r}")
            if is_over:
                return

    def hand_back(self) -> None:
        """Makes all tasks in hand visible to other workers at once."""
        with self._lock:
            leases = list(self._leases.values())
            self._leases.clear()
        for lease in leases:
            try:
                self._queue.hide(lease.receipt, 0, HAND_BACK_TRIES)
            except WorkError as error:
                if error.code not in GONE:
                    say(f"{lease.name} comes back only after its lease: {error}")

    def renew(self) -> None:
        """Renews the leases that are due."""
        now = self._clock()
        with self._lock:
            due = [lease for lease in self._leases.values() if now >= lease.renew_at]
        for lease in due:
            lease.renew_at = self._renewed(lease)

    def _renewed(self, lease: Lease) -> float:
        """Renews a lease; returns when it is due again."""
        now = self._clock()
        left = int(lease.taken_at + LONGEST_SECONDS - now) - 1
        if left <= 0:
            say(f"the lease of {lease.name} cannot be renewed any more: it has lasted for 12 hours")
            return float("inf")
        try:
            self._queue.hide(lease.receipt, min(self._seconds, left), RENEWAL_TRIES)
        except WorkError as error:
            if error.code in GONE:
                say(f"the lease of {lease.name} has ended: another worker may have it, and the first result stands")
                return float("inf")
            say(f"cannot renew the lease of {lease.name}: {error}")
            return self._clock() + min(RETRY_SECONDS, self._seconds / 10)
        return now + self._seconds / 3
