"""Simulated nodes of watched fleets report, work through the queue, drain, and are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from local.simulated_nodes import SimulatedNodes
from tests.patience import eventually
from troop.bench.definition import definition, names
from troop.bench.definition.definition import Benchmark, to_document
from troop.bench.definition.living import Health, Queue

from .helpers import Fleet, World, unique
from .test_endpoints import Endpoints
from .test_simulated_nodes import CELL, Bucket, launch

HEALTH = Health(port=8080, every=10, grace=0)
HURRY = 0.02
"""A minute takes 1.2 s."""


class Watched:
    """A watched fleet: its nodes, and what they write. Leaving the block ends it."""

    def __init__(self, world: World, fleet: Fleet, run: str, nodes: int) -> None:
        self.world, self.run, self.bucket = world, run, Bucket(world)
        self.benchmark = Benchmark(
            *("work", "", 7200),
            (definition.Fleet("drivers", nodes, "c5.large", 1, 300, 8, health=HEALTH),),
            *((), {}),
            standing=True,
            queue=Queue(lease=30, tries=2),
        )
        self.bucket.write(names.cell_definition_key(run, CELL), to_document(self.benchmark))
        self.sqs, self.endpoints = world.account.client("sqs"), Endpoints(fleet)
        attributes = {"VisibilityTimeout": "30"}
        self.url = self.sqs.create_queue(QueueName=unique("work"), Attributes=attributes)["QueueUrl"]
        self.ids = launch(fleet, run, nodes)
        self._open = ExitStack()

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.endpoints.clear()

    def start(self, task_seconds: float = 0) -> SimulatedNodes:
        account, bucket = self.world.account, self.bucket.name
        return self._open.enter_context(SimulatedNodes(account, bucket, task_seconds=task_seconds, time_scale=HURRY))

    def open_queue(self) -> None:
        """Creates the endpoint, and tells the nodes of the queue."""
        group = self.endpoints.group()
        endpoint = self.endpoints.describe(self.endpoints.available(group))
        document = {"url": self.url, "lease": 30, "endpoints": [one["DnsName"] for one in endpoint["DnsEntries"]]}
        self.bucket.write(names.queue_key(self.run, CELL), document)

    def order(self, *drain: str) -> None:
        document = {"format": "troop.orders/1", "expires_at": 2e9, "drain": drain, "restart": {}}
        self.bucket.write(names.orders_key(self.run, CELL), document)

    def submit(self, *bodies: str) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=json.dumps({"id": f"t-{body}", "body": body}))

    def results(self) -> dict[str, str]:
        prefix = names.work_results_prefix(self.run)
        listed = self.bucket.s3.list_objects_v2(Bucket=self.bucket.name, Prefix=prefix).get("Contents", [])
        bodies = ((one["Key"], self.bucket.s3.get_object(Bucket=self.bucket.name, Key=one["Key"])) for one in listed)
        return {key.removeprefix(prefix): answer["Body"].read().decode() for key, answer in bodies}

    def count(self, kind: str = "") -> int:
        name = f"ApproximateNumberOfMessages{kind}"
        answer = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def reports(self) -> dict[str, dict[str, Any]]:
        return self.bucket.under(names.reports_prefix(self.run, CELL))

    def report(self, node: str, **parts: Any) -> dict[str, Any]:
        """The report of a node, once these parts of it are so. `health`: the status."""

        def probe() -> dict[str, Any] | None:
            report = self.reports().get(node)
            if report is None:
                return None
            seen = {**report, "health": report["health"]["status"]}
            return report if all(seen[name] == part for name, part in parts.items()) else None

        return dict(eventually(probe))


@pytest.fixture
def watched(world: World, fleet: Fleet, request: pytest.FixtureRequest) -> Iterator[Watched]:
    with Watched(world, fleet, f"20261121-150312-{abs(hash(request.node.name)) % 16**8:08x}", 3) as watched:
        yield watched


def test_all_tasks_are_done_once_the_queue_is_open(watched: Watched) -> None:
    bodies = [str(number) for number in range(25)]
    watched.submit(*bodies)
    watched.bucket.write(f"{names.work_results_prefix(watched.run)}t-0", {"earlier": True})
    watched.start()
    watched.report(watched.ids[0], health="ok")
    assert watched.count() == 25, "without a queue on record, nobody works"
    watched.open_queue()
    eventually(lambda: not watched.count() + watched.count("NotVisible"))
    results = watched.results()
    assert results.pop("t-0") == '{"earlier": true}', "the first result stands"
    assert results == {f"t-{body}": body for body in bodies[1:]}
    eventually(lambda: sum(one["work"]["done"] for one in watched.reports().values()) == 25)
    assert all(one["work"]["idle_since"] for one in watched.reports().values())


def test_a_node_that_drains_ends_its_task_and_takes_no_other(watched: Watched) -> None:
    first, *others = watched.ids
    watched.open_queue()
    watched.submit("a", "b", "c")
    watched.start(task_seconds=3)
    eventually(lambda: watched.count("NotVisible") == 3)
    watched.order(first)
    assert watched.report(first, draining=True)["work"]["held"] == 1
    watched.report(first, drained=True)
    eventually(lambda: len(watched.results()) == 3)
    watched.submit("d", "e", "f")
    eventually(lambda: len(watched.results()) == 6)
    reports = {one: watched.report(one, health="ok") for one in watched.ids}
    eventually(lambda: sum(watched.reports()[one]["work"]["done"] for one in others) == 5)
    assert reports[first]["work"]["done"] == 1


def test_a_killed_node_fails_and_takes_no_task(watched: Watched) -> None:
    killed, *others = watched.ids
    nodes = watched.start()
    watched.report(killed, health="ok")
    nodes.kill(killed)
    health = watched.report(killed, health="fail")["health"]
    assert ([one["name"] for one in health["checks"]], health["failures"] >= 1) == (["answer"], True)
    watched.open_queue()
    watched.submit(*"abcd")
    eventually(lambda: sum(watched.report(one, health="ok")["work"]["done"] for one in others) == 4)
