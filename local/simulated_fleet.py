"""Simulates the nodes of a fleet that is watched: reports of their health, work on its queue, orders and repairs.

They use the formats of the agent and of :mod:`troop.work`. All nodes of all fleets share a few threads and requests:
one request to the queue takes tasks for ten of them. Their workers reach the queue once its endpoint is available.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError

from local.launcher import LocalAccount
from local.simulated_objects import SimulatedObjects, encoded
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.living import ANSWER, WORK, Grade

REPORT_FORMAT = "troop.report/1"
_REPORT_SECONDS, _ORDERS_SECONDS, _POLL_SECONDS = 60.0, 10.0, 10.0
_FLAP_POLLS = 2
"""Polls after which a node that flaps changes its state."""
_SLOWDOWN = 10
_EMPTY_SECONDS = 1.0
"""The pause after a request to an empty queue."""
_BATCH = 10
_MOST_OBJECTS = 80
"""Results and reports of one step: a busy machine must not keep the fleet from renewing its leases."""
_GONE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class Ailment(StrEnum):
    """What can be wrong with a node of a fleet.

    KILLED: its application and workers are gone. Nobody renews the lease of its task.
    HUNG: it answers that it is well, but its worker never ends its task, and keeps it.
    SLOW: each task takes ten times as long.
    FLAPS: its application fails and recovers in turn; it works all the same.
    SILENT: it neither reports nor works.
    """

    KILLED = "killed"
    HUNG = "hung"
    SLOW = "slow"
    FLAPS = "flaps"
    SILENT = "silent"


def _echo(body: str) -> bytes:
    return body.encode()


@dataclass(frozen=True)
class SimulatedWork:
    """How nodes work.

    Attributes:
        seconds: the time of a task.
        perform: the result of a task from its body. If it raises ValueError, the task goes back to the queue.
        time_scale: factor for the intervals of reports, orders and polls, and for those in the file.
    """

    seconds: float = 0.5
    perform: Callable[[str], bytes] = _echo
    time_scale: float = 1.0


@dataclass
class _Task:
    id: str
    body: str
    receipt: str
    due: float
    renew_at: float


@dataclass
class _Node:
    """A node. Moments are seconds since 1970.

    Attributes:
        grace_from: its start, or the end of its last restart.
        counted_from: start of the interval in which it must do work, and what it had done by then.
    """

    id: str
    role: Fleet
    ready_at: float
    grace_from: float
    counted_from: tuple[float, int]
    ailment: Ailment | None = None
    ailing_since: float = 0.0
    is_cured_by_restart: bool = True
    done: int = 0
    idle_since: float | None = None
    task: _Task | None = None
    is_draining: bool = False
    repair: dict[str, Any] | None = None
    notice: Mapping[str, str] | None = None
    failing_since: dict[str, float] = field(default_factory=dict)
    reported: tuple[Any, ...] = ()
    reported_at: float = 0.0

    @property
    def can_take(self) -> bool:
        """Whether its worker takes another task. One that hangs takes one, and keeps it."""
        return self.task is None and not self.is_draining and self.notice is None and self._has_worker

    @property
    def can_end(self) -> bool:
        """Whether its worker ends the task that it holds."""
        return self._has_worker and self.ailment is not Ailment.HUNG

    @property
    def _has_worker(self) -> bool:
        return self.ailment not in (Ailment.KILLED, Ailment.SILENT)


class SimulatedFleet:
    """The nodes of one fleet.

    Args:
        run, cell: of the fleet's objects.
        benchmark: its definition.
    """

    def __init__(
        self,
        account: LocalAccount,
        objects: SimulatedObjects,
        run: str,
        cell: str,
        benchmark: Benchmark,
        work: SimulatedWork,
    ) -> None:
        self._account, self._objects, self._work = account, objects, work
        self._run, self._cell, self._benchmark = run, cell, benchmark
        self._roles = {fleet.role: fleet for fleet in benchmark.fleets if fleet.role in benchmark.watched_roles}
        self._sqs = account.client("sqs", max_pool_connections=_BATCH)
        self._nodes: dict[str, _Node] = {}
        self._queue: dict[str, Any] | None = None
        self._orders: dict[str, Any] = {}
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
                self._nodes[node] = _Node(node, self._roles[role], now, now, (now, 0))

    def fail(self, node: str, ailment: Ailment | None, is_cured_by_restart: bool) -> None:
        """Lets a node ail from now on; None cures it."""
        one = self._nodes[node]
        one.ailment, one.ailing_since, one.is_cured_by_restart = ailment, time.time(), is_cured_by_restart
        if ailment is Ailment.KILLED:
            one.task = None

    def warn(self, node: str, notice: Mapping[str, str]) -> None:
        """Delivers a spot notice: the node hands its task back at once."""
        self._nodes[node].notice = notice

    def step(self) -> None:
        """Does what is due."""
        now = time.time()
        if now >= self._orders_due:
            self._orders_due = now + _ORDERS_SECONDS * self._work.time_scale
            self._obey(self._objects.read(names.orders_key(self._run, self._cell)) or {}, now)
        for node in self._nodes.values():
            self._end_restart(node, now)
        if self._benchmark.queue:
            try:
                self._toil(now)
            except ClientError as error:
                if error.response["Error"]["Code"] not in _GONE:  # the fleet ends
                    raise
        self._report(now)

    def _obey(self, orders: Mapping[str, Any], now: float) -> None:
        drained = frozenset(orders.get("drain", ()))
        for node in self._nodes.values():
            node.is_draining = node.id in drained
        for identifier, repair in orders.get("restart", {}).items():
            meant = self._nodes.get(identifier)
            if meant and meant.ailment is not Ailment.SILENT and (meant.repair or {}).get("id") != repair:
                meant.repair = {"id": repair, "at": now, "code": None}
                self._hand_back([meant])

    def _end_restart(self, node: _Node, now: float) -> None:
        """Ends a restart once its beginning is reported."""
        repair = node.repair
        if repair is None or repair["code"] is not None or node.reported_at < repair["at"]:
            return
        node.repair = {**repair, "at": now, "code": 0}
        node.grace_from, node.counted_from = now, (now, node.done)
        node.failing_since.clear()
        if node.is_cured_by_restart:
            node.ailment = None

    def _toil(self, now: float) -> None:
        if not self._reaches_queue():
            return
        self._hand_back([one for one in self._nodes.values() if one.notice])
        self._renew(now)
        ended = [one for one in self._nodes.values() if one.task and one.can_end and one.task.due <= now]
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
            node.task, node.idle_since = self._task(node, message, now), None
        for node in free[len(messages) :]:
            node.idle_since = node.idle_since or now
        if len(messages) < len(free):
            self._receive_due = now + _EMPTY_SECONDS * self._work.time_scale

    def _receive(self, count: int) -> list[dict[str, Any]]:
        answer = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=count, WaitTimeSeconds=0)
        return list(answer.get("Messages", []))

    def _task(self, node: _Node, message: Mapping[str, Any], now: float) -> _Task:
        document = json.loads(message["Body"])
        seconds = self._work.seconds * (_SLOWDOWN if node.ailment is Ailment.SLOW else 1)
        return _Task(document["id"], document["body"], message["ReceiptHandle"], now + seconds, now + self._renewal)

    @property
    def _renewal(self) -> float:
        """Seconds after which a lease is renewed."""
        assert self._queue is not None
        return float(self._queue["lease"]) / 3

    def _end(self, nodes: Sequence[_Node], now: float) -> None:
        results = list(self._objects.pool.map(self._deliver, [node.task for node in nodes]))
        done = [node for node, has_result in zip(nodes, results, strict=True) if has_result]
        for some in _batches(done):
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=_entries(some))
        for node in done:
            node.task, node.done = None, node.done + 1
        self._hand_back([node for node in nodes if node.task])
        if done:
            self._receive_due = min(self._receive_due, now)

    def _deliver(self, task: _Task | None) -> bool:
        assert task is not None
        try:
            result = self._work.perform(task.body)
        except ValueError:
            return False
        self._objects.write_once(names.work_result_key(self._run, task.id), result)
        return True

    def _hand_back(self, nodes: Iterable[_Node]) -> None:
        for some in _batches([node for node in nodes if node.task]):
            entries = [{**one, "VisibilityTimeout": 0} for one in _entries(some)]
            self._sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            for node in some:
                node.task = None

    def _renew(self, now: float) -> None:
        assert self._queue is not None
        due = [node for node in self._nodes.values() if node.task and node.task.renew_at <= now]
        for some in _batches([node for node in due if node.ailment is not Ailment.SILENT]):
            entries = [{**one, "VisibilityTimeout": int(self._queue["lease"])} for one in _entries(some)]
            self._sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            for node in some:
                assert node.task is not None
                node.task.renew_at = now + self._renewal

    def _report(self, now: float) -> None:
        """Writes the reports of nodes whose state has changed, or that are due; those that wait longest first."""
        written: list[tuple[str, bytes]] = []
        for node in sorted(self._nodes.values(), key=lambda one: one.reported_at):
            if node.ailment is Ailment.SILENT:
                continue
            health = self._health(node, now)
            is_drained = node.is_draining and node.task is None
            repair = (node.repair or {}).get("id"), (node.repair or {}).get("code", 0)
            state = (health["status"], node.is_draining, is_drained, repair, node.notice is not None)
            is_due = now >= node.reported_at + _REPORT_SECONDS * self._work.time_scale
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
            "repair": node.repair,
            "notice": node.notice,
        }

    def _health(self, node: _Node, now: float) -> dict[str, Any]:
        """Asks the application as the agent does: failures in the grace period do not count."""
        scale, health = self._work.time_scale, node.role.health
        poll = (health.every if health else _POLL_SECONDS) * scale
        failing = {
            name: node.failing_since.setdefault(name, now)
            for name, is_failing in ((ANSWER, self._is_mute(node, poll, now)), (WORK, self._is_lazy(node, now)))
            if is_failing
        }
        node.failing_since = failing
        if not failing or (health and now < node.grace_from + health.grace * scale):
            node.failing_since = {}
            return {"status": Grade.OK, "failures": 0, "failing_since": None, "detail": "", "checks": []}
        since = min(failing.values())
        checks = [
            {
                "name": name,
                "status": Grade.FAIL,
                "detail": "no answer" if name == ANSWER else "no work is done",
                "actionable": True,
            }
            for name in failing
        ]
        return {
            "status": Grade.FAIL,
            "failures": int((now - since) / poll) + 1,
            "failing_since": since,
            "detail": checks[0]["detail"],
            "checks": checks,
        }

    def _is_mute(self, node: _Node, poll: float, now: float) -> bool:
        """Checks whether the application does not answer."""
        if node.role.health is None:
            return False
        is_down = int((now - node.ailing_since) / (poll * _FLAP_POLLS)) % 2 == 0
        return node.ailment is Ailment.KILLED or (node.ailment is Ailment.FLAPS and is_down)

    def _is_lazy(self, node: _Node, now: float) -> bool:
        """Checks whether a node has done too little work in the last complete interval, and was not idle."""
        work = node.role.work
        if work is None:
            return False
        since, count = node.counted_from
        if node.is_draining or node.idle_since is not None or node.done - count >= work.at_least:
            node.counted_from = now, node.done
            return False
        return now >= since + work.every * self._work.time_scale


def _batches(nodes: Sequence[_Node]) -> Iterable[Sequence[_Node]]:
    return (nodes[start : start + _BATCH] for start in range(0, len(nodes), _BATCH))


def _entries(nodes: Sequence[_Node]) -> list[dict[str, Any]]:
    """Returns the receipts of the nodes' tasks, as batches have them."""
    return [{"Id": str(number), "ReceiptHandle": node.task.receipt} for number, node in enumerate(nodes) if node.task]
