"""Creates, fills, describes and removes the queues of fleets on SQS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.definition import names
from troop.bench.fleets.fleet_requests import LaunchImpossibleError, is_ours
from troop.bench.fleets.queue_requests import AT_ONCE, MOST_BYTES, Task, batches
from troop.shared import moments
from troop.shared.tags import EXPIRES_TAG

MISSING = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
"""SQS's codes for a queue that does not exist: that of its old protocol, and of its new one."""

DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
"""SQS's codes for a caller who may not do something: that of its old protocol, and of its new one."""

TAKEN = frozenset({"QueueAlreadyExists", "QueueNameExists"})
"""SQS's codes for a name that has a queue with other attributes."""

LISTED = 1000
"""The most queues in one answer. SQS mentions further ones only if the request has a number."""

TRIES = 6
LONGEST_PAUSE = 8.0

_WAITING = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
_IN_WORK = "ApproximateNumberOfMessagesNotVisible"


@dataclass(frozen=True)
class RefusedTask:
    """A task that is not on the queue, with the reason."""

    id: str
    problem: str


@dataclass(frozen=True)
class QueueCounts:
    """What SQS counts, approximately: tasks that wait, that are leased, and dead letters."""

    waiting: int
    in_work: int
    dead: int


@dataclass(frozen=True)
class WorkQueues:
    """The queues of this deployment's fleets."""

    sqs: Any
    sleep: Callable[[float], None] = time.sleep

    # A fleet at work

    def send(self, run: str, cell: str, tasks: Sequence[Task]) -> list[RefusedTask]:
        """Sends tasks to a fleet's queue. Returns those that are not on it, as far as known. A task can be on it twice.

        Raises:
            ClientError, BotoCoreError: the fleet has no queue, or SQS accepts nothing.
        """
        long = [task for task in tasks if task.size() > MOST_BYTES]
        refused = [RefusedTask(task.id, f"it has more than {MOST_BYTES:,} bytes as a message") for task in long]
        url = self.url(names.queue_name(run, cell))
        sendable = [task for task in tasks if task not in long]
        sent = 0
        for batch in batches(sendable, Task.size, AT_ONCE, MOST_BYTES):
            try:
                refused += self._send(url, batch)
            except (BotoCoreError, ClientError) as error:
                if not sent:
                    raise
                # What was sent before counts, so an error here cannot stand for all.
                return refused + [RefusedTask(task.id, str(error)) for task in sendable[sent:]]
            sent += len(batch)
        return refused

    def _send(self, url: str, batch: list[Task]) -> list[RefusedTask]:
        """Sends one batch. What fails by SQS's own fault is sent again, with a pause."""
        left, problems = dict(enumerate(batch)), dict[int, str]()
        refused: list[RefusedTask] = []
        for attempt in range(TRIES):
            entries = [{"Id": str(number), "MessageBody": task.message} for number, task in left.items()]
            answer = self.sqs.send_message_batch(QueueUrl=url, Entries=entries)
            failed = answer.get("Failed", [])
            problems = {int(one["Id"]): f"{one['Code']}: {one.get('Message', '')[:200]}" for one in failed}
            final = {int(one["Id"]) for one in failed if one["SenderFault"]}
            refused += [RefusedTask(left[number].id, problems[number]) for number in sorted(final)]
            left = {number: left[number] for number in problems if number not in final}
            if not left:
                break
            if attempt < TRIES - 1:
                self.sleep(_pause(attempt))
        return refused + [RefusedTask(task.id, problems[number]) for number, task in left.items()]

    def counts(self, run: str, cell: str) -> QueueCounts:
        """Counts a fleet's tasks.

        Raises:
            ClientError: it has no queue.
        """
        own = self._attributes(names.queue_name(run, cell))
        dead = self._attributes(names.dead_queue_name(run, cell))
        waiting = sum(int(own.get(name, 0)) for name in _WAITING)
        letters = sum(int(dead.get(name, 0)) for name in (*_WAITING, _IN_WORK))
        return QueueCounts(waiting, int(own.get(_IN_WORK, 0)), letters)

    def _attributes(self, name: str) -> dict[str, str]:
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url(name), AttributeNames=[*_WAITING, _IN_WORK])
        return dict(answer.get("Attributes", {}))

    def expire(self, run: str, cell: str, at: datetime) -> None:
        """Sets the tag of a fleet's queues that says when it expires."""
        for name in (names.queue_name(run, cell), names.dead_queue_name(run, cell)):
            self.sqs.tag_queue(QueueUrl=self.url(name), Tags={EXPIRES_TAG: moments.iso(at)})

    def url(self, name: str) -> str:
        """Returns the address of a queue.

        Raises:
            ClientError: there is none of this name.
        """
        return str(self.sqs.get_queue_url(QueueName=name)["QueueUrl"])

    # Launch and teardown

    def create(self, name: str, attributes: Mapping[str, str], tags: Mapping[str, str]) -> str:
        """Creates a queue, or gives an earlier one of the run these attributes. Returns its address.

        Raises:
            LaunchImpossibleError: a queue of this name is not the run's.
        """
        request = {"QueueName": name, "Attributes": dict(attributes), "tags": dict(tags)}
        try:
            return str(self._settled(lambda: self.sqs.create_queue(**request))["QueueUrl"])
        except ClientError as error:
            if _code(error) not in TAKEN:
                raise
        url = str(self._settled(lambda: self.url(name)))
        if not is_ours(self.tags(url), tags):
            raise LaunchImpossibleError(f"the queue {name} exists, but this run did not create it: remove it")
        self.change(url, attributes)
        return url

    def change(self, url: str, attributes: Mapping[str, str]) -> None:
        """Sets attributes of a queue, which may be new."""
        self._settled(lambda: self.sqs.set_queue_attributes(QueueUrl=url, Attributes=dict(attributes)))

    def listed(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yields the name and the address of each queue whose name begins so. A new queue, and one that was deleted a
        minute ago, may be missing or not.
        """
        pages = self.sqs.get_paginator("list_queues")
        for page in pages.paginate(QueueNamePrefix=prefix, PaginationConfig={"PageSize": LISTED}):
            for url in page.get("QueueUrls", []):
                yield url.rpartition("/")[2], url

    def tags(self, url: str) -> dict[str, str]:
        """Returns the tags of a queue; none of one that does not exist any more."""
        try:
            return dict(self.sqs.list_queue_tags(QueueUrl=url).get("Tags", {}))
        except ClientError as error:
            if _code(error) not in MISSING:
                raise
            return {}

    def remove(self, url: str) -> None:
        """Deletes a queue with all its tasks, within a minute.

        Raises:
            ClientError: SQS refuses it; with a code of :data:`MISSING`, it is gone.
        """
        self.sqs.delete_queue(QueueUrl=url)

    def _settled(self, call: Callable[[], Any]) -> Any:
        """Repeats a call until all of SQS knows a queue that exists, for about half a minute at most."""
        for attempt in range(TRIES):
            try:
                return call()
            except ClientError as error:
                if attempt == TRIES - 1 or not _not_yet(error):
                    raise
                self.sleep(_pause(attempt))
        raise AssertionError  # the last try returns or raises


def is_denied(error: Exception) -> bool:
    """Checks whether SQS will refuse this again: the caller may not do it, or there is no such queue."""
    return isinstance(error, ClientError) and _code(error) in DENIED | MISSING


def _pause(attempt: int) -> float:
    return min(LONGEST_PAUSE, 2.0**attempt)


def _not_yet(error: ClientError) -> bool:
    """Checks whether SQS does not know a new queue yet, or not as the target of dead letters."""
    if _code(error) in MISSING:
        return True
    words = str(error).lower().replace("-", " ")
    return _code(error) == "InvalidParameterValue" and "dead letter" in words


def _code(error: ClientError) -> str:
    return error.response["Error"]["Code"]
