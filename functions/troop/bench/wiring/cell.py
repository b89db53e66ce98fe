"""Creates the steps of a cell."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.flows.attempts import Attempts
from troop.bench.flows.cell_steps import CellSteps
from troop.bench.flows.replacing import Replacing
from troop.bench.wiring.store import cell_store, runs
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


@cache
def cell_steps() -> CellSteps:
    reader, store = FleetReader(client("ec2"), client("autoscaling")), cell_store()
    replacing = Replacing(runs(), store, reader, variable(Variable.NODE_PROFILE), environment.now)
    return CellSteps(runs=runs(), store=store, reader=reader, replacing=replacing, clock=environment.now)


@cache
def attempts() -> Attempts:
    return Attempts(runs(), cell_store(), environment.now)
