"""Creates the steps of a standing fleet."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.standing_groups import StandingGroups
from troop.bench.flows.fleet_steps import FleetSteps, FleetView
from troop.bench.flows.seating import Seating
from troop.bench.wiring.inventory import inventory_reader
from troop.bench.wiring.store import cell_store, runs
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


def fleet_record() -> FleetRecord:
    return FleetRecord(client("dynamodb"), variable(Variable.RUNS_TABLE), environment.sleep)


def fleet_view() -> FleetView:
    return FleetView(StandingGroups(client("autoscaling")), cell_store())


@cache
def fleet_steps() -> FleetSteps:
    seating = Seating(FleetReader(client("ec2"), client("autoscaling")), cell_store())
    return FleetSteps(runs(), fleet_record(), fleet_view(), inventory_reader(), seating, environment.now)
