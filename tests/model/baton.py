"""Actors that take turns: greenlets, of which one runs until it pauses or ends.

What happens is therefore a function of the order of turns, and the order is a function of the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet  # type: ignore[import-untyped]

Stopped = GreenletExit
"""Unwinds an actor when the play is over."""


class Actor:
    """One strand of a history. ``wake`` is the time, in seconds, before which it does not go on."""

    def __init__(self, name: str, play: Callable[[], None], wake: float) -> None:
        self.name, self.play, self.wake = name, play, wake
        self.notes: dict[str, Any] = {}
        self.strand: greenlet | None = None


class Stage:
    """Gives turns. Time moves only by :meth:`pause` and when everybody sleeps.

    Args:
        pick: chooses one of those who could go on, given the one who runs.
    """

    def __init__(self, now: float, pick: Callable[[Actor, list[Actor]], Actor]) -> None:
        self.now = now
        self.actors: list[Actor] = []
        self.running: Actor | None = None
        self._pick = pick
        self._director = getcurrent()

    def spawn(self, name: str, play: Callable[[], None], wake: float) -> None:
        """Adds an actor; it gets its first turn when its time has come."""
        self.actors.append(Actor(name, play, wake))

    def run(self) -> None:
        """Plays until everybody is done. Raises what an actor raised first."""
        current = None
        try:
            while self.actors:
                actor = self._next(current)
                self.running, actor.strand = actor, actor.strand or greenlet(actor.play, self._director)
                actor.strand.switch()
                current = None if actor.strand.dead else actor
                if not current:
                    self.actors.remove(actor)
        finally:
            for actor in self.actors:
                if actor.strand:
                    actor.strand.throw(Stopped)

    def alone(self, name: str, play: Callable[[], None]) -> None:
        """Plays one actor when there is no other, without a strand of its own."""
        self.running = Actor(name, play, self.now)
        self.actors = [self.running]
        play()
        self.actors = []

    def pause(self, seconds: float) -> None:
        """Lets the running actor sleep, and others go on."""
        actor = self.running
        assert actor is not None
        actor.wake = self.now + seconds
        if actor.strand:
            self._director.switch()
        else:
            self._next(actor)

    def _next(self, current: Actor | None) -> Actor:
        awake = [a for a in self.actors if a.wake <= self.now]
        if not awake:
            self.now = min(a.wake for a in self.actors)
            awake = [a for a in self.actors if a.wake <= self.now]
        if len(awake) == 1:
            return awake[0]
        return self._pick(current or awake[0], awake)
