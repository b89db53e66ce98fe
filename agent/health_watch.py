"""Watches the health of a standing fleet's node, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from agent import health as contract
from agent import metadata
from agent.definition import FAIL_AFTER, Health, Work
from agent.health import FAIL, OK, WORK, Answered, Check, worst
from agent.log import say
from agent.volume import Volume
from troop.work.work_folder import Counts

WORK_SECONDS = 10
"""Seconds between two looks at the counter of a node without `health`."""


@dataclass(frozen=True)
class Condition:
    """The health of the node; moments in seconds since 1970.

    Attributes:
        failures: failed requests in a row.
        failing_since: None while nothing fails.
        detail: why it is not good, or why a failure does not count yet.
    """

    status: str = OK
    failures: int = 0
    failing_since: float | None = None
    detail: str = ""
    checks: tuple[Check, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "failures": self.failures,
            "failing_since": self.failing_since,
            "detail": self.detail,
            "checks": [check.document() for check in self.checks],
        }


def judged(before: Condition, checks: Sequence[Check], now: float, *, is_in_grace: bool) -> Condition:
    """Returns the condition after another request."""
    status = worst(checks)
    bad = next((check for check in checks if check.status == status), None) if status != OK else None
    detail = "" if bad is None else f"{bad.name}: {bad.detail}".rstrip(": ")[: contract.LONGEST_TEXT]
    if is_in_grace and status == FAIL:
        return Condition(detail=f"not ready yet: {detail}"[: contract.LONGEST_TEXT])
    ordered = tuple(sorted(checks, key=lambda check: -contract.STATUSES.index(check.status)))
    condition = Condition(status, 0, None, detail, ordered[: contract.MOST_CHECKS])
    if status != FAIL:
        return condition
    return replace(condition, failures=before.failures + 1, failing_since=before.failing_since or now)


class HealthWatch:
    """Asks for the health of the node from time to time.

    Args:
        counts: returns what the node's workers have done; None if there was no worker.
        is_stopped: whether workers take no tasks at present.
        changed: called when :attr:`urgent` changes.
        fail_after: failures in a row from which the workflow acts on them.

    Attributes:
        condition: the latest one.
    """

    def __init__(
        self,
        address: str,
        health: Health | None,
        work: Work | None,
        counts: Callable[[], Counts | None],
        is_stopped: Callable[[], bool],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.time,
        *,
        fail_after: int = FAIL_AFTER,
    ) -> None:
        self._fail_after = fail_after
        self._address, self._health, self._counts = address, health, counts
        self._is_stopped, self._changed, self._clock = is_stopped, changed, clock
        self._volume = None if work is None else Volume(work)
        self._grace_until = 0.0
        self._lock = threading.Lock()
        self.condition = Condition()

    @property
    def urgent(self) -> tuple[str, bool]:
        """What the workflow must know at once: the status, and whether it may act on the failures."""
        condition = self.condition
        return condition.status, condition.failures >= self._fail_after

    def start(self) -> None:
        """Begins the grace, and starts the thread."""
        self.begin_grace()
        threading.Thread(target=self._watch, name="health", daemon=True).start()

    def begin_grace(self) -> None:
        """Lets failures not count for some time, because the application starts."""
        with self._lock:
            self._grace_until = self._clock() + (self._health.grace if self._health else 0)
            self.condition = Condition()
            if self._volume is not None:
                self._volume.reset()

    def _watch(self) -> None:
        every = self._health.every if self._health else WORK_SECONDS
        while True:
            began = time.monotonic()
            try:
                self.poll()
            except Exception as error:  # noqa: BLE001 - a node without this watch would look healthy for ever
                say(f"cannot ask for the health of this node: {error!r}")
            time.sleep(max(0.5, every - (time.monotonic() - began)))

    def poll(self) -> None:
        """Asks once."""
        grace_until, health = self._grace_until, self._health
        answered = Answered(())
        if health is not None:
            answered = contract.ask(self._address, health, and_loopback=metadata.is_real())
        with self._lock:
            if grace_until != self._grace_until:
                return  # a restart has begun meanwhile
            before, urgent = self.condition, self.urgent
            checks = [check for check in answered.checks if check.name != WORK or self._volume is None]
            checks += filter(None, [self._work_done(answered.work)])
            is_in_grace = self._clock() < grace_until
            self.condition = judged(before, checks, self._clock(), is_in_grace=is_in_grace)
        if before.status != self.condition.status:
            say(f"health: {self.condition.status}" + (f", {self.condition.detail}" if self.condition.detail else ""))
        if urgent != self.urgent:
            self._changed()

    def _work_done(self, own: float | None) -> Check | None:
        if self._volume is None:
            return None
        counts = self._counts() or Counts()
        is_idle = counts.idle_since is not None or self._is_stopped()
        return self._volume.observe(time.monotonic(), counts.done + (own or 0), is_idle=is_idle)
