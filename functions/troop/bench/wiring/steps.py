"""Creates the steps of the workflows of benchmarks and standing fleets, and of their removal."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from troop.bench.aws.backups import BackupGroups
from troop.bench.aws.cell_data import CellData
from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.executions import Executions
from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.fleets import Fleets
from troop.bench.aws.reaper_switch import ReaperSwitch
from troop.bench.aws.runs import RunTable
from troop.bench.aws.service_roles import ServiceRoles
from troop.bench.aws.standing_groups import StandingGroups
from troop.bench.aws.stored_runs import StoredRuns
from troop.bench.aws.tagged_resources import Leftovers
from troop.bench.flows.attempts import Attempts
from troop.bench.flows.backup import Backup
from troop.bench.flows.cell import CellSteps
from troop.bench.flows.fleet import FleetSteps, FleetView
from troop.bench.flows.inventory import Stocktaking
from troop.bench.flows.launch import Launching, Network
from troop.bench.flows.reap import Reaper
from troop.bench.flows.replacing import Replacing
from troop.bench.flows.seating import Seating
from troop.bench.flows.teardown import Teardown
from troop.bench.removal.ownership import Site
from troop.shared.aws.clients import client, many_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


def runs() -> RunTable:
    return RunTable(client("dynamodb"), variable(Variable.RUNS_TABLE), environment.sleep)


def stored_runs(of: Callable[[str], Any] = client) -> StoredRuns:
    """Creates the reader of stored runs. ``of``: returns a service's client."""
    return StoredRuns(of("s3"), variable(Variable.RESULTS_BUCKET))


def cell_store() -> CellStore:
    return CellStore(many_client("s3"), variable(Variable.RESULTS_BUCKET))


def leftovers() -> Leftovers:
    return Leftovers(client("ec2"), client("autoscaling"), settings().deployment)


def stock() -> Stocktaking:
    return Stocktaking(runs(), leftovers(), Site(variable(Variable.NETWORK_VPC), variable(Variable.NODE_PROFILE)))


def fleet_record() -> FleetRecord:
    return FleetRecord(client("dynamodb"), variable(Variable.RUNS_TABLE), environment.sleep)


def fleet_view() -> FleetView:
    return FleetView(StandingGroups(client("autoscaling")), cell_store())


@cache
def launching() -> Launching:
    ec2 = client("ec2")
    return Launching(
        deployment=settings().deployment,
        tags=settings().tags,
        network=Network(variable(Variable.NETWORK_VPC), tuple(variable(Variable.NETWORK_SUBNETS).split(","))),
        profile=variable(Variable.NODE_PROFILE),
        role_id=variable(Variable.NODE_ROLE_ID),
        region=ec2.meta.region_name,
        agent=Path(os.environ.get(Variable.AGENT_FILE, environment.CODE / "agent.pyz")),
        runs=runs(),
        store=cell_store(),
        fleets=Fleets(ec2, client("autoscaling"), client("ssm"), environment.sleep),
        roles=ServiceRoles(client("iam"), environment.sleep),
        clock=environment.now,
    )


@cache
def backup() -> Backup:
    ec2, autoscaling = client("ec2"), client("autoscaling")
    return Backup(
        deployment=settings().deployment,
        tags=settings().tags,
        runs=runs(),
        store=cell_store(),
        groups=BackupGroups(autoscaling),
        fleets=Fleets(ec2, autoscaling, client("ssm"), environment.sleep),
        clock=environment.now,
    )


@cache
def cell_steps() -> CellSteps:
    reader, store = FleetReader(client("ec2"), client("autoscaling")), cell_store()
    replacing = Replacing(runs(), store, reader, variable(Variable.NODE_PROFILE), environment.now)
    return CellSteps(runs=runs(), store=store, reader=reader, replacing=replacing, clock=environment.now)


@cache
def attempts() -> Attempts:
    return Attempts(runs(), cell_store(), environment.now)


@cache
def fleet_steps() -> FleetSteps:
    seating = Seating(FleetReader(client("ec2"), client("autoscaling")), cell_store())
    return FleetSteps(runs(), fleet_record(), fleet_view(), stock(), seating, environment.now)


@cache
def teardown() -> Teardown:
    data = CellData(client("s3"), variable(Variable.RESULTS_BUCKET)) if settings().own_data else None
    return Teardown(runs(), stock(), environment.now, data)


@cache
def reaper() -> Reaper:
    executions = Executions(
        client("stepfunctions"),
        variable(Variable.BENCHMARK_MACHINE),
        variable(Variable.TEARDOWN_MACHINE),
        variable(Variable.FLEET_MACHINE),
    )
    switch = ReaperSwitch(client("dynamodb"), variable(Variable.STATE_TABLE))
    return Reaper(runs(), stock(), executions, switch.is_off, environment.now)
