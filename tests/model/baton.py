"""Actors that take turns: greenlets, of which one runs until it pauses or ends.

What happens is therefore a function of the order of turns, and the order is a function of the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
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
        self.turn = 0


class Stage:
    """Gives turns. Time moves only by :meth:`pause`, and when everybody sleeps: then to the next actor's time, or to
    the next thing that is due by :meth:`at`.

    Args:
        pick: chooses one of those who could go on, given the one who runs.
    """

    def __init__(self, now: float, pick: Callable[[Actor, list[Actor]], Actor]) -> None:
        self.now = now
        self.running: Actor | None = None
        self.spawned = 0
        self._living = 0
        self._awake: list[Actor] = []
        self._later: list[tuple[float, int, Actor | Callable[[], object]]] = []
        self._turns = count(1)
        self._pick = pick
        self._director = getcurrent()

    def spawn(self, name: str, play: Callable[[], None], wake: float) -> None:
        """Adds an actor; it gets its first turn when its time has come."""
        self.spawned += 1
        self._living += 1
        self._sleep(Actor(name, play, wake), wake)

    def at(self, when: float, act: Callable[[], object]) -> None:
        """Does something when its time has come, as the world does: it takes no turn, and cannot pause."""
        heappush(self._later, (max(when, self.now), next(self._turns), act))

    def run(self) -> None:
        """Plays until every actor is done. Raises what an actor raised first."""
        current = None
        try:
            while self._living:
                self._go(self._next(current))
                current = self.running
                assert current is not None
                assert current.strand is not None
                if current.strand.dead:
                    self._living -= 1
                    self._awake.remove(current)
                    current = None
        finally:
            self.running = None
            for actor in [*self._awake, *(entry[2] for entry in self._later)]:
                if isinstance(actor, Actor) and actor.strand:
                    actor.strand.throw(Stopped)

    def pause(self, seconds: float) -> None:
        """Lets the running actor sleep, at most until somebody calls :meth:`rouse`, and others go on."""
        actor = self.running
        assert actor is not None
        if seconds > 0:
            wake = self.now + seconds
            if len(self._awake) == 1 and (not self._later or self._later[0][0] > wake):
                self.now = actor.wake = wake  # nothing else is due: it goes on
                return
            self._awake.remove(actor)
            self._sleep(actor, wake)
        chosen = self._next(actor)
        if chosen is not actor:
            self._go(chosen)

    def rouse(self, actor: Actor) -> None:
        """Wakes a sleeping actor before its time."""
        if actor.wake > self.now:
            self._sleep(actor, self.now)

    def _sleep(self, actor: Actor, wake: float) -> None:
        actor.wake, actor.turn = wake, next(self._turns)
        heappush(self._later, (wake, actor.turn, actor))

    def _go(self, actor: Actor) -> None:
        self.running = actor
        if actor.strand is None:
            actor.strand = greenlet(actor.play, self._director)
        actor.strand.switch()

    def _next(self, current: Actor | None) -> Actor:
        later, awake = self._later, self._awake
        while not awake or (later and later[0][0] <= self.now):
            self._due(later[0][0])
        if len(awake) == 1:
            return awake[0]
        return self._pick(current or awake[0], awake)

    def _due(self, when: float) -> None:
        """Moves the time to the first of those who wait for theirs, and lets it go on."""
        _, turn, one = heappop(self._later)
        self.now = max(self.now, when)
        if not isinstance(one, Actor):
            one()
        elif one.turn == turn:  # not roused since
            self._awake.append(one)
