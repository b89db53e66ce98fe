"""Says when operations are due: an open loop, whose operations do not wait for earlier ones to end."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterator
from typing import Callable


class Schedule:
    """An iterator over moments at equal distances, for any number of threads together.

    It yields each moment when it has come. A thread that is late gets the moments that it missed without a pause, so
    that no operation is omitted: their response times contain the delay.

    Args:
        per_second: moments per second, of all processes together.
        begin: the first moment, by ``clock``.
        until: the end; moments from then on are not yielded, and neither are missed ones.
        clock: seconds.
        sleep: waits for seconds.
        share: the number of this process, from 0, and the number of processes that share the moments in turn.

    Raises:
        ValueError: the rate is not a number above 0, or the share is invalid.
    """

    def __init__(
        self,
        per_second: float,
        begin: float,
        until: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        if not (math.isfinite(per_second) and per_second > 0):
            raise ValueError(f"the rate is {per_second}: must be a number above 0")
        number, processes = share
        if not 0 <= number < processes:
            raise ValueError(f"the share is {number} of {processes}: must be a number from 0, below the second")
        self._seconds, self._begin, self._until = 1 / per_second, begin, until
        self._clock, self._sleep = clock, sleep
        self._numbers = itertools.count(number, processes)  # next() of a counter is atomic
        self._processes = processes
        self._stopped: list[int] = []  # the last number of each thread, which it did not get
        self._pending: set[float] = set()
        self._unmatched = 0
        self._local = threading.local()

    def __iter__(self) -> Iterator[float]:
        return self

    def __next__(self) -> float:
        number = next(self._numbers)
        due = self._moment(number)
        while due < self._until and (wait := due - self._clock()) > 0:
            self._sleep(wait)
        if due >= self._until or self._clock() >= self._until:
            self._stopped.append(number)
            raise StopIteration
        self._pending.add(due)
        self._local.due = due
        return due

    def end(self, due: float | None) -> None:
        """Notes that an operation has ended, of one thread after the other.

        Args:
            due: its moment; None for the last one that this thread got.
        """
        if due not in self._pending:
            due = getattr(self._local, "due", None)
            self._unmatched += due is None
        if due is not None:
            self._pending.discard(due)

    def unfinished(self, seconds: float) -> int:
        """Returns the number of operations that had not ended at the end, and were due more than ``seconds`` before.

        0 if no thread has reached the end: then the script left the schedule, as in favour of another rate.
        """
        if not self._stopped:
            return 0
        latest, moments = self._until - seconds, set(self._pending)
        moments.update(map(self._moment, self._stopped))
        for number in itertools.count(max(self._stopped) + self._processes, self._processes):
            if (due := self._moment(number)) >= latest:
                break
            moments.add(due)
        return max(0, sum(due < latest for due in moments) - self._unmatched)

    def _moment(self, number: int) -> float:
        return self._begin + number * self._seconds
