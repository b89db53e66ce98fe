"""Runs this process as a worker: receives tasks until the node ends."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable

from troop.measure.s3.credentials import CredentialsError, CredentialStore
from troop.work import queue_facts, task
from troop.work.counters import Counters
from troop.work.errors import WorkError, say
from troop.work.leases import Leases
from troop.work.queue import Message, Queue
from troop.work.results import Results
from troop.work.service import Service
from troop.work.task import Task, Tools
from troop.work.work_folder import LEAVE, WorkFolder

PAUSE_SECONDS = 1.0
"""Seconds between two looks at the stop file while the node drains."""
LONGEST_PAUSE = 20.0
REFUSED_SECONDS = 300.0
"""How long SQS may refuse requests before the worker fails. An endpoint's policy takes effect after some time."""


class Worker:
    """The worker of one process, for any number of threads.

    Args:
        sleep: waits for seconds.
    """

    def __init__(self, folder: WorkFolder, tools: Tools, sleep: Callable[[float], None] = time.sleep) -> None:
        self._folder, self._tools, self._sleep = folder, tools, sleep
        self._is_leaving = False

    def tasks(self) -> Iterator[Task]:
        """Yields tasks one after another until the node ends.

        Raises:
            WorkError: SQS refuses requests for some minutes.
        """
        while (message := self._next()) is not None:
            try:
                one = task.read(message, self._tools)
            except ValueError as error:
                say(str(error))
                self._return(message)
                continue
            try:
                yield one
            except GeneratorExit:  # a break, or an exception in the loop
                one.give_back() if self._is_leaving else one.fail()
                raise
            one.close()

    def leave(self) -> None:
        """Ends the loops, and hands back all tasks in hand. A handler of signals may call it at any time."""
        if not self._is_leaving:
            self._is_leaving = True
            self._tools.leases.leave()

    def _next(self) -> Message | None:
        """Waits for a message, and holds it; returns None when the node ends."""
        failures, refused_at = 0, 0.0
        while True:
            reason = LEAVE if self._is_leaving else self._folder.reason
            if reason == LEAVE:
                return None
            if reason is not None:
                self._sleep(PAUSE_SECONDS)
                continue
            try:
                message = self._receive()
            except (WorkError, CredentialsError) as error:
                failures += 1
                is_refusal = isinstance(error, WorkError) and 400 <= error.status < 500
                refused_at = (refused_at or time.monotonic()) if is_refusal else 0.0
                if is_refusal and time.monotonic() - refused_at > REFUSED_SECONDS:
                    raise
                if failures == 1:
                    say(f"cannot receive tasks: {error}")
                self._sleep(min(2.0 ** min(failures, 10), LONGEST_PAUSE))
                continue
            failures, refused_at = 0, 0.0
            if message is None:
                continue
            if self._is_leaving or self._folder.reason is not None:
                self._return(message)
                continue
            return message

    def _receive(self) -> Message | None:
        """Receives a message and takes its lease."""
        counters, sent_at = self._tools.counters, self._tools.counters.now()
        counters.ask()
        message, is_empty = None, False
        try:
            message = self._tools.queue.receive()
            is_empty = message is None
            if message is not None:
                self._tools.leases.take(message.receipt, message.body[:100])
        finally:
            counters.answer(sent_at, message is not None, is_empty)
        return message

    def _return(self, message: Message) -> None:
        """Hands back a message that this worker does not begin."""
        Task("", "", message, self._tools).give_back()


_worker: Worker | None = None
_lock = threading.Lock()


def tasks() -> Iterator[Task]:
    """Yields the tasks of the fleet's queue, one after another; waits while there is none.

    Any number of threads and processes can have an own iteration. It pauses while the node drains, and ends when the
    node does: on SIGTERM, which spot's notice and the fleet's end cause, tasks in hand are handed back and the process
    exits with 0. A process whose main thread calls this function gets a handler of SIGTERM.

    A task that is not over when the loop goes on is done. An exception, or a ``break``, hands it back.

    Raises:
        WorkError: this is no node with a queue, or SQS refuses requests for some minutes.
        troop.measure.s3.credentials.CredentialsError: the node has no credentials.
    """
    return _this_process().tasks()


def _this_process() -> Worker:
    global _worker
    with _lock:
        if _worker is None:
            _worker = _begin()
        worker = _worker
    _handle_signals(worker)
    return worker


def _begin() -> Worker:
    folder = queue_facts.folder_of()
    facts, store = queue_facts.read(folder), CredentialStore()
    queue = Queue(facts.url, Service("sqs", facts.region, facts.service, store, facts.endpoints))
    s3, _ = facts.result_path("")
    results, leases = Results(facts, Service("s3", facts.region, s3, store)), Leases(queue, folder, facts.lease)
    leases.start()
    worker = Worker(folder, Tools(queue, results, leases, Counters(folder), facts.lease))
    atexit.register(_close, worker, leases, os.getpid())
    return worker


def _close(worker: Worker, leases: Leases, pid: int) -> None:
    """Hands back what threads still have in hand, before the process ends."""
    if os.getpid() == pid:
        worker.leave()
        leases.join()


_handled: set[int] = set()
"""The process that has a handler of SIGTERM."""


def _handle_signals(worker: Worker) -> None:
    """Lets SIGTERM end the worker, after a handler that the process has already."""
    pid = os.getpid()
    if pid in _handled or threading.current_thread() is not threading.main_thread():
        return
    earlier = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: Any) -> None:
        if os.getpid() == pid:
            worker.leave()
        if callable(earlier):
            earlier(number, frame)
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    _handled.add(pid)


def _forget() -> None:
    """Makes a fork begin as a worker of its own: threads, connections and tasks are its parent's."""
    global _worker, _lock
    _worker, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
