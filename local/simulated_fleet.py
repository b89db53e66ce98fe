"""Simulates the nodes of a fleet that is watched: reports of their health, work on its queue, and orders to drain.

They use the formats of the agent and of :mod:`troop.work`. All nodes of all fleets share a few threads and requests:
one request to the queue takes tasks for ten of them. Their workers reach the queue once its endpoint is available.
Restarts and spot notices take real nodes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from local.launcher import LocalAccount
from local.simulated_objects import SimulatedObjects, encoded
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.living import ANSWER, FAIL_AFTER, Grade

REPORT_FORMAT = "troop.report/1"
_REPORT_SECONDS, _ORDERS_SECONDS = 60.0, 10.0
_EMPTY_SECONDS = 1.0
"""The pause after a request to an empty queue."""
_BATCH = 10
_MOST_OBJECTS = 80
"""Results and reports of one step: a busy machine must not keep the fleet from renewing its leases."""
_GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


@dataclass
class _Task:
    id: str
    body: str
    receipt: str
    due: float
    renew_at: float


@dataclass
class _Node:
    """A node. Moments are seconds since 1970; ``killed_at``: of its application and workers."""

    id: str
    role: Fleet
    ready_at: float
    killed_at: float | None = None
    done: int = 0
    idle_since: float | None = None
    task: _Task | None = None
    is_draining: bool = False
    reported: tuple[Any, ...] = ()
    reported_at: float = 0.0

    @property
    def can_take(self) -> bool:
        """Whether its worker takes another task."""
        return self.task is None and not self.is_draining and self.killed_at is None


class SimulatedFleet:
    """The nodes of one fleet.

    Args:
        run, cell: of the fleet's objects.
        benchmark: its definition.
        task_seconds: the time of a task.
        time_scale: factor for the intervals of reports, orders and requests, and for those in the file.
    """

    def __init__(
        self,
        account: LocalAccount,
        objects: SimulatedObjects,
        run: str,
        cell: str,
        benchmark: Benchmark,
        task_seconds: float,
        time_scale: float,
    ) -> None:
        self._account, self._objects = account, objects
        self._task_seconds, self._scale = task_seconds, time_scale
        self._run, self._cell, self._benchmark = run, cell, benchmark
        self._roles = {fleet.role: fleet for fleet in benchmark.fleets if fleet.role in benchmark.watched_roles}
        self._sqs = account.client("sqs", max_pool_connections=_BATCH)
        self._nodes: dict[str, _Node] = {}
        self._queue: dict[str, Any] | None = None
        self._orders_due = self._receive_due = 0.0

    @property
    def nodes(self) -> Mapping[str, _Node]:
        return self._nodes

    def see(self, ready: Mapping[str, str]) -> None:
        """Takes the nodes that are ready, ids to roles. A node that is gone loses its task without a word."""
        now = time.time()
        for node in self._nodes.keys() - ready.keys():
            del self._nodes[node]
        for node, role in ready.items():
            if role in self._roles and node not in self._nodes:
                self._nodes[node] = _Node(node, self._roles[role], now)

    def kill(self, node: str) -> None:
        """Kills the application and the workers of a node: nobody renews the lease of its task."""
        self._nodes[node].killed_at, self._nodes[node].task = time.time(), None

    def step(self) -> None:
        """Does what is due."""
        now = time.time()
        if now >= self._orders_due:
            self._orders_due = now + _ORDERS_SECONDS * self._scale
            self._obey(self._objects.read(names.orders_key(self._run, self._cell)) or {})
        if self._benchmark.queue:
            try:
                self._toil(now)
            except ClientError as error:
                if error.response["Error"]["Code"] not in _GONE:  # the fleet ends
                    raise
        self._report(now)

    def _obey(self, orders: Mapping[str, Any]) -> None:
        if orders.get("restart"):
            raise NotImplementedError("simulated nodes are not restarted: use `do: replace`")
        drained = frozenset(orders.get("drain", ()))
        for node in self._nodes.values():
            node.is_draining = node.id in drained

    def _toil(self, now: float) -> None:
        if not self._reaches_queue():
            return
        self._renew(now)
        ended = [one for one in self._nodes.values() if one.task and one.task.due <= now]
        self._end(ended[:_MOST_OBJECTS], now)
        if now >= self._receive_due:
            self._take(now)

    def _reaches_queue(self) -> bool:
        """Checks once whether the queue is there, and available through the endpoint that it names."""
        if self._queue is None:
            queue = self._objects.read(names.queue_key(self._run, self._cell))
            if queue is None:
                return False
            endpoints = {"-".join(name.split("-")[:2]) for name in queue["endpoints"]}
            filters = [{"Name": "vpc-endpoint-state", "Values": ["available"]}]
            available = self._account.client("ec2").describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
            if not endpoints & {one["VpcEndpointId"] for one in available}:
                return False
            self._queue = queue
        return True

    @property
    def _url(self) -> str:
        assert self._queue is not None
        return str(self._queue["url"])

    def _take(self, now: float) -> None:
        """Takes tasks for all nodes that have none. It asks once before it asks for many at a time."""
        free = [node for node in self._nodes.values() if node.can_take]
        if not free:
            return
        first = self._receive(min(_BATCH, len(free)))
        more = range(_BATCH, len(free), _BATCH) if len(first) == _BATCH else ()
        others = self._objects.pool.map(lambda start: self._receive(min(_BATCH, len(free) - start)), more)
        messages = [*first, *(one for some in others for one in some)]
        for node, message in zip(free, messages, strict=False):
            node.task, node.idle_since = self._task(message, now), None
        for node in free[len(messages) :]:
            node.idle_since = node.idle_since or now
        if len(messages) < len(free):
            self._receive_due = now + _EMPTY_SECONDS * self._scale

    def _receive(self, count: int) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=count, WaitTimeSeconds=0)
        return list(answer.get("Messages", []))

    def _task(self, message: Mapping[str, Any], now: float) -> _Task:
        task = json.loads(message["Body"])
        due = now + self._task_seconds
        return _Task(task["id"], task["body"], message["ReceiptHandle"], due, now + self._renewal)

    @property
    def _renewal(self) -> float:
        """Seconds after which a lease is renewed."""
        assert self._queue is not None
        return float(self._queue["lease"]) / 3

    def _end(self, nodes: Sequence[_Node], now: float) -> None:
        list(self._objects.pool.map(self._deliver, [node.task for node in nodes]))
        for some in _batches(nodes):
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=_entries(some))
        for node in nodes:
            node.task, node.done = None, node.done + 1
        if nodes:
            self._receive_due = min(self._receive_due, now)

    def _deliver(self, task: _Task | None) -> None:
        assert task is not None
        self._objects.write_once(names.work_result_key(self._run, task.id), task.body.encode())

    def _renew(self, now: float) -> None:
        assert self._queue is not None
        due = [node for node in self._nodes.values() if node.task and node.task.renew_at <= now]
        for some in _batches(due):
            entries = [{**one, "VisibilityTimeout": int(self._queue["lease"])} for one in _entries(some)]
            self._sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            for node in some:
                assert node.task is not None
                node.task.renew_at = now + self._renewal

    def _report(self, now: float) -> None:
        """Writes the reports of nodes whose state has changed, or that are due; those that wait longest first."""
        written: list[tuple[str, bytes]] = []
        for node in sorted(self._nodes.values(), key=lambda one: one.reported_at):
            health = self._health(node, now)
            is_drained = node.is_draining and node.task is None
            fail_after = node.role.heal.after if node.role.heal else FAIL_AFTER
            state = (health["status"], health["failures"] >= fail_after, node.is_draining, is_drained)
            is_due = now >= node.reported_at + _REPORT_SECONDS * self._scale
            if (state != node.reported or is_due) and len(written) < _MOST_OBJECTS:
                node.reported, node.reported_at = state, now
                key = f"{names.reports_prefix(self._run, self._cell)}{node.id}.json"
                written.append((key, encoded(self._document(node, health, is_drained, now))))
        self._objects.write_all(written)

    def _document(self, node: _Node, health: dict[str, Any], is_drained: bool, now: float) -> dict[str, Any]:
        return {
            "format": REPORT_FORMAT,
            "id": node.id,
            "role": node.role.role,
            "at": now,
            "ready_at": node.ready_at,
            "health": health,
            "work": {"done": node.done, "held": int(node.task is not None), "idle_since": node.idle_since},
            "draining": node.is_draining,
            "drained": is_drained,
            "repair": None,
            "notice": None,
        }

    def _health(self, node: _Node, now: float) -> dict[str, Any]:
        """Asks the application as the agent does: failures in the grace period do not count."""
        health = node.role.health
        good = {"status": Grade.OK, "failures": 0, "failing_since": None, "detail": "", "checks": []}
        if node.killed_at is None or health is None:
            return good
        since = max(node.killed_at, node.ready_at + health.grace * self._scale)
        if now < since:
            return good
        check = {"name": ANSWER, "status": Grade.FAIL, "detail": "no answer", "actionable": True}
        failures = int((now - since) / (health.every * self._scale)) + 1
        return good | {"status": Grade.FAIL, "failures": failures, "failing_since": since, "checks": [check]}


def _batches(nodes: Sequence[_Node]) -> Iterable[Sequence[_Node]]:
    return (nodes[start : start + _BATCH] for start in range(0, len(nodes), _BATCH))


def _entries(nodes: Sequence[_Node]) -> list[dict[str, Any]]:
    """Returns the receipts of the nodes' tasks, as batches have them."""
    return [{"Id": str(number), "ReceiptHandle": node.task.receipt} for number, node in enumerate(nodes) if node.task]
