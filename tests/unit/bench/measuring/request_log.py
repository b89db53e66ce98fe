"""Logs of requests, such as drivers write, and the operations that Troop makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from troop.bench.definition.planned_fault import Expectation, PlannedFault
from troop.bench.measuring.failure import Happened, Load
from troop.measure.collectors.window import Counted, Window
from troop.measure.empty import STEP
from troop.measure.operations import Operation

BEGIN = 1_790_000_000.0


class Request(NamedTuple):
    """A request that ended so many seconds after :data:`BEGIN`; ``kind`` is that of its error."""

    ended: float
    micros: int = 5_000
    kind: str = ""


def steady(until: float, per_second: int = 20, since: float = 0.0) -> list[Request]:
    """An open loop whose requests each take the same time."""
    distance = 1 / per_second
    return [Request(since + (n + 0.5) * distance) for n in range(round((until - since) * per_second))]


def recorded(requests: Iterable[Request], seconds: float, begin: float = BEGIN, warm_up: float = 0.0) -> Operation:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(STEP, "1")
        totals = Counted(Window(begin, begin + seconds, warm_up))
        for one in requests:
            if one.kind:
                totals.error("get", BEGIN + one.ended, one.kind)
            else:
                totals.ok("get", BEGIN + one.ended, one.micros)
    return totals.operations["get"]


def load(requests: Iterable[Request], seconds: float, set_rate: float | None = 20) -> Load:
    return Load([recorded(requests, seconds)], BEGIN, seconds, set_rate)


def stopped(at: float, expect: Expectation | None = None, number: int = 1, lasts: int | None = None) -> Happened:
    """One of three servers that stopped, or paused, so many seconds after :data:`BEGIN`."""
    fault = PlannedFault(int(at), "pause" if lasts else "stop", role="servers", lasts=lasts, expect=expect)
    began, ended = BEGIN + at, BEGIN + at + lasts if lasts else None
    node = {"id": "i-1", "role": "servers", "rank": 2, "zone": "a", "began_at": began, "ended_at": ended}
    return Happened(number, fault, "stop 1 of servers", (node,), 3, began_at=began, ended_at=ended)
