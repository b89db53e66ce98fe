"""Creates the steps of a standing fleet."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.queue_ages import QueueAges
from troop.bench.aws.standing_groups import StandingGroups
from troop.bench.aws.work_queues import WorkQueues
from troop.bench.flows.fleet_health import FleetHealth
from troop.bench.flows.fleet_limits import FleetLimits
from troop.bench.flows.fleet_sizes import FleetSizes
from troop.bench.flows.fleet_steps import FleetSteps
from troop.bench.flows.fleet_view import FleetView
from troop.bench.flows.fleet_work import FleetWork
from troop.bench.flows.seating import Seating
from troop.bench.wiring.inventory import inventory_reader
from troop.bench.wiring.store import cell_store, runs
from troop.shared.aws.alarm_topics import AlarmTopics
from troop.shared.aws.clients import client, quick_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


def fleet_record() -> FleetRecord:
    return FleetRecord(client("dynamodb"), variable(Variable.RUNS_TABLE), environment.sleep)


def fleet_view(role_id: str = "") -> FleetView:
    return FleetView(StandingGroups(client("autoscaling")), cell_store(), role_id)


def fleet_limits() -> FleetLimits:
    return FleetLimits(runs(), environment.settings())


def work_queues() -> WorkQueues:
    return WorkQueues(client("sqs"), environment.sleep)


@cache
def fleet_steps() -> FleetSteps:
    view = fleet_view(variable(Variable.NODE_ROLE_ID))
    sizes = FleetSizes(runs(), fleet_record(), view.groups, inventory_reader())
    ages = QueueAges(quick_client("cloudwatch"))
    work = FleetWork(fleet_record(), sizes, fleet_limits(), work_queues(), ages)
    seating = Seating(FleetReader(client("ec2"), client("autoscaling")), cell_store())
    return FleetSteps(runs(), fleet_record(), view, fleet_health(), work, seating, environment.now)


def fleet_health() -> FleetHealth:
    topics = AlarmTopics(client("sns"), variable(Variable.ACT_NOW_TOPIC), variable(Variable.WARNING_TOPIC))
    return FleetHealth(fleet_record(), StandingGroups(client("autoscaling")), topics, environment.settings().deployment)
