"""Watches this node's server while drivers write: reads its counters once a second, and checks that it lives.

Recorded as ``coordinate``, the writes that the server took from drivers, and ``apply``, those that it applied as a
replica; of reads, ``coordinate-read`` and ``answer``; and :mod:`maintenance`. Times come from Cassandra's histograms,
whose buckets are a fifth wide; as in nodetool, a value counts as the largest of its bucket. Errors by kind:
``timeouts``, ``unavailables``, ``failures``; ``dropped``, requests that were too late for the replica.

If the server has died or is silent for too long, the script ends with the code that makes the cell invalid.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cluster
import server
from maintenance import Maintenance
from node import LOST, Phase, this_phase
from server import RefusedError, SilentError

from troop.measure import hdr_log
from troop.measure.operations import Operation, PerSecond

SILENCE = 30.0
"""Seconds without an answer after which a server counts as dead."""

OPERATIONS = {
    cluster.WRITE: {"coordinate": "coordinated", "apply": "applied"},
    cluster.READ: {"coordinate-read": "reads_coordinated", "answer": "reads_answered"},
}
"""The counter of each operation, by what drivers do."""
ERRORS = {
    "coordinate": {"timeouts": "timeouts", "unavailables": "unavailables", "failures": "failures"},
    "apply": {"dropped": "dropped"},
    "coordinate-read": {
        "timeouts": "read_timeouts",
        "unavailables": "read_unavailables",
        "failures": "read_failures",
    },
    "answer": {"dropped": "reads_dropped"},
}
"""The counter of each kind of error, by operation."""


@dataclass(frozen=True)
class Reading:
    """A server's counters at ``at``, in seconds since 1970."""

    at: float
    totals: Mapping[str, int]


def offsets(count: int) -> list[int]:
    """Returns the largest microseconds of each bucket of Cassandra; for the last, which has no end, its smallest."""
    bounds = [1]
    while len(bounds) < count - 1:
        bounds.append(max(bounds[-1] + 1, round(bounds[-1] * 1.2)))
    return [*bounds, bounds[-1] + 1]


def operation(
    name: str,
    counter: str,
    readings: Sequence[Reading],
    before: Sequence[int],
    after: Sequence[int],
    seconds: tuple[float, float],
) -> Operation:
    """Returns the operations between the first and the last reading.

    Args:
        counter: the one of ``server.TOTALS`` that counts them.
        before: the buckets at the first reading; ``after`` at the last.
        seconds: start and end of the measured time, in seconds since 1970.
    """
    first = math.floor(seconds[0])
    length = math.ceil(seconds[1]) - first
    result = Operation(per_second=PerSecond(first, [0] * length, [0] * length))
    for microseconds, old, new in zip(offsets(len(after)), before, after):
        if new > old:
            result.times.record(microseconds, new - old)
    for one, other in zip(readings, readings[1:]):
        second = min(max(int((one.at + other.at) / 2) - first, 0), length - 1)
        grown = {total: max(0, other.totals[total] - one.totals[total]) for total in one.totals}
        result.per_second.count[second] += grown[counter]
        for kind, total in ERRORS[name].items():
            result.per_second.errors[second] += grown[total]
            if grown[total]:
                result.errors[kind] = result.errors.get(kind, 0) + grown[total]
    return result


class Watch:
    """Readings of the server at full seconds of the measured time."""

    def __init__(self, phase: Phase) -> None:
        self._phase, self._process = phase, server.started(phase)
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
            if left > 0.5 and not self.readings:
                self._heard = time.monotonic()  # there has been no request yet

    def read(self, *more: dict[str, Any]) -> list[Any]:
        """Makes one reading and returns the answers to further questions; empty if the server does not answer now."""
        questions = [server.count(mbean) for mbean in server.TOTALS.values()]
        try:
            answers = server.ask(self._phase.address, [*questions, *more], seconds=5)
        except (SilentError, RefusedError) as error:
            print(error)
            return []
        self._heard = time.monotonic()
        self.readings.append(Reading(time.time(), dict(zip(server.TOTALS, answers))))
        return answers[len(questions) :]

    def certainly(self, *more: dict[str, Any]) -> list[Any]:
        """Repeats :meth:`read` until there is an answer."""
        while not (answers := self.read(*more)):
            self.until(time.time() + 0.2)
        return answers

    def _lost(self, event: str) -> None:
        print(server.log_tail(self._phase))
        print(f"the server {self._phase.address} (process {self._process.pid}) {event} during the measured phase")
        sys.exit(LOST)


def main() -> None:
    phase = this_phase()
    begin, end = phase.measured_from, phase.measured_from + phase.measured_seconds
    counters = {name: one for kind in cluster.kinds(phase.parameters) for name, one in OPERATIONS[kind].items()}
    histograms = [server.buckets(server.TOTALS[one]) for one in counters.values()]
    watch, maintenance = Watch(phase), Maintenance(phase)
    watch.certainly(*histograms)  # a server's first answer takes longer than all others
    watch.readings.clear()
    watch.until(begin)
    before = watch.certainly(*histograms)
    maintenance.start()
    moment = begin + 1
    while moment < end:
        watch.until(moment)
        watch.read()
        moment = max(moment + 1, math.floor(time.time() - begin) + begin + 1)
    watch.until(end)
    after = watch.certainly(*histograms)
    operations = {
        name: operation(name, counter, watch.readings, old, new, (begin, end))
        for (name, counter), old, new in zip(counters.items(), before, after)
    }
    operations.update(maintenance.stop())
    hdr_log.write(operations, phase.results)
    print({name: one.times.count for name, one in operations.items()})


if __name__ == "__main__":
    main()
