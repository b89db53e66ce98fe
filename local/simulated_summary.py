"""Creates the files of a simulated node: its registration, and phase summaries with synthetic, repeatable figures."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping
from typing import Any

from troop.measure.histogram import Histogram
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import FAILED, LEVELS, LOST, OK, SERIES, Clock, Samples, Summary
from troop.measure.windows import Windows, step_for

NODE_FORMAT = "troop.node/1"
_OPERATIONS = 1000
_CLOCK = Clock(offset_seconds=0.002, uncertainty_seconds=0.01)
_MOST_SAMPLES = 600


def registration(instance_id: str, facts: Mapping[str, str]) -> dict[str, Any]:
    """Creates the registration of a node. `facts`: role, zone, address, instance_type and image."""
    clock = {"offset_seconds": _CLOCK.offset_seconds, "uncertainty_seconds": _CLOCK.uncertainty_seconds}
    return {
        "format": NODE_FORMAT,
        "id": instance_id,
        **facts,
        "architecture": "simulated",
        "kernel": "simulated",
        "agent": "simulated",
        "python": "simulated",
        "registered_at": time.time(),
        "clock": clock,
    }


def summary(member: Mapping[str, Any], barrier: Mapping[str, Any], *, has_failed: bool) -> dict[str, Any]:
    """Creates the summary of a phase. `member`: of the roster. `barrier`: the released barrier of the phase. The
    parameter `slowdown` of a point multiplies its times.
    """
    started = barrier["start_at"] or time.time()
    warm_up, measured = float(barrier["warm_up_seconds"]), float(barrier["measured_seconds"])
    begun = started + warm_up
    slowdown = float(barrier.get("parameters", {}).get("slowdown", 1))
    node_summary = Summary(
        node=member["id"],
        role=member["role"],
        rank=member["rank"],
        phase=barrier["phase"],
        outcome=FAILED if has_failed else OK,
        reason="the script ended with exit code 1" if has_failed else None,
        exit_code=1 if has_failed else 0,
        clock=_CLOCK,
        started_at=started,
        ended_at=begun + measured,
        measured_from=begun if measured else None,
        measured_seconds=measured,
        warm_up_seconds=warm_up if measured else 0.0,
        operations={"read": _operation(member["id"], begun, measured, warm_up, slowdown)} if measured else {},
        samples=_samples(int(started), min(int(warm_up + measured), _MOST_SAMPLES)),
    )
    return node_summary.document()


def interrupted(notice: Mapping[str, str]) -> dict[str, Any]:
    """Returns the changes of a summary for a phase in which the node received a Spot interruption notice."""
    reason = f"spot interruption: {notice['action']} at {notice['time']}"
    return {"outcome": LOST, "reason": reason, "exit_code": None, "interruption": dict(notice)}


def _operation(seed: str, measured_from: float, seconds: float, warm_up: float, slowdown: float) -> Operation:
    """Creates operations with the same rate in warm-up and measurement; the first ones take longer."""
    dice, first = random.Random(seed), math.floor(measured_from - warm_up)
    length = math.ceil(measured_from + seconds) - first
    per_second = PerSecond(first, [0] * length, [0] * length)
    over_time = Windows(first, step_for(warm_up + seconds))
    operation = Operation(Histogram(), {"timeout": 1}, per_second, _OPERATIONS * 4096, over_time)
    per_second.errors[math.floor(measured_from) - first] = 1
    before = math.ceil(_OPERATIONS * warm_up / seconds)
    drawn = min(before, _OPERATIONS)
    for n in range(-drawn, _OPERATIONS):
        is_measured = n >= 0
        since = (n + 0.5) / (_OPERATIONS if is_measured else drawn)
        at, count = measured_from + since * (seconds if is_measured else warm_up), 1 if is_measured else before // drawn
        micros = int(dice.lognormvariate(8, 0.6) * slowdown * (1 if is_measured else 1 + 3 * since**2)) + 1
        over_time.record(at, micros, count)
        per_second.count[math.floor(at) - first] += count
        if is_measured:
            operation.times.record(micros)
    return operation


def _samples(start: int, seconds: int) -> Samples:
    return Samples(start, 1, {name: [100 if name in LEVELS else 1000] * seconds for name in SERIES})
