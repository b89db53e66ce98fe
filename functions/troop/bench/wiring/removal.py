"""Creates teardown and the reaper."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.cell_data import CellData
from troop.bench.aws.executions import Executions
from troop.bench.aws.reaper_switch import ReaperSwitch
from troop.bench.flows.reaper import Reaper
from troop.bench.flows.teardown import Teardown
from troop.bench.wiring.inventory import inventory_reader
from troop.bench.wiring.store import runs
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


@cache
def teardown() -> Teardown:
    data = CellData(client("s3"), variable(Variable.RESULTS_BUCKET)) if settings().own_data else None
    return Teardown(runs(), inventory_reader(), environment.now, data)


@cache
def reaper() -> Reaper:
    executions = Executions(
        client("stepfunctions"),
        variable(Variable.BENCHMARK_MACHINE),
        variable(Variable.TEARDOWN_MACHINE),
        variable(Variable.FLEET_MACHINE),
    )
    switch = ReaperSwitch(client("dynamodb"), variable(Variable.STATE_TABLE))
    return Reaper(runs(), inventory_reader(), executions, switch.is_off, environment.now)
