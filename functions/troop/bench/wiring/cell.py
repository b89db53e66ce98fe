"""Creates the steps of a cell."""

from __future__ import annotations

import os
from functools import cache

from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.aws.unit_requests import UnitRequests
from troop.bench.flows.attempts import Attempts
from troop.bench.flows.cell_faults import CellFaults
from troop.bench.flows.cell_steps import CellSteps
from troop.bench.flows.replacing import Replacing
from troop.bench.wiring.store import cell_store, runs
from troop.shared.aws.clients import client, waiting_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


@cache
def cell_steps() -> CellSteps:
    reader, store = FleetReader(client("ec2"), client("autoscaling")), cell_store()
    replacing = Replacing(runs(), store, reader, variable(Variable.NODE_PROFILE), environment.now)
    requests = UnitRequests(waiting_client("lambda"), os.environ.get(Variable.REQUEST_FUNCTION))
    faults = CellFaults(store, requests, environment.now)
    return CellSteps(runs(), store, reader, replacing, faults, environment.now)


@cache
def attempts() -> Attempts:
    return Attempts(runs(), cell_store(), environment.now)
