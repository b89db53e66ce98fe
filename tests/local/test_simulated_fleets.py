"""Simulated nodes of watched fleets report, work through the queue, obey orders, and ail as they are told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from local.simulated_fleet import Ailment, SimulatedWork
from local.simulated_nodes import SimulatedNodes
from tests.patience import eventually
from troop.bench.definition import definition, names
from troop.bench.definition.definition import Benchmark, to_document
from troop.bench.definition.living import Health, Queue, Work

from .helpers import Fleet, World, unique
from .test_endpoints import Endpoints
from .test_simulated_nodes import CELL, Bucket, launch

HEALTH, WORK = Health(port=8080, every=10, grace=0), Work(at_least=1, every=60)
HURRY = SimulatedWork(seconds=0, time_scale=0.02)
"""A minute takes 1.2 s."""


class Watched:
    """A watched fleet: its nodes, and what they write. Leaving the block ends it."""

    def __init__(self, world: World, fleet: Fleet, run: str, nodes: int) -> None:
        self.world, self.run, self.bucket = world, run, Bucket(world)
        self.benchmark = Benchmark(
            *("work", "", 7200),
            (definition.Fleet("drivers", nodes, "c5.large", 1, 300, 8, health=HEALTH, work=WORK),),
            *((), {}),
            standing=True,
            queue=Queue(lease=30, tries=2),
        )
        self.bucket.write(names.cell_definition_key(run, CELL), to_document(self.benchmark))
        self.sqs, self.endpoints = world.account.client("sqs"), Endpoints(fleet)
        self.url, self.dead = (self.sqs.create_queue(QueueName=unique(name))["QueueUrl"] for name in ("work", "dead"))
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.dead, AttributeNames=["QueueArn"])["Attributes"]
        redrive = json.dumps({"deadLetterTargetArn": attributes["QueueArn"], "maxReceiveCount": 2})
        settings = {"RedrivePolicy": redrive, "VisibilityTimeout": "30"}
        self.sqs.set_queue_attributes(QueueUrl=self.url, Attributes=settings)
        self.ids = launch(fleet, run, nodes)
        self._open = ExitStack()

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.endpoints.clear()

    def start(self, work: SimulatedWork = HURRY) -> SimulatedNodes:
        return self._open.enter_context(SimulatedNodes(self.world.account, self.bucket.name, work=work))

    def open_queue(self) -> None:
        """Creates the endpoint, and tells the nodes of the queue."""
        group = self.endpoints.group()
        endpoint = self.endpoints.describe(self.endpoints.available(group))
        document = {"url": self.url, "lease": 30, "endpoints": [one["DnsName"] for one in endpoint["DnsEntries"]]}
        self.bucket.write(names.queue_key(self.run, CELL), document)

    def order(self, drain: tuple[str, ...] = (), restart: dict[str, str] | None = None) -> None:
        document = {"format": "troop.orders/1", "expires_at": 2e9, "drain": drain, "restart": restart or {}}
        self.bucket.write(names.orders_key(self.run, CELL), document)

    def submit(self, *bodies: str) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=json.dumps({"id": f"t-{body}", "body": body}))

    def results(self) -> dict[str, str]:
        prefix = names.work_results_prefix(self.run)
        listed = self.bucket.s3.list_objects_v2(Bucket=self.bucket.name, Prefix=prefix).get("Contents", [])
        bodies = ((one["Key"], self.bucket.s3.get_object(Bucket=self.bucket.name, Key=one["Key"])) for one in listed)
        return {key.removeprefix(prefix): answer["Body"].read().decode() for key, answer in bodies}

    def count(self, url: str, kind: str = "") -> int:
        name = f"ApproximateNumberOfMessages{kind}"
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def reports(self) -> dict[str, dict[str, Any]]:
        return self.bucket.under(names.reports_prefix(self.run, CELL))

    def report(self, node: str, **parts: Any) -> dict[str, Any]:
        """The report of a node, once these parts of it are so. `health`: the status; `checks`: names."""

        def probe() -> dict[str, Any] | None:
            report = self.reports().get(node)
            if report is None:
                return None
            checks = sorted(one["name"] for one in report["health"]["checks"])
            seen = {**report, "health": report["health"]["status"], "checks": checks}
            return report if all(seen[name] == part for name, part in parts.items()) else None

        return dict(eventually(probe))


@pytest.fixture
def watched(world: World, fleet: Fleet, request: pytest.FixtureRequest) -> Iterator[Watched]:
    with Watched(world, fleet, f"20261121-150312-{abs(hash(request.node.name)) % 16**8:08x}", 3) as watched:
        yield watched


def test_all_tasks_are_done_and_poison_is_a_dead_letter(watched: Watched) -> None:
    def perform(body: str) -> bytes:
        if body == "poison":
            raise ValueError
        return f"did {body}".encode()

    bodies = [str(number) for number in range(25)]
    watched.submit(*bodies, "poison")
    watched.bucket.write(f"{names.work_results_prefix(watched.run)}t-0", {"earlier": True})
    watched.start(SimulatedWork(0, perform, 0.02))
    watched.report(watched.ids[0], health="ok")
    assert watched.count(watched.url) == 26, "without a queue on record, nobody works"
    watched.open_queue()
    eventually(lambda: watched.count(watched.dead) == 1 and not watched.count(watched.url, "NotVisible"))
    results = watched.results()
    assert results.pop("t-0") == '{"earlier": true}', "the first result stands"
    assert results == {f"t-{body}": f"did {body}" for body in bodies[1:]}
    eventually(lambda: sum(one["work"]["done"] for one in watched.reports().values()) == 25)
    assert all(one["work"]["idle_since"] for one in watched.reports().values())


def test_a_node_that_drains_ends_its_task_and_takes_no_other(watched: Watched) -> None:
    first, *others = watched.ids
    watched.open_queue()
    watched.submit("a", "b", "c")
    watched.start(SimulatedWork(3, time_scale=0.02))
    eventually(lambda: watched.count(watched.url, "NotVisible") == 3)
    watched.order(drain=(first,))
    assert watched.report(first, draining=True)["work"]["held"] == 1
    watched.report(first, drained=True)
    eventually(lambda: len(watched.results()) == 3)
    watched.submit("d", "e", "f")
    eventually(lambda: len(watched.results()) == 6)
    reports = {one: watched.report(one, health="ok") for one in watched.ids}
    eventually(lambda: sum(watched.reports()[one]["work"]["done"] for one in others) == 5)
    assert reports[first]["work"]["done"] == 1


def test_a_restart_cures_nodes_that_ail(watched: Watched) -> None:
    killed, hung, silent = watched.ids
    watched.open_queue()
    nodes = watched.start()
    for one in watched.ids:
        watched.report(one, health="ok", checks=[])
    nodes.fail(killed, Ailment.KILLED)
    nodes.fail(hung, Ailment.HUNG)
    assert watched.report(killed, health="fail", checks=["answer"])["health"]["failures"] >= 1
    watched.submit(*"abcd")
    watched.report(hung, health="fail", checks=["work"])
    watched.order(restart={hung: "r1", killed: "r2"})
    for one, repair in ((hung, "r1"), (killed, "r2")):
        eventually(lambda one=one: (watched.reports()[one]["repair"] or {}).get("code") == 0)  # type: ignore[misc]
        assert watched.report(one, health="ok")["repair"]["id"] == repair
    eventually(lambda: sorted(watched.results()) == ["t-a", "t-b", "t-c", "t-d"])
    nodes.fail(silent, Ailment.SILENT)
    before = watched.reports()[silent]["at"]
    eventually(lambda: watched.reports()[killed]["at"] > before + 3)
    assert watched.reports()[silent]["at"] < before + 3


def test_a_node_that_flaps_fails_and_recovers_in_turn(watched: Watched) -> None:
    nodes, flaps = watched.start(SimulatedWork(0, time_scale=0.1)), watched.ids[0]
    watched.report(flaps, health="ok")
    nodes.fail(flaps, Ailment.FLAPS)
    for status in ("fail", "ok", "fail"):
        watched.report(flaps, health=status)


def test_a_slow_node_does_too_little_work_until_its_task_ends(watched: Watched) -> None:
    nodes, slow = watched.start(SimulatedWork(1, time_scale=0.1)), watched.ids[0]
    for one in watched.ids:
        watched.report(one, health="ok")
    nodes.fail(slow, Ailment.SLOW)
    watched.submit("a", "b", "c")
    watched.open_queue()
    watched.report(slow, health="fail", checks=["work"])
    nodes.fail(slow, None)
    assert watched.report(slow, health="ok")["work"]["done"] == 1
    assert [watched.report(one, health="ok")["work"]["done"] for one in watched.ids[1:]] == [1, 1]


def test_a_node_that_is_interrupted_hands_its_task_back(watched: Watched) -> None:
    watched.open_queue()
    nodes = watched.start(SimulatedWork(3600, time_scale=0.02))
    watched.submit("a", "b", "c")
    eventually(lambda: watched.count(watched.url, "NotVisible") == 3)
    nodes.interrupt(watched.ids[0])
    watched.report(watched.ids[0], notice={"action": "terminate", "time": "2026-11-21T15:03:12Z"})
    eventually(lambda: watched.count(watched.url) == 1)
