"""Actors that take turns: threads of which one runs at a time, and says itself when another may.

What happens is therefore a function of the order in which turns are given, and that of a seed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Stopped(BaseException):
    """Unwinds an actor when the play is over."""


class Actor:
    """One strand of a history. ``wake`` is the time, in seconds, before which it does not go on."""

    def __init__(self, name: str, play: Callable[[], None], wake: float) -> None:
        self.name, self.play, self.wake = name, play, wake
        self.turn = threading.Lock()
        self.turn.acquire()
        self.notes: dict[str, Any] = {}
        self.thread: threading.Thread | None = None


class Stage:
    """Gives turns. Time moves only by :meth:`pause` and when everybody sleeps.

    Args:
        pick: chooses one of those who could go on, given the one who runs.
    """

    def __init__(self, now: float, pick: Callable[[Actor, list[Actor]], Actor]) -> None:
        self.now = now
        self.actors: list[Actor] = []
        self.running: Actor | None = None
        self.failure: BaseException | None = None
        self._pick = pick
        self._over = threading.Lock()

    def spawn(self, name: str, play: Callable[[], None], wake: float) -> None:
        """Adds an actor; it gets its first turn when its time has come."""
        self.actors.append(Actor(name, play, wake))

    def run(self) -> None:
        """Plays until everybody is done. Raises what an actor raised first."""
        if self.actors:
            self._over.acquire()
            self._hand_to(self._next(None))
            self._over.acquire()
            self._over.release()
        for actor in self.actors:
            if actor.thread:
                actor.turn.release()  # whoever still waits finds the play over
                actor.thread.join()
        if self.failure:
            raise self.failure

    def alone(self, name: str, play: Callable[[], None]) -> None:
        """Plays one actor when there is no other, without a thread of its own."""
        self.running = Actor(name, play, self.now)
        self.actors = [self.running]
        play()
        self.actors = []

    def pause(self, seconds: float) -> None:
        """Lets the running actor sleep, and others go on."""
        actor = self.running
        assert actor is not None
        actor.wake = self.now + seconds
        following = self._next(actor)
        if following is not actor:
            self._hand_to(following)
            actor.turn.acquire()
            if self.failure:
                raise Stopped
            self.running = actor

    def _next(self, current: Actor | None) -> Actor:
        awake = [a for a in self.actors if a.wake <= self.now]
        if not awake:
            self.now = min(a.wake for a in self.actors)
            awake = [a for a in self.actors if a.wake <= self.now]
        if len(awake) == 1:
            return awake[0]
        return self._pick(current or awake[0], awake)

    def _hand_to(self, actor: Actor) -> None:
        if actor.thread is None:
            actor.thread = threading.Thread(target=self._live, args=(actor,), daemon=True)
            self.running = actor
            actor.thread.start()
        else:
            actor.turn.release()

    def _live(self, actor: Actor) -> None:
        self.running = actor
        try:
            actor.play()
        except Stopped:
            return
        except BaseException as error:  # noqa: BLE001 - whatever it is, the play's caller gets it
            self.failure = self.failure or error
        self.actors.remove(actor)
        if self.failure or not self.actors:
            self._over.release()
        else:
            self._hand_to(self._next(None))
