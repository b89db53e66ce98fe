"""Creates what the API needs of benchmarks and standing fleets."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache, partial

from troop.bench.aws.function_calls import FleetCalls
from troop.bench.aws.live_claims import LiveClaims
from troop.bench.aws.live_store import LiveStore
from troop.bench.aws.price_book import PriceBook
from troop.bench.aws.price_cache import PriceCache
from troop.bench.aws.price_list import PriceList
from troop.bench.aws.run_files import RunFiles
from troop.bench.aws.run_keys import RunKeys
from troop.bench.aws.run_machines import RunMachines
from troop.bench.aws.stored_schedules import ScheduleGroup, ScheduleRequests, ScheduleStates
from troop.bench.aws.unit_requests import UnitRequests
from troop.bench.aws.work_results import WorkResults
from troop.bench.flows.estimating import Estimating
from troop.bench.flows.fleet_service import FleetService
from troop.bench.flows.live_runs import LiveRuns
from troop.bench.flows.run_service import RunService
from troop.bench.flows.scheduled_runs import ScheduledRuns, ScheduledStarts
from troop.bench.money.prices import region_of_list
from troop.bench.wiring import fleet, store
from troop.shared.aws.clients import anonymous_client, client, presigning_client, quick_client, regional_client
from troop.shared.tables import FLEET
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


@cache
def run_service() -> RunService:
    return RunService(
        settings=settings(),
        runs=store.runs(),
        keys=RunKeys(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep),
        files=RunFiles(presigning_client("s3"), variable(Variable.RESULTS_BUCKET)),
        machines=RunMachines(
            client("stepfunctions"), variable(Variable.BENCHMARK_MACHINE), variable(Variable.TEARDOWN_MACHINE)
        ),
        ec2=client("ec2"),
        ssm=partial(client, "ssm"),
        elb=partial(client, "elbv2"),
        s3=partial(anonymous_client, "s3"),
        vpc=variable(Variable.NETWORK_VPC),
        is_own_network=variable(Variable.NETWORK_IS_OWN) == "true",
        subnets=tuple(variable(Variable.NETWORK_SUBNETS).split(",")),
        clock=environment.now,
        estimating=estimating(),
        unit_requests=UnitRequests(client("lambda"), os.environ.get(Variable.REQUEST_FUNCTION)),
    )


def estimating() -> Estimating:
    ec2 = quick_client("ec2")
    region = ec2.meta.region_name
    served = region_of_list(region)
    price_list = PriceList(regional_client("pricing", served), region) if served else None
    cache = PriceCache(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep)
    return Estimating(PriceBook(region, price_list, ec2, cache, environment.now), quick_client("service-quotas"))


@cache
def starts() -> ScheduledStarts:
    return ScheduledStarts(
        runs=run_service(),
        states=ScheduleStates(
            client("dynamodb"), variable(Variable.STATE_TABLE), variable(Variable.RUN_SCHEDULE_GROUP), environment.sleep
        ),
        requests=ScheduleRequests(client("s3"), variable(Variable.RESULTS_BUCKET)),
        clock=environment.now,
    )


@cache
def schedules() -> ScheduledRuns:
    group = ScheduleGroup(
        client("scheduler"),
        group=variable(Variable.RUN_SCHEDULE_GROUP),
        function=variable(Variable.START_FUNCTION),
        role=variable(Variable.RUN_SCHEDULE_ROLE),
        undelivered=variable(Variable.RUN_SCHEDULE_UNDELIVERED),
    )
    common = starts()
    return ScheduledRuns(common.runs, common.states, common.requests, common.clock, group)


@cache
def live_runs() -> LiveRuns:
    return LiveRuns(
        runs=store.runs(),
        store=LiveStore(quick_client("s3"), variable(Variable.RESULTS_BUCKET)),
        claims=LiveClaims(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep),
        clock=environment.now,
    )


@cache
def fleet_service() -> FleetService:
    machines = RunMachines(
        client("stepfunctions"), variable(Variable.FLEET_MACHINE), variable(Variable.TEARDOWN_MACHINE)
    )
    return FleetService(
        every=replace(run_service(), machines=machines, kind=FLEET),
        record=fleet.fleet_record(),
        reader=fleet.fleet_view(),
        calls=FleetCalls(client("lambda"), variable(Variable.FLEET_FUNCTION)),
        queues=fleet.work_queues(),
        stored=WorkResults(presigning_client("s3"), variable(Variable.RESULTS_BUCKET)),
        clock=environment.now,
    )
