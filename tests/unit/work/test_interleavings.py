"""Random interleavings of workers, losses, lost answers and leases that end: no task is lost, and no result doubled."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.work.model_account import BUCKET, RESULTS, URL, ModelAccount, ModelService, NodeLostError
from troop.work.counters import Counters
from troop.work.errors import WorkError
from troop.work.leases import Leases
from troop.work.queue import Queue
from troop.work.queue_facts import QueueFacts
from troop.work.results import Results
from troop.work.task import Task, Tools
from troop.work.work_folder import WorkFolder
from troop.work.worker import Worker

TASKS, WORKERS, TRIES = 5, 3, 50
"""More tries than losses, so that only poison becomes a dead letter."""
POISON = "task-4"
FACTS = QueueFacts(URL, "https://host", (), 30, "us-west-2", BUCKET, RESULTS)
FATES = st.sampled_from(["", "", "", "request lost", "answer lost", "500", "503", "409"])
LISTS = st.one_of(
    st.lists(FATES, max_size=6),
    st.just(["503"] * 40),
    st.lists(FATES, max_size=3).map(lambda fates: [*fates, "node lost before"]),
    st.lists(FATES, max_size=3).map(lambda fates: [*fates, "node lost after"]),
)


class Process:
    """One worker's process, which the test leads step by step."""

    def __init__(self, account: ModelAccount, folder: WorkFolder, fates: list[str]) -> None:
        self._account = account
        self.fates = fates

        def fate() -> str:
            return self.fates.pop(0) if self.fates else ""

        queue, results = (
            Queue(URL, ModelService("sqs", account, fate)),
            Results(FACTS, ModelService("s3", account, fate)),
        )
        self.leases = Leases(queue, folder, account.lease, lambda: account.now)
        tools = Tools(queue, results, self.leases, Counters(folder, lambda: account.now), account.lease)
        self.worker = Worker(folder, tools, self._pause)
        self._loop: Iterator[Task] = self.worker.tasks()
        self.task: Task | None = None

    def _pause(self, seconds: float) -> None:
        self._account.now += seconds

    def next(self) -> Task | None:
        """Goes on with the loop; an unfinished task is done then, if it has no result."""
        self.task = next(self._loop, None)
        return self.task

    def end_loop(self) -> None:
        """As a ``break``, or an exception, does."""
        self._loop.close()  # type: ignore[attr-defined]
        self._loop, self.task = self.worker.tasks(), None

    def die(self) -> None:
        """Ends without a word: what is in hand stays so until its lease ends."""
        if self.task is not None:
            self.task._pid = -1


class Interleavings(RuleBasedStateMachine):
    """Plays workers on a queue."""

    @initialize()
    def begin(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = WorkFolder(Path(self.temporary.name))
        self.account = ModelAccount(tries=TRIES)
        for number in range(TASKS):
            self.account.send(f"task-{number}")
        self.processes = [Process(self.account, self.folder, []) for _ in range(WORKERS)]
        self.writes = 0
        self.standing: dict[str, list[bytes]] = {}

    def teardown(self) -> None:
        if not hasattr(self, "account"):
            return
        try:
            self.work_off()
            self.judge()
        finally:
            for process in self.processes:
                process.die()
                process.fates = []
                process.end_loop()
            self.temporary.cleanup()

    def judge(self) -> None:
        names = {f"task-{number}" for number in range(TASKS)}
        assert self.account.messages == {}, "a task is lost in the queue"
        assert [one.id for one in self.account.dead] == [POISON]
        assert {key.removeprefix(RESULTS) for key in self.account.objects} == names - {POISON}
        assert set(self.account.writes.values()) == {1}, "a result was replaced"
        for name, contents in self.standing.items():
            assert contents == [self.account.result(name)], "another result stands than the worker was told"

    def work_off(self) -> None:
        """Lets one new worker, without faults, do what is left; poison ends it each time."""
        process = Process(self.account, self.folder, [])
        while self.account.messages:
            until = self.account.hidden_until
            assert until is not None
            self.account.now = max(self.account.now, until)
            if all(one.count >= TRIES for one in self.account.messages.values()):
                self.account._receive()
                continue
            task = process.next()
            assert task is not None
            if task.id == POISON:
                process.die()
                process = Process(self.account, self.folder, [])
            else:
                self.deliver(process)

    def deliver(self, process: Process) -> None:
        assert process.task is not None
        self.writes += 1
        content = b"%d" % self.writes
        try:
            stands = process.task.deliver(content)
        except WorkError:
            return
        except NodeLostError:
            self.replace(process)
            return
        if stands:
            self.standing.setdefault(process.task.id, []).append(content)

    def visible(self) -> bool:
        return any(
            one.hidden_until <= self.account.now and one.count < TRIES - 20 for one in self.account.messages.values()
        )

    @precondition(lambda self: self.visible())
    @rule(number=st.integers(0, WORKERS - 1), fates=st.lists(FATES, max_size=3))
    def receive(self, number: int, fates: list[str]) -> None:
        process = self.processes[number]
        if process.task is not None and not process.task._is_over:
            return
        self.account.choose = (lambda names: names[-1]) if number % 2 else min
        process.fates = [one for one in fates if one != "answer lost"]  # then it would wait for the lease's end
        try:
            process.next()
        except NodeLostError:
            self.replace(process)

    @rule(number=st.integers(0, WORKERS - 1), fates=LISTS)
    def deliver_result(self, number: int, fates: list[str]) -> None:
        process = self.processes[number]
        if process.task is None or process.task._is_over or process.task.id == POISON:
            return
        process.fates = fates
        self.deliver(process)

    @rule()
    def lose_answer_of_receipt(self) -> None:
        """A message that nobody has comes back after its lease."""
        if self.visible():
            self.account._receive()

    def replace(self, process: Process) -> None:
        """Another node takes the place of one that is lost."""
        process.die()
        self.processes[self.processes.index(process)] = Process(self.account, self.folder, [])

    @rule(number=st.integers(0, WORKERS - 1))
    def lose_node(self, number: int) -> None:
        self.replace(self.processes[number])

    @rule(number=st.integers(0, WORKERS - 1), fates=LISTS)
    def break_loop(self, number: int, fates: list[str]) -> None:
        process = self.processes[number]
        process.fates = fates
        try:
            process.end_loop()
        except NodeLostError:
            self.replace(process)

    @rule(number=st.integers(0, WORKERS - 1), fates=LISTS)
    def hand_back(self, number: int, fates: list[str]) -> None:
        """As on SIGTERM, after which the process is gone."""
        process = self.processes[number]
        process.fates = fates
        with contextlib.suppress(NodeLostError):
            process.leases.hand_back()
        self.replace(process)

    @rule(number=st.integers(0, WORKERS - 1), fates=LISTS)
    def renew(self, number: int, fates: list[str]) -> None:
        process = self.processes[number]
        process.fates = fates
        try:
            process.leases.renew()
        except NodeLostError:
            self.replace(process)

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds: float) -> None:
        self.account.now += seconds

    @invariant()
    def tasks_leave_the_queue_only_with_a_result(self) -> None:
        if hasattr(self, "account"):
            for number in range(TASKS):
                name = f"task-{number}"
                assert name in self.account.messages or self.account.result(name) is not None or name == POISON


Interleavings.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestInterleavings = Interleavings.TestCase
