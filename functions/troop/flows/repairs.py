"""Repairs that are always the same, and so need nobody: dead letters are dropped, or sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from troop.aws.queue import Queue
from troop.aws.stream import Streams
from troop.chaos.dead_letters import TRIED_FOR, Letter, batch_of, is_dropped, is_obsolete
from troop.chaos.notifications import Notification
from troop.flows.chaos.notify import Notifier, UnreadableRecord

MOST_LETTERS = 100
"""Looked at by one call; those beyond wait for the next."""

MOST_TIME = timedelta(seconds=150)
"""No letter is begun after that: half of the function's time-out is left for one that was begun."""


@dataclass(frozen=True)
class DeadLetters:
    """Drops what schedules could not deliver, once an alarm has told of it."""

    queue: Queue
    schedule_group: str
    clock: Callable[[], datetime]

    def drop(self, tell: Callable[[Letter], None]) -> Iterator[Letter]:
        """What it has dropped, one by one as it does. The rest stays, and the alarm with it.

        Args:
            tell: writes down a letter that is about to be dropped: after that nothing else says that it was there.
        """
        now = self.clock()
        for letter in self.queue.letters(MOST_LETTERS):
            if is_obsolete(letter, self.schedule_group, now):
                tell(letter)
                self.queue.remove(letter)
                yield letter


@dataclass
class Redriven:
    """What one call has done.

    Attributes:
        view: what others were told of now.
        letters: how many letters that has settled.
        waiting: of those that stay in the queue, why.
    """

    notifications: list[Notification] = field(default_factory=list)
    letters: int = 0
    waiting: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Redrive:
    """Tells others, late, of what nobody could be told of."""

    queue: Queue
    streams: Streams
    notifier: Notifier
    clock: Callable[[], datetime]

    def run(self) -> Redriven:
        """Looks at all letters, as long as there is time. One that cannot be sent stays in its queue, and is tried
        again with the next call, for a day; the alarm lasts until somebody has seen to it.
        """
        redriven = Redriven()
        begun = self.clock()
        for letter in self.queue.letters(MOST_LETTERS):
            now = self.clock()
            if now - begun > MOST_TIME:
                redriven.waiting.append("no time was left for this and those after it")
                break
            if is_dropped(letter, now):
                redriven.waiting.append(f"tried for {TRIED_FOR // timedelta(hours=1)} hours")
                continue
            try:
                for record in self.streams.records(batch_of(letter)):
                    with suppress(UnreadableRecord):  # has been logged and counted when it came the first time
                        redriven.notifications += self.notifier.tell(record)
            except Exception as error:  # noqa: BLE001 - whatever it is, the others are tried, too
                redriven.waiting.append(f"{type(error).__name__}: {error}")
                continue
            self.queue.remove(letter)
            redriven.letters += 1
        return redriven
