"""Creates what finds the resources of runs."""

from __future__ import annotations

from troop.bench.aws.tagged_resources import TaggedResources
from troop.bench.aws.work_queues import WorkQueues
from troop.bench.flows.inventory_reader import InventoryReader
from troop.bench.removal.inventory import Site
from troop.bench.wiring.store import runs
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


def tagged_resources() -> TaggedResources:
    queues = WorkQueues(client("sqs"), environment.sleep)
    return TaggedResources(client("ec2"), client("autoscaling"), queues, settings().deployment)


def inventory_reader() -> InventoryReader:
    return InventoryReader(
        runs(), tagged_resources(), Site(variable(Variable.NETWORK_VPC), variable(Variable.NODE_PROFILE))
    )
