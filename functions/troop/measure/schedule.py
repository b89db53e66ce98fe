"""Says when operations are due: an open loop, whose operations do not wait for earlier ones to end."""

from __future__ import annotations

import itertools
import math
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

    def __iter__(self) -> Iterator[float]:
        return self

    def __next__(self) -> float:
        due = self._begin + next(self._numbers) * self._seconds
        if due >= self._until:
            raise StopIteration
        while (wait := due - self._clock()) > 0:
            self._sleep(wait)
        if self._clock() >= self._until:
            raise StopIteration
        return due
