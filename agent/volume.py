"""Checks whether a node does enough work, by a counter. Pure."""

from __future__ import annotations

from agent.definition import Work
from agent.health import FAIL, OK, WORK, Check


class Volume:
    """The work of a node in periods of time. Time in which there is nothing to do does not count."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._last: tuple[float, float] | None = None
        self._seconds = 0.0
        self._rise = 0.0
        self._check: Check | None = None

    def observe(self, now: float, counter: float, *, is_idle: bool) -> Check | None:
        """Adds an observation. Returns the check of the last whole period; None before the first.

        Args:
            now: seconds of a clock that never goes back.
            counter: of work; a smaller one than before is that of an application that began again.
            is_idle: whether the node has had nothing to do since the last observation.
        """
        if self._last is not None:
            before, last = self._last
            self._rise += counter - last if counter >= last else counter
            self._seconds += 0.0 if is_idle else now - before
        self._last = now, counter
        is_failing = self._check is not None and self._check.status == FAIL
        if is_idle and is_failing:
            self.reset()
        elif self._seconds >= self._work.every or (is_failing and self._rise >= self._work.at_least):
            self._check = self._judged(self._rise)
            self._seconds = self._rise = 0.0
        return self._check

    def reset(self) -> None:
        """Begins again, for example after a restart."""
        self._last, self._seconds, self._rise, self._check = None, 0.0, 0.0, None

    def _judged(self, rise: float) -> Check:
        work, is_enough = self._work, rise >= self._work.at_least
        detail = f"did {rise:g} of at least {work.at_least} in {work.every} s with work to do"
        todo = "" if is_enough else "Read the application's log on this node: it may hang."
        return Check(WORK, OK if is_enough else FAIL, rise, work.at_least, detail, todo, not is_enough)
