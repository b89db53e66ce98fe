"""Holds one task of a worker."""

from __future__ import annotations

import json
import os
import random
import re
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from troop.work.counters import Counters
from troop.work.errors import WorkError, say
from troop.work.leases import Leases
from troop.work.queue import GONE, Message, Queue
from troop.work.results import Results

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True)
class Tools:
    """What tasks of a process need."""

    queue: Queue
    results: Results
    leases: Leases
    counters: Counters
    lease_seconds: int


class Task:
    """A task in hand. It is over when its result is delivered, or when it is done or handed back.

    In a ``with`` block, a task that is not over at the end is done. An exception is printed and ends only this task,
    which is handed back after a pause.

    Attributes:
        id: of the task; the name of its result.
        body: its text.
        tries: how often it was received, with this time. SQS counts approximately.
    """

    def __init__(self, id: str, body: str, message: Message, tools: Tools) -> None:
        self.id, self.body, self.tries = id, body, message.tries
        self._receipt, self._tools, self._pid = message.receipt, tools, os.getpid()
        self._is_over = False

    def deliver(self, result: bytes | str) -> bool:
        """Stores the result, and removes the task from the queue. Returns whether this result is the one that stands:
        another worker may have delivered before.

        Args:
            result: text is stored as UTF-8.

        Raises:
            WorkError: the result cannot be stored, or the task is over.
        """
        self._check_open()
        content = result.encode() if isinstance(result, str) else result
        stands = self._tools.results.put(self.id, content, f"{self._pid}-{uuid.uuid4().hex}")
        self._remove()
        return stands

    def done(self) -> None:
        """Removes the task from the queue, without a result.

        Raises:
            WorkError: the task is over.
        """
        self._check_open()
        self._remove()

    def give_back(self, after: float = 0.0) -> None:
        """Hands the task back, for any worker to try again; ignored if it is over.

        Args:
            after: seconds until the others see it.
        """
        if self._is_over or os.getpid() != self._pid:  # a fork has a copy of its parent's task
            return
        self._end(is_done=False)
        if not self._tools.leases.release(self._receipt):
            return
        try:
            self._tools.queue.hide(self._receipt, int(after))
        except WorkError as error:
            if error.code not in GONE:
                say(f"{self.id} comes back only after its lease: {error}")

    def fail(self) -> None:
        """Hands the task back after a pause that grows with the number of tries, at most for the length of a lease."""
        self.give_back(random.uniform(0, min(2.0**self.tries, self._tools.lease_seconds)))

    def close(self) -> None:
        """Ends a task that is not over, as done."""
        if not self._is_over:
            self.done()

    def __enter__(self) -> Task:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if error is None:
            self.close()
            return False
        if not isinstance(error, Exception):
            self.give_back()
            return False
        say(f"{self.id}, try {self.tries}: {error!r}")
        self.fail()
        return True

    def _check_open(self) -> None:
        if self._is_over:
            raise WorkError(f"the task {self.id} is over: it can be delivered once")

    def _remove(self) -> None:
        """Removes the message. If that fails, the task comes again, and its first result stands."""
        self._end(is_done=True)
        self._tools.leases.release(self._receipt)
        try:
            self._tools.queue.delete(self._receipt)
        except WorkError as error:
            say(f"{self.id} is done and may come again: {error}")

    def _end(self, *, is_done: bool) -> None:
        self._is_over = True
        self._tools.counters.release(is_done=is_done)


def read(message: Message, tools: Tools) -> Task:
    """Reads a message of the queue.

    Raises:
        ValueError: it is no task.
    """
    try:
        document: dict[str, Any] = json.loads(message.body)
        name, body = document["id"], document["body"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"a message is no task: {error!r}") from None
    if not isinstance(name, str) or not isinstance(body, str) or not _ID.fullmatch(name):
        raise ValueError(f"a message is no task: its id is {name!r:.200}")
    return Task(name, body, message, tools)
