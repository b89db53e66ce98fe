"""Writes running summaries from the interval log of a load generator, while the generator writes the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from troop.measure import hdr_log, live
from troop.measure.live import Recent
from troop.measure.live_writer import LiveWriter
from troop.measure.phase_environment import Measured

LATE_SECONDS = 2
"""Seconds by which intervals may be late: generators write one when it has ended, about every second."""


class RunningLog:
    """Counts a log's intervals as they appear. Results come from the whole log, and do not depend on this.

    Args:
        names: of operations, by the tag of their intervals.
    """

    def __init__(self, log: Path, names: Mapping[str, str], measured: Measured) -> None:
        self._log = log
        self._names = names
        begin, seconds, warm_up = measured
        self._by_tag = {tag: hdr_log.Counting(begin, seconds, warm_up_seconds=warm_up) for tag in names}
        self._position = 0
        self._head: list[str] = []

    def recent(self, until: int) -> Recent:
        """Returns what operations did in the last seconds to ``until``, in seconds since 1970."""
        for interval in hdr_log.intervals(self._added(), str(self._log), []):
            if counting := self._by_tag.get(interval.tag or ""):
                counting.take(interval)
        return live.recent({self._names[tag]: one.operation for tag, one in self._by_tag.items()}, until)

    def _added(self) -> Iterator[str]:
        """Yields the head so far, which has the log's moments and columns, and the lines since the last look."""
        yield from self._head
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._position)
            added = file.read()
        complete = added[: added.rfind(b"\n") + 1]
        self._position += len(complete)
        for line in complete.decode(errors="surrogateescape").splitlines(keepends=True):
            if line.startswith(("#", '"')):
                self._head.append(line)
            yield line


def while_writing(results: Path, log: Path, names: Mapping[str, str], measured: Measured) -> LiveWriter:
    """Returns a writer of running summaries, as the context of the generator's run; idle if nothing is measured.

    Args:
        results: the phase's folder.
        names: of operations, by the tag of their intervals.
    """
    running = RunningLog(log, names, measured)
    return LiveWriter(results if measured.seconds else None, running.recent, late_seconds=LATE_SECONDS)
