"""Creates what the API needs of benchmarks and standing fleets."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from troop.aws.bench.function_calls import FleetCalls, ReportCalls
from troop.aws.bench.live_claims import LiveClaims
from troop.aws.bench.live_store import LiveStore
from troop.aws.bench.price_book import PriceBook
from troop.aws.bench.price_cache import PriceCache
from troop.aws.bench.price_list import PriceList
from troop.aws.bench.report_claims import ReportClaims
from troop.aws.bench.run_files import RunFiles
from troop.aws.bench.run_keys import RunKeys
from troop.aws.bench.run_machines import RunMachines
from troop.aws.bench.schedules import ScheduleGroup, ScheduleRequests, ScheduleStates
from troop.aws.clients import anonymous_client, client, presigning_client, quick_client, regional_client
from troop.bench.prices import region_of_list
from troop.environment import Variable
from troop.flows.bench.benchmarks import Benchmarks
from troop.flows.bench.estimating import Estimating
from troop.flows.bench.fleets import StandingFleets
from troop.flows.bench.live import LiveRuns
from troop.flows.bench.report_links import ReportLinks
from troop.flows.bench.schedules import ScheduledRuns, ScheduledStarts
from troop.tables import FLEET
from troop.wiring import bench, environment
from troop.wiring.environment import settings, variable


@cache
def benchmarks() -> Benchmarks:
    return Benchmarks(
        settings=settings(),
        runs=bench.runs(),
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
        benchmarks=benchmarks(),
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
    return ScheduledRuns(common.benchmarks, common.states, common.requests, common.clock, group)


@cache
def report_links() -> ReportLinks:
    return ReportLinks(
        benchmarks=benchmarks(),
        stored=bench.stored_runs(presigning_client),
        calls=ReportCalls(client("lambda"), variable(Variable.REPORT_FUNCTION)),
        claims=ReportClaims(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep),
        clock=environment.now,
    )


@cache
def live_runs() -> LiveRuns:
    return LiveRuns(
        runs=bench.runs(),
        store=LiveStore(quick_client("s3"), variable(Variable.RESULTS_BUCKET)),
        claims=LiveClaims(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep),
        clock=environment.now,
    )


@cache
def fleets() -> StandingFleets:
    machines = RunMachines(
        client("stepfunctions"), variable(Variable.FLEET_MACHINE), variable(Variable.TEARDOWN_MACHINE)
    )
    return StandingFleets(
        every=replace(benchmarks(), machines=machines, kind=FLEET),
        record=bench.fleet_record(),
        reader=bench.fleet_view(),
        calls=FleetCalls(client("lambda"), variable(Variable.FLEET_FUNCTION)),
        clock=environment.now,
    )
