"""Loses a third of the nodes of a fleet in the midst of thousands of tasks, and counts tasks and results afterwards.

    python -m perf.lost_workers [--tasks 10000] [--poison 20] [--nodes 30] [--lease 30] [--seconds 0.05]

Each node is a process with a loop of :mod:`troop.work`, and SQS and S3 are those of local AWS. While tasks are done,
every third node is lost, in turn: killed without a word, taken back by Spot with its notice, or frozen until all other
tasks are done, when it delivers a result for a task that it no longer has. Nobody replaces them. The bucket keeps all
versions of its objects, so a result that is written twice shows. The exit code is 1 if a task is lost or a result
doubled.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.launcher import LocalAccount
from local.project import tool_environment
from perf import ROOT, say
from troop.bench.aws.work_queues import QueueCounts, WorkQueues
from troop.bench.definition import names
from troop.bench.fleets.queue_requests import FORMAT, Task
from troop.work.work_folder import LEAVE, WorkFolder

RUN, CELL, REGION, BUCKET = "20270101-120000-00000001", names.cell_id(1), "us-east-1", "lost-workers"
TRIES = 5
"""After so many receipts, a task is a dead letter."""
LOSSES = ("killed", "taken", "frozen")
FIRST, LAST = 0.1, 0.7
"""The shares of the tasks that are done at the first loss, and at the last."""
MOST_TASKS = 1000
"""The tasks of one request to Troop's API."""
LONGEST_SECONDS = 1800

LOOP = """
import os, sys, time
from troop.work import tasks

def note(*words):
    os.write(1, " ".join(map(str, (time.time(), *words))).encode() + b"\\n")

for task in tasks():
    with task:
        note("begin", task.id)
        if task.body == "poison":
            note("fail", task.id)
            raise ValueError(task.body)
        time.sleep(float(sys.argv[1]))
        note("stands" if task.deliver(f"{sys.argv[2]} {task.body}") else "late", task.id)
"""
"""Notes what it does: moment, event, task."""


@dataclass
class Worker:
    """The worker of a node.

    Attributes:
        loss: how the node is lost; empty for one that stays.
        lost_at: in seconds since 1970.
    """

    folder: Path
    process: subprocess.Popen[bytes]
    loss: str = ""
    lost_at: float = 0.0

    def lose(self, loss: str) -> None:
        """A node that Spot takes tells its workers in two ways, as the agent does."""
        self.loss, self.lost_at = loss, time.time()
        if loss == "taken":
            WorkFolder(self.folder).stop(LEAVE)
        number = {"killed": signal.SIGKILL, "taken": signal.SIGTERM, "frozen": signal.SIGSTOP}[loss]
        self.process.send_signal(number)

    def notes(self) -> list[tuple[float, str, str]]:
        lines = [line.split() for line in (self.folder / "notes").read_text().splitlines()]
        return [(float(one[0]), one[1], one[2]) for one in lines if len(one) == 3 and one[0][:1].isdigit()]

    def held(self) -> str | None:
        """The task that it had when it was lost."""
        before = [one for one in self.notes() if one[0] <= self.lost_at]
        return before[-1][2] if before and before[-1][1] == "begin" else None

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True)
class Trial:
    """The queue, the bucket, and the workers.

    Args:
        lease: in seconds.
        seconds: a task takes.
    """

    account: LocalAccount
    home: Path
    lease: int
    seconds: float
    workers: list[Worker] = field(default_factory=list)

    @property
    def queues(self) -> WorkQueues:
        return WorkQueues(self.account.client("sqs"))

    def create(self) -> None:
        """Creates what Launch creates, except an endpoint: the workers here are in no network."""
        s3, queues = self.account.client("s3"), self.queues
        s3.create_bucket(Bucket=BUCKET)
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        dead = queues.create(names.dead_queue_name(RUN, CELL), {}, {})
        answer = queues.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
        redrive = {"deadLetterTargetArn": answer["Attributes"]["QueueArn"], "maxReceiveCount": TRIES}
        own = {"VisibilityTimeout": str(self.lease), "RedrivePolicy": json.dumps(redrive)}
        queues.create(names.queue_name(RUN, CELL), own, {})

    def submit(self, tasks: Sequence[Task]) -> None:
        for start in range(0, len(tasks), MOST_TASKS):
            refused = self.queues.send(RUN, CELL, tasks[start : start + MOST_TASKS])
            assert not refused, refused

    def start(self, nodes: int) -> None:
        exports = {name: value for name, value in self.account.exports.items() if name.startswith("AWS_")}
        facts = {
            **{"format": FORMAT, "url": self.queues.url(names.queue_name(RUN, CELL)), "host": "", "endpoints": []},
            **{"lease": self.lease, "tries": TRIES, "region": REGION, "bucket": BUCKET},
            "results": names.work_results_prefix(RUN),
        }
        for number in range(nodes):
            folder = self.home / f"node-{number}"
            folder.mkdir()
            WorkFolder(folder).queue.write_text(json.dumps(facts))
            environment = {**tool_environment(), **exports, "TROOP_WORK": str(folder)}
            environment["PYTHONPATH"] = str(ROOT / "functions")
            with (folder / "notes").open("wb") as output:
                command = [sys.executable, "-c", LOOP, str(self.seconds), folder.name]
                self.workers.append(
                    Worker(folder, subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))
                )

    def done(self) -> int:
        """The tasks that are done by the workers' own counts."""
        counts = (WorkFolder(worker.folder).counts() for worker in self.workers)
        return sum(one.done for one in counts if one)

    def lose_third(self, tasks: int) -> None:
        """Loses nodes one after another, at even shares of the tasks, and in a random order."""
        doomed = random.Random(1).sample(self.workers, len(self.workers) // 3)
        for number, worker in enumerate(doomed):
            share = FIRST + (LAST - FIRST) * number / max(1, len(doomed) - 1)
            self.wait(lambda share=share: self.done() >= share * tasks)  # type: ignore[misc]
            worker.lose(LOSSES[number % len(LOSSES)])
            say(f"{self.done():,} tasks are done; {worker.folder.name} is {worker.loss}")

    def finish(self, poison: int) -> QueueCounts:
        """Waits until nothing is on the queue; then the frozen nodes deliver what they had."""
        self.wait(lambda: self._is_over(poison))
        frozen = [worker for worker in self.workers if worker.loss == "frozen"]
        for worker in frozen:
            worker.process.send_signal(signal.SIGCONT)
        self.wait(lambda: all(worker.notes()[-1][1] != "begin" for worker in frozen))
        return self.queues.counts(RUN, CELL)

    def _is_over(self, poison: int) -> bool:
        counts = self.queues.counts(RUN, CELL)
        return counts.waiting == counts.in_work == 0 and counts.dead >= poison

    def wait(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + LONGEST_SECONDS
        while not condition():
            self.account.check()
            for worker in self.workers:
                if not worker.loss and worker.process.poll() is not None:
                    raise SystemExit(f"a worker has ended: {(worker.folder / 'notes').read_text()[-2000:]}")
            if time.monotonic() > until:
                raise SystemExit(f"not within {LONGEST_SECONDS} s: {self.queues.counts(RUN, CELL)}")
            time.sleep(0.5)

    def versions(self) -> Counter[str]:
        """How often each result was written, by task."""
        prefix = names.work_results_prefix(RUN)
        pages = self.account.client("s3").get_paginator("list_object_versions").paginate(Bucket=BUCKET, Prefix=prefix)
        return Counter(one["Key"].removeprefix(prefix) for page in pages for one in page.get("Versions", []))

    def dead_letters(self) -> set[str]:
        """The tasks that are dead letters."""
        url = self.queues.url(names.dead_queue_name(RUN, CELL))
        seen: set[str] = set()
        while letters := self.queues.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            seen |= {json.loads(one["Body"])["id"] for one in letters}
        return seen

    def returns(self) -> dict[str, list[float]]:
        """Seconds from each loss until another node began with the task that was lost with it, by kind of loss."""
        begins: dict[str, list[float]] = {}
        for worker in self.workers:
            for at, event, task in worker.notes():
                if event == "begin":
                    begins.setdefault(task, []).append(at)
        seconds: dict[str, list[float]] = {loss: [] for loss in LOSSES}
        for worker in self.workers:
            if worker.loss and (held := worker.held()):
                later = [at - worker.lost_at for at in begins[held] if at > worker.lost_at]
                seconds[worker.loss] += [min(later)] if later else []
        return seconds


def verdict(good: Iterable[str], poison: Iterable[str], versions: Mapping[str, int], dead: set[str]) -> list[str]:
    """Returns what is wrong: lost tasks, doubled results, and dead letters that differ from the poisonous tasks."""
    expected = set(good)
    problems = {
        "lost": expected - versions.keys(),
        "results without a task": versions.keys() - expected,
        "results that were written twice": {task for task, count in versions.items() if count > 1},
        "poisonous tasks that are no dead letters": set(poison) - dead,
        "other dead letters": dead - set(poison),
    }
    return [f"{name}: {', '.join(sorted(some)[:10])}" for name, some in problems.items() if some]


def table(trial: Trial, options: argparse.Namespace, dead: set[str], versions: Counter[str], took: float) -> str:
    notes = [event for worker in trial.workers for _, event, _ in worker.notes()]
    events = Counter(notes)
    losses = Counter(worker.loss for worker in trial.workers if worker.loss)
    lines = [
        f"{options.tasks:,} tasks and {options.poison} poisonous, {options.nodes} nodes, a lease of {options.lease} s",
        f"{'nodes lost':<46}{sum(losses.values()):>8}  " + ", ".join(f"{losses[loss]} {loss}" for loss in LOSSES),
        f"{'tasks with a result':<46}{len(versions):>8,}",
        f"{'results that were written twice':<46}{sum(count > 1 for count in versions.values()):>8,}",
        f"{'results that came late, and were refused':<46}{events['late']:>8,}",
        f"{'dead letters':<46}{len(dead):>8,}",
        f"{'tasks begun, with each try':<46}{events['begin']:>8,}",
    ]
    for loss, seconds in trial.returns().items():
        if seconds:
            text = f"a task comes back after a node is {loss}, s"
            lines.append(f"{text:<46}{min(seconds):>8.1f}  to {max(seconds):.1f} ({len(seconds)} tasks)")
    lines.append(f"{'seconds':<46}{took:>8,.0f}  {options.tasks / took:,.0f} tasks a second")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--poison", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--lease", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.05, help="the time of a task")
    options = parser.parse_args()
    good = [Task(f"task-{number:05}", str(number)) for number in range(options.tasks)]
    poison = [Task(f"poison-{number:05}", "poison") for number in range(options.poison)]
    mixed: list[Any] = random.Random(2).sample([*good, *poison], len(good) + len(poison))
    with LocalAccount("perf-lost", processes=False, progress=say) as account, tempfile.TemporaryDirectory() as home:
        trial = Trial(account, Path(home), options.lease, options.seconds)
        try:
            trial.create()
            trial.submit(mixed)
            say(f"{len(mixed):,} tasks are on the queue")
            began = time.monotonic()
            trial.start(options.nodes)
            trial.lose_third(options.tasks)
            counts = trial.finish(options.poison)
            took = time.monotonic() - began
            versions, dead = trial.versions(), trial.dead_letters()
            print(table(trial, options, dead, versions, took), flush=True)
        finally:
            for worker in trial.workers:
                worker.end()
    problems = verdict([task.id for task in good], [task.id for task in poison], versions, dead)
    problems += [] if counts.waiting == counts.in_work == 0 else [f"still on the queue: {counts}"]
    print("\n".join(problems) or "no task is lost, and each result stands once", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
