"""Watches this node's server while drivers send requests: checks that it lives, and reads its counters.

Recorded as ``request`` of web and mobile nodes and ``validate`` of the authentication service, with the times that the
service itself counts. Each request makes one call of the authentication service. Of memcached, each node has
rows ``gets`` and ``writes``, with the values that were evicted for lack of memory as errors of the writes.

If the server has died or is silent for too long, the script ends with the code that makes the cell invalid.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import server
from node import LOST, Phase

from troop.measure import hdr_log
from troop.measure.collectors import output
from troop.measure.operations import SERVICE, Operation, PerSecond
from troop.measure.separate import Separate

SILENCE = 30.0
"""Seconds without an answer after which a server counts as dead."""


@dataclass(frozen=True)
class Reading:
    """The counts of a server at ``at``, in seconds since 1970."""

    at: float
    counters: Mapping[str, Any]


class Watch:
    """Readings of the server about once a second."""

    def __init__(self, phase: Phase) -> None:
        self._phase, self._process = phase, server.started_process(phase)
        self._heard = time.monotonic()
        self.readings: list[Reading] = []

    def until(self, moment: float) -> None:
        """Waits until ``moment``, and checks the server meanwhile."""
        while True:
            if not self._process.is_alive:
                self._lost("has died")
            if time.monotonic() - self._heard > SILENCE:
                self._lost(f"has been silent for {SILENCE:.0f} s")
            left = moment - time.time()
            if left <= 0:
                return
            time.sleep(min(left, 0.5))

    def read(self) -> None:
        """Makes one reading, if the server answers now."""
        try:
            counters = server.counters(self._phase)
        except (OSError, ValueError) as error:
            print(f"no answer: {error}")
            return
        self._heard = time.monotonic()
        self.readings.append(Reading(time.time(), counters))

    def _lost(self, event: str) -> None:
        print(server.log_tail(self._phase))
        print(
            f"the server of the role {self._phase.role} (process {self._process.pid}) {event} during the measured phase"
        )
        sys.exit(LOST)


def main() -> None:
    phase = Phase.of_script()
    begin, end = phase.measured_from, phase.measured_from + phase.measured_seconds
    watch = Watch(phase)
    moment = time.time()
    while moment < end:
        watch.until(moment)
        if moment < begin:
            watch.readings.clear()  # the last reading of the warm-up is the first that counts
        watch.read()
        moment = max(moment + 1, time.time())
    watch.until(end)
    watch.read()
    if len(watch.readings) < 2:
        sys.exit("the server answered too seldom to count its requests")
    if phase.role == "data":
        output.write_rows("memcached", rows(watch.readings), phase.results)
    elif phase.role != "proxies":
        operations = {name: operation(name, watch.readings, (begin, end)) for name in watch.readings[0].counters}
        hdr_log.write(operations, phase.results)
        print({name: one.times.count for name, one in operations.items()})


def operation(name: str, readings: Sequence[Reading], seconds: tuple[float, float]) -> Operation:
    """Returns the requests between the first and the last reading.

    Args:
        seconds: start and end of the measured time, in seconds since 1970.
    """
    first = math.floor(seconds[0])
    length = math.ceil(seconds[1]) - first
    result = Operation(per_second=PerSecond(first, [0] * length, [0] * length), timing=SERVICE)
    for one, other in zip(readings, readings[1:]):
        second = min(max(int((one.at + other.at) / 2) - first, 0), length - 1)
        before, after = one.counters[name], other.counters[name]
        for microseconds, count in after["times"].items():
            if grown := count - before["times"].get(microseconds, 0):
                result.times.record(int(microseconds), grown)
                result.per_second.count[second] += grown
        if failed := after["errors"] - before["errors"]:
            result.errors["5xx"] = result.errors.get("5xx", 0) + failed
            result.per_second.errors[second] += failed
    return result


def rows(readings: Sequence[Reading]) -> list[Separate]:
    """Returns memcached's operations between the first and the last reading."""
    first, last = readings[0], readings[-1]
    seconds = last.at - first.at

    def grown(name: str) -> int:
        return int(last.counters.get(name, 0)) - int(first.counters.get(name, 0))

    evicted = {"evicted": grown("evictions")} if grown("evictions") else {}
    return [
        Separate("memcached", "gets", grown("cmd_get"), per_second=grown("cmd_get") / seconds),
        Separate("memcached", "writes", grown("cmd_set"), per_second=grown("cmd_set") / seconds, errors=evicted),
    ]


if __name__ == "__main__":
    main()
