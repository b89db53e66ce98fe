"""Workers as processes that a node runs, against SQS and S3 over HTTP."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.patience import PATIENCE, eventually
from tests.unit.agent.pythons import python39
from tests.unit.work.processes import Workers
from troop.work.work_folder import DRAIN, LEAVE

IN_THREADS = """
tasks()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(1000)
"""
"""The main thread calls the function for its handler of SIGTERM, and takes no task."""


@pytest.mark.parametrize("python", [sys.executable, *filter(None, [python39()])])
def test_each_task_leaves_one_result_and_no_message(workers: Workers, python: str) -> None:
    workers.account.send(one="ä", two="b")
    worker = workers.start("work()", python)
    eventually(lambda: not workers.account.queue.messages)
    assert (workers.result("one"), workers.result("two")) == ("Ä".encode(), b"B")
    eventually(lambda: (counts := workers.folder.counts()) and counts.idle_since and counts.done == 2)
    assert workers.end(worker) == 0
    assert workers.account.issued == 1, "credentials are fetched once"


def test_sigterm_hands_tasks_back_at_once(workers: Workers) -> None:
    workers.account.send(slow="hang")
    worker = workers.start("work()")
    eventually(lambda: workers.begun("slow"))
    counts = workers.folder.counts()
    assert counts is not None
    assert (counts.held, counts.idle_since) == (1, None)
    assert workers.end(worker) == 0
    assert workers.account.queue.is_visible("slow")
    assert workers.account.queue.messages["slow"].count == 1
    counts = workers.folder.counts()
    assert counts is not None
    assert (counts.held, counts.done) == (0, 0)


def test_sigterm_hands_back_tasks_of_all_threads(workers: Workers) -> None:
    workers.account.send(one="hang", two="hang", three="hang")
    worker = workers.start(IN_THREADS)
    eventually(lambda: all(workers.begun(task) for task in ("one", "two", "three")))
    assert workers.end(worker) == 0
    assert workers.account.queue.is_visible("one", "two", "three")


def test_processes_of_a_fork_work_and_hand_back_by_themselves(workers: Workers) -> None:
    """A fork in the middle of a task neither ends the parent's task nor its worker."""
    workers.account.send(parent="hang")
    worker = workers.start("""
for task in tasks():
    begin(task)
    for _ in range(2):
        if os.fork() == 0:
            work()
            os._exit(0)
    time.sleep(1000)
""")
    eventually(lambda: workers.begun("parent"))
    workers.account.send(one="hang", two="hang")
    pids = [eventually(lambda name=name: workers.begun(name)) for name in ("one", "two")]  # type: ignore[misc]
    assert len({worker.pid, *pids}) == 3
    for pid, name in zip(pids, ("one", "two"), strict=True):
        os.kill(pid, signal.SIGTERM)
        eventually(lambda name=name: workers.account.queue.is_visible(name) or workers.begun(name, 2))  # type: ignore[misc]
    assert not workers.account.queue.is_visible("parent")
    assert workers.end(worker) == 0
    assert workers.account.queue.is_visible("parent")


def test_a_node_that_leaves_gets_tasks_back_without_a_signal(workers: Workers) -> None:
    """A process whose main thread does not work has no handler of SIGTERM."""
    workers.account.send(slow="hang")
    workers.start("thread = threading.Thread(target=work)\nthread.start()\nthread.join()")
    eventually(lambda: workers.begun("slow"))
    workers.folder.stop(LEAVE)
    eventually(lambda: workers.account.queue.is_visible("slow"))
    assert workers.begun("slow", 2) is None, "no worker of this node takes it again"


def test_a_draining_node_finishes_tasks_and_takes_no_new_ones(workers: Workers) -> None:
    workers.folder.stop(DRAIN)
    workers.account.send(one="a")
    worker = workers.start("work()")
    eventually(lambda: workers.folder.counts() is not None)
    assert worker.poll() is None
    assert "ReceiveMessage" not in workers.account.queue.requests
    workers.folder.resume()
    eventually(lambda: workers.result("one"))
    assert worker.poll() is None, "a drain that is cancelled leaves a worker"
    workers.folder.stop(LEAVE)
    assert worker.wait(PATIENCE) == 0


def test_a_task_that_raises_comes_back_and_the_worker_goes_on(workers: Workers) -> None:
    workers.account.send(bad="fail 1", good="c")
    worker = workers.start("work()")
    eventually(lambda: workers.result("good"))
    assert eventually(lambda: workers.begun("bad", 2)) == worker.pid
    eventually(lambda: workers.result("bad") == b"FAIL 1")
    assert "bad, try 1: ValueError('fail 1')" in workers.output()


def test_an_exception_without_a_block_ends_the_loop_and_hands_back(workers: Workers) -> None:
    workers.account.send(bad="x")
    worker = workers.start("for task in tasks():\n    raise ValueError(task.body)")
    assert worker.wait(PATIENCE) == 1
    message = workers.account.queue.messages["bad"]
    assert message.hidden_until <= workers.account.queue.now + 2, "it does not wait for the end of its lease"


def test_tasks_without_a_result_are_done_when_the_loop_goes_on(workers: Workers) -> None:
    workers.account.send(one="a", two="b")
    workers.start("for task in tasks():\n    begin(task)")
    eventually(lambda: not workers.account.queue.messages)
    assert workers.result("one") is None
    assert workers.begun("two", 2) is None


@pytest.mark.parametrize("lost", ["PUT", "DeleteMessage"])
def test_a_lost_answer_neither_loses_nor_doubles_a_result(workers: Workers, lost: str) -> None:
    workers.account.send(one="a")
    workers.account.lose = [lost]
    workers.start("work()")
    eventually(lambda: "one True" in workers.output())
    eventually(lambda: not workers.account.queue.messages)
    assert workers.result("one") == b"A"


def test_a_message_that_is_no_task_becomes_a_dead_letter(workers: Workers) -> None:
    workers.account.send(bad="", good="a")
    workers.account.queue.messages["bad"].body = "[1"
    workers.start("work()")
    eventually(lambda: workers.account.queue.dead)
    eventually(lambda: workers.result("good"))
    eventually(lambda: not workers.account.queue.messages)


def test_leases_are_renewed_while_a_task_is_in_hand(workers: Workers) -> None:
    workers.folder.queue.write_text(workers.folder.queue.read_text().replace('"lease": 300', '"lease": 3'))
    workers.account.send(slow="hang")  # SQS hides it for longer than the worker knows, so a busy machine loses nothing
    workers.start("work()")
    eventually(lambda: workers.account.queue.requests.count("ChangeMessageVisibility") >= 2)


def test_throttling_and_new_credentials_only_delay(workers: Workers) -> None:
    workers.account.send(one="a")
    workers.account.refuse = 3
    worker = workers.start("work()")
    eventually(lambda: workers.result("one"))
    workers.account.credentials = {**workers.account.credentials, "AccessKeyId": "ASIASECOND"}
    workers.account.send(two="b")
    eventually(lambda: workers.result("two"))
    assert worker.poll() is None


def test_a_process_outside_a_node_is_refused_with_the_reason(workers: Workers) -> None:
    del workers.environment["TROOP_WORK"]
    assert workers.start("work()").wait(PATIENCE) == 1
    assert "TROOP_WORK is not set" in workers.output()


def test_a_fleet_without_a_queue_is_named(workers: Workers) -> None:
    workers.folder.queue.unlink()
    assert workers.start("work()").wait(PATIENCE) == 1
    assert "its file must say `queue: true`" in workers.output()
