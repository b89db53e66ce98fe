"""Makes routine repairs without an operator: drops dead letters that are obsolete, and sends others again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from troop.chaos.aws.queue import Queue
from troop.chaos.aws.streams import Streams
from troop.chaos.dead_letters import TRIED_FOR, Letter, batch_of, is_dropped, is_obsolete
from troop.chaos.flows.notifier import Notifier, UnreadableRecord
from troop.chaos.notifications import Notification

MOST_LETTERS = 100
"""The most letters that one call handles; the others wait for the next call."""

MOST_TIME = timedelta(seconds=150)
"""The time after which no letter starts: a letter in progress has the other half of the function's time-out."""


@dataclass(frozen=True)
class DeadLetters:
    """Drops obsolete messages that schedules could not deliver, once an alarm has reported them.

    Attributes:
        schedule_groups, functions: the senders of these messages, as in :func:`~troop.chaos.dead_letters.is_obsolete`.
    """

    queue: Queue
    schedule_groups: Collection[str]
    functions: Collection[str]
    clock: Callable[[], datetime]

    def drop(self, tell: Callable[[Letter], None]) -> Iterator[Letter]:
        """Drops the obsolete letters and yields each one. The other letters stay in the queue, and keep the alarm on.

        Args:
            tell: logs a letter before it is dropped; the log is then its only record.
        """
        now = self.clock()
        for letter in self.queue.letters(MOST_LETTERS):
            if is_obsolete(letter, self.schedule_groups, self.functions, now):
                tell(letter)
                self.queue.remove(letter)
                yield letter


@dataclass
class RedriveResult:
    """The result of one call.

    Attributes:
        notifications: the notifications that were sent.
        letters: the number of letters that were settled.
        waiting: the reason of each letter that stays in the queue.
    """

    notifications: list[Notification] = field(default_factory=list)
    letters: int = 0
    waiting: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Redrive:
    """Sends notifications that could not be sent before."""

    queue: Queue
    streams: Streams
    notifier: Notifier
    clock: Callable[[], datetime]

    def run(self) -> RedriveResult:
        """Sends the notifications of all letters, while there is time.

        A letter that cannot be sent stays in its queue, and each further call tries it again for a day. The alarm stays
        on until an operator has removed the cause.
        """
        redriven = RedriveResult()
        begun = self.clock()
        for letter in self.queue.letters(MOST_LETTERS):
            now = self.clock()
            if now - begun > MOST_TIME:
                redriven.waiting.append("no time left for this letter and those after it")
                break
            if is_dropped(letter, now):
                redriven.waiting.append(f"tried for {TRIED_FOR // timedelta(hours=1)} hours")
                continue
            try:
                for record in self.streams.records(batch_of(letter)):
                    with suppress(UnreadableRecord):  # logged and counted when it first came
                        redriven.notifications += self.notifier.notify(record)
            except Exception as error:  # noqa: BLE001 - the other letters must be tried, too
                redriven.waiting.append(f"{type(error).__name__}: {error}")
                continue
            self.queue.remove(letter)
            redriven.letters += 1
        return redriven
