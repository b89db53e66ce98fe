"""Waits for the workflow at a barrier: an object whose state is hold, then release or end."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable

from agent.clock import ClockWatch
from agent.errors import UNREADABLE
from agent.log import say
from agent.store import Store
from troop.measure.s3.web import ERRORS, Answer, Web

FORMAT = "troop.barrier/1"
HOLD, RELEASE, END = "hold", "release", "end"
URL_SECONDS = 3600
RENEW_AFTER = 2700.0
FIRST_PAUSE, LATER_PAUSE, LATER = 1.0, 2.0, 120.0
"""Seconds between two reads: at first, and after :data:`LATER` seconds. Far shorter than the time before a start."""
REFUSED_PAUSES = 1.0, 5.0
"""Seconds after a refusal and after a second one in a row. The first is usual when a role's session ends."""
POLL_TIMEOUT = 2.0
"""Seconds for an answer of S3. One request that hangs, or one refusal, takes less than the least time from a release to
the common start, so the node is not late.
"""


@dataclass(frozen=True)
class Fault:
    """A planned fault, with moments in seconds since 1970, by S3's clock.

    Attributes:
        number: in its phase, from 1.
        end_at: None if it does not end.
        nodes: ids of its victims.
        script: a file from the benchmark's folder, for the method script.
        delay_ms: for the method slow.
    """

    number: int
    method: str
    begin_at: float
    end_at: float | None
    nodes: frozenset[str]
    script: str | None = None
    delay_ms: int | None = None


@dataclass(frozen=True)
class Release:
    """What the workflow releases: a script and its times.

    Attributes:
        start_at: common start of all nodes in seconds since 1970, by S3's clock; None: at once.
        point: number of the point, from 1; None for a phase that runs once.
        parameters: of the point, in addition to the benchmark's.
        nodes: for some roles, the number of nodes that take part: those with the lowest ranks.
        start_up_seconds: before the common start, in which the script starts.
        faults: on nodes of the cell.
        step_seconds: of the steps in which scripts store times; None for as long as they choose.
        repair: the id of the repair for which an application is restarted; None for all else.
    """

    script: str
    timeout_seconds: float
    warm_up_seconds: float
    measured_seconds: float
    start_at: float | None
    point: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    start_up_seconds: float = 0.0
    faults: tuple[Fault, ...] = ()
    step_seconds: int | None = None
    repair: str | None = None

    def includes(self, role: str, rank: int) -> bool:
        """Checks whether a node takes part."""
        return rank < self.nodes.get(role, rank + 1)


class Address:
    """An object's presigned URL, renewed before it expires or after a refusal."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self._url, self._until = "", 0.0

    def url(self) -> str:
        if time.monotonic() >= self._until:
            self._url = self._store.presign(self._key, URL_SECONDS)
            self._until = time.monotonic() + RENEW_AFTER
        return self._url

    def refuse(self) -> None:
        """Discards the URL: the credentials that signed it may have expired."""
        self._until = 0.0


class Waiter:
    """Reads objects over one connection, and S3's clock from the answers."""

    def __init__(self, store: Store, watch: ClockWatch, sleep: Callable[[float], None] = time.sleep) -> None:
        self._store, self._watch, self._sleep = store, watch, sleep
        self._web = Web(POLL_TIMEOUT)

    def wait(self, key: str) -> Release | None:
        """Waits until the barrier says release or end; returns None for end.

        There is no time limit: the agent's expiry ends the wait.
        """
        address, started = Address(self._store, key), time.monotonic()
        while True:
            state = read(self.fetch(address))
            if isinstance(state, Release):
                return state
            if state == END:
                return None
            pause = FIRST_PAUSE if time.monotonic() - started < LATER else LATER_PAUSE
            self._sleep(pause * random.uniform(0.7, 1.1))

    def fetch(self, address: Address) -> bytes | None:
        """Returns an object's content; logs the reason and returns None if this request failed."""
        for pause in REFUSED_PAUSES:
            try:
                answer = self._ask(address.url())
            except ERRORS as error:
                say(f"no answer from S3: {error!r}")
                return None
            if answer.status == 200:
                return answer.body
            text = " ".join(answer.body.decode(errors="replace").split())[:300]
            say(f"S3 answered with status {answer.status}: {text}")
            if answer.status not in (400, 401, 403):
                return None
            address.refuse()
            self._sleep(pause)
        return None

    def _ask(self, url: str) -> Answer:
        sent = time.time()
        answer = self._web.ask(url)
        self._watch.saw(answer.date, sent, time.time())
        return answer

    def measure_clock(self, key: str, looks: int = 6) -> None:
        """Makes several requests within a second, so that the clock's uncertainty is small."""
        address = Address(self._store, key)
        for _ in range(looks):
            self.fetch(address)
            self._sleep(1 / looks)


def read(body: bytes | None) -> Release | str:
    """Returns a barrier's state: a release, :data:`HOLD` or :data:`END`. An unreadable barrier is logged and means
    hold.
    """
    if body is None:
        return HOLD
    try:
        document = json.loads(body)
        if document["format"] != FORMAT or document["state"] not in (HOLD, RELEASE, END):
            raise ValueError(f"format {document['format']!r}, state {document['state']!r}")
        return _release(document) if document["state"] == RELEASE else str(document["state"])
    except UNREADABLE as error:
        say(f"cannot read a barrier: {error!r}")
        return HOLD


def _release(document: Mapping[str, Any]) -> Release:
    start_at, point, step_seconds = document["start_at"], document.get("point"), document.get("step_seconds")
    return Release(
        script=str(document["script"]),
        timeout_seconds=float(document["timeout_seconds"]),
        warm_up_seconds=float(document["warm_up_seconds"]),
        measured_seconds=float(document["measured_seconds"]),
        start_at=None if start_at is None else float(start_at),
        point=None if point is None else int(point),
        parameters=dict(document.get("parameters") or {}),
        nodes={str(role): int(count) for role, count in (document.get("nodes") or {}).items()},
        start_up_seconds=float(document.get("start_up_seconds", 0)),
        faults=tuple(map(_fault, document.get("faults") or ())),
        step_seconds=None if step_seconds is None else int(step_seconds),
    )


def _fault(document: Mapping[str, Any]) -> Fault:
    end_at, script, delay_ms = document["end_at"], document.get("script"), document.get("delay_ms")
    return Fault(
        number=int(document["number"]),
        method=str(document["method"]),
        begin_at=float(document["begin_at"]),
        end_at=None if end_at is None else float(end_at),
        nodes=frozenset(map(str, document["nodes"])),
        script=None if script is None else str(script),
        delay_ms=None if delay_ms is None else int(delay_ms),
    )
