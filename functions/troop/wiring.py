"""Puts the pieces together from a function's environment; made once, at its first call."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from aws_lambda_powertools.utilities import parameters

from troop.aws.backups import BackupGroups
from troop.aws.balancers import Balancers
from troop.aws.bus import Bus
from troop.aws.cell_store import CellStore
from troop.aws.changes import ChangeTable
from troop.aws.claim import Claims
from troop.aws.clients import (
    client,
    many_client,
    presigning_client,
    quick_client,
    regional_client,
    termination_client,
)
from troop.aws.decision_queries import DecisionQueries
from troop.aws.decisions import DecisionTable
from troop.aws.edits import Edits
from troop.aws.event_queries import EventQueries
from troop.aws.event_walk import EventWalk
from troop.aws.events import EventTable
from troop.aws.executions import Executions
from troop.aws.fleet_calls import FleetCalls
from troop.aws.fleet_looks import FleetLooks
from troop.aws.fleet_record import FleetRecord
from troop.aws.fleets import Fleets
from troop.aws.health_reads import HealthReads
from troop.aws.kept_runs import KeptRuns
from troop.aws.leftovers import Leftovers
from troop.aws.price_book import PriceBook
from troop.aws.price_cache import PriceCache
from troop.aws.price_list import PriceList, region_of
from troop.aws.queue import Queue
from troop.aws.repeats import Repeats
from troop.aws.report_calls import ReportCalls
from troop.aws.report_claims import ReportClaims
from troop.aws.run_files import RunFiles
from troop.aws.run_items import FLEET
from troop.aws.run_keys import RunKeys
from troop.aws.run_machines import RunMachines
from troop.aws.runs import RunTable
from troop.aws.standing_groups import StandingGroups
from troop.aws.starts import Starts
from troop.aws.state import PolicyTable, StateTable
from troop.aws.stream import Streams
from troop.aws.termination import Terminator
from troop.aws.topic import Topic
from troop.errors import TroopError
from troop.flows.attempts import Attempts
from troop.flows.backup import Backup
from troop.flows.benchmarks import Benchmarks
from troop.flows.cell import CellSteps
from troop.flows.edits import Editor
from troop.flows.estimating import Estimating
from troop.flows.fleet import FleetSteps, FleetView
from troop.flows.fleets import StandingFleets
from troop.flows.health import Health
from troop.flows.launch import Launching, Network
from troop.flows.notify import Notifier
from troop.flows.on_demand import OnDemand
from troop.flows.reap import Reaper
from troop.flows.repairs import DeadLetters, Redrive
from troop.flows.report_links import ReportLinks
from troop.flows.sweep import Sweeper
from troop.flows.teardown import Teardown
from troop.flows.terminate import Termination
from troop.flows.tick import Tick
from troop.flows.units import Units
from troop.flows.watch import Watcher
from troop.flows.widgets import Widgets
from troop.settings import Settings, load_settings


class EnvironmentIncompleteError(TroopError):
    """The function was deployed without a variable that it needs."""


def variable(name: str) -> str:
    """An environment variable's value.

    Raises:
        EnvironmentIncompleteError: it is not set.
    """
    if value := os.environ.get(name):
        return value
    raise EnvironmentIncompleteError(f"the environment variable {name} is not set: deploy the stack again")


@cache
def settings() -> Settings:
    """The deployment's settings, from the file beside the handlers."""
    beside = Path(__file__).parents[1] / "deployment.json"
    return load_settings(Path(os.environ.get("TROOP_DEPLOYMENT_FILE", beside)))


def salt() -> bytes:
    """The salt of the rolls; kept for five minutes, so that a rotated one is taken up."""
    return str(parameters.get_secret(variable("TROOP_SALT_SECRET"), max_age=300)).encode()


def now() -> datetime:
    return datetime.now(UTC)


def recovery_timeout() -> timedelta:
    """After which a group that is not whole again is given up."""
    return timedelta(minutes=settings().recovery_timeout_minutes)


@cache
def tick() -> Tick:
    return Tick(
        settings=settings(),
        autoscaling=client("autoscaling"),
        cloudwatch=client("cloudwatch"),
        ec2=client("ec2"),
        decisions=decisions(),
        events=events(),
        policies=policies(),
        state=state(),
        salt=salt,
        clock=now,
    )


@cache
def termination() -> Termination:
    return Termination(
        settings=settings(),
        autoscaling=client("autoscaling"),
        cloudwatch=client("cloudwatch"),
        ec2=client("ec2"),
        claims=claims(),
        events=events(),
        policies=policies(),
        state=state(),
        terminator=Terminator(termination_client("ec2"), termination_client("autoscaling")),
        salt=salt,
        clock=now,
    )


@cache
def on_demand() -> OnDemand:
    return OnDemand(
        settings=settings(),
        autoscaling=client("autoscaling"),
        cloudwatch=client("cloudwatch"),
        ec2=client("ec2"),
        claims=claims(),
        events=events(),
        policies=policies(),
        state=state(),
        starts=Starts(client("stepfunctions"), variable("TROOP_ON_DEMAND_MACHINE")),
        clock=now,
    )


@cache
def repeats() -> Repeats:
    return Repeats(client("dynamodb"), variable("TROOP_STATE_TABLE"), sleep)


@cache
def watcher() -> Watcher:
    return Watcher(
        autoscaling=client("autoscaling"),
        balancers=Balancers(client),
        events=events(),
        timeout=recovery_timeout(),
        clock=now,
        sleep=sleep,
    )


@cache
def sweeper() -> Sweeper:
    return Sweeper(client("ec2"), client("autoscaling"), events(), watcher(), now, sleep)


@cache
def notifier(of: Callable[[str], Any] = client) -> Notifier:
    """``of``: whose client of a service tells others."""
    return Notifier(
        deployment=settings().deployment,
        leashed=settings().leashed,
        events=variable("TROOP_EVENTS_TABLE"),
        changes=variable("TROOP_CHANGES_TABLE"),
        group_tags=variable("TROOP_GROUP_TAGS_TABLE"),
        state=variable("TROOP_STATE_TABLE"),
        queries=event_queries(),
        bus=Bus(of("events"), variable("TROOP_EVENT_BUS")),
        topic=Topic(of("sns"), variable("TROOP_NEWS_TOPIC")),
    )


@cache
def redrive() -> Redrive:
    queue = Queue(quick_client("sqs"), variable("TROOP_UNTOLD_QUEUE"))
    return Redrive(queue, Streams(quick_client("dynamodbstreams")), notifier(quick_client), now)


@cache
def dead_letters() -> DeadLetters:
    queue = Queue(quick_client("sqs"), variable("TROOP_UNDELIVERED_QUEUE"))
    return DeadLetters(queue, variable("TROOP_SCHEDULE_GROUP"), now)


@cache
def health() -> Health:
    kinds = ["GROUP_TAGS", "EVENTS", "STATE", "DECISIONS", "CHANGES", *(["RUNS"] if settings().benchmarks else [])]
    reads = HealthReads(
        scheduler=quick_client("scheduler"),
        states=quick_client("stepfunctions"),
        cloudwatch=quick_client("cloudwatch"),
        sqs=quick_client("sqs"),
        dynamodb=quick_client("dynamodb"),
        machine=variable("TROOP_CHAOS_MACHINE"),
        schedule_group=variable("TROOP_SCHEDULE_GROUP"),
        queue=variable("TROOP_UNDELIVERED_QUEUE"),
        tables=[variable(f"TROOP_{kind}_TABLE") for kind in kinds],
        state=variable("TROOP_STATE_TABLE"),
    )
    return Health(settings(), int(variable("TROOP_TICK_MINUTES")), reads, now)


@cache
def units() -> Units:
    return Units(
        settings=settings(),
        autoscaling=client("autoscaling"),
        policies=policies(),
        state=state(),
        decisions=decision_queries(),
        events=event_queries(),
        changes=changes(),
    )


@cache
def widgets() -> Widgets:
    """With clients that do not try for long: whoever looks at a dashboard rather hears that AWS does not answer."""
    dynamodb = quick_client("dynamodb")
    state = StateTable(dynamodb, variable("TROOP_STATE_TABLE"), settings().leashed)
    events = EventQueries(dynamodb, variable("TROOP_EVENTS_TABLE"))
    decisions = DecisionQueries(dynamodb, variable("TROOP_DECISIONS_TABLE"))
    return Widgets(
        settings=settings(),
        events=events,
        decisions=decisions,
        units=Units(
            settings=settings(),
            autoscaling=quick_client("autoscaling"),
            policies=PolicyTable(dynamodb, variable("TROOP_GROUP_TAGS_TABLE")),
            state=state,
            decisions=decisions,
            events=events,
            changes=ChangeTable(dynamodb, variable("TROOP_CHANGES_TABLE")),
        ),
        state=state,
        runs=RunTable(dynamodb, variable("TROOP_RUNS_TABLE"), sleep) if settings().benchmarks else None,
    )


@cache
def editor() -> Editor:
    edits = Edits(
        client("dynamodb"), variable("TROOP_GROUP_TAGS_TABLE"), variable("TROOP_STATE_TABLE"), changes(), sleep
    )
    return Editor(policies(), state(), edits, now)


def claims() -> Claims:
    return Claims(
        client=client("dynamodb"),
        events=variable("TROOP_EVENTS_TABLE"),
        state=variable("TROOP_STATE_TABLE"),
        group_tags=variable("TROOP_GROUP_TAGS_TABLE"),
        leashed=settings().leashed,
        sleep=sleep,
    )


def changes() -> ChangeTable:
    return ChangeTable(client("dynamodb"), variable("TROOP_CHANGES_TABLE"))


def events() -> EventTable:
    return EventTable(client("dynamodb"), variable("TROOP_EVENTS_TABLE"), variable("TROOP_STATE_TABLE"), sleep)


@cache
def event_queries() -> EventQueries:
    return EventQueries(client("dynamodb"), variable("TROOP_EVENTS_TABLE"))


@cache
def event_walk() -> EventWalk:
    return EventWalk(client("dynamodb"), variable("TROOP_EVENTS_TABLE"))


def seconds() -> float:
    """A clock that only grows, for what must end in time."""
    return monotonic()


def decisions() -> DecisionTable:
    kept = timedelta(days=settings().decision_retention_days)
    return DecisionTable(client("dynamodb"), variable("TROOP_DECISIONS_TABLE"), kept, sleep)


@cache
def decision_queries() -> DecisionQueries:
    return DecisionQueries(client("dynamodb"), variable("TROOP_DECISIONS_TABLE"))


def policies() -> PolicyTable:
    return PolicyTable(client("dynamodb"), variable("TROOP_GROUP_TAGS_TABLE"))


def state() -> StateTable:
    return StateTable(client("dynamodb"), variable("TROOP_STATE_TABLE"), settings().leashed)


def runs() -> RunTable:
    return RunTable(client("dynamodb"), variable("TROOP_RUNS_TABLE"), sleep)


def leftovers() -> Leftovers:
    return Leftovers(client("ec2"), client("autoscaling"), settings().deployment)


@cache
def teardown() -> Teardown:
    return Teardown(runs(), leftovers(), now)


@cache
def benchmarks() -> Benchmarks:
    return Benchmarks(
        settings=settings(),
        runs=runs(),
        keys=RunKeys(client("dynamodb"), variable("TROOP_STATE_TABLE"), sleep),
        files=RunFiles(presigning_client("s3"), variable("TROOP_RESULTS_BUCKET")),
        machines=RunMachines(
            client("stepfunctions"), variable("TROOP_BENCHMARK_MACHINE"), variable("TROOP_TEARDOWN_MACHINE")
        ),
        ec2=client("ec2"),
        subnets=tuple(variable("TROOP_NETWORK_SUBNETS").split(",")),
        clock=now,
        estimating=estimating(),
    )


def kept_runs() -> KeptRuns:
    return KeptRuns(client("s3"), variable("TROOP_RESULTS_BUCKET"))


@cache
def report_links() -> ReportLinks:
    return ReportLinks(
        benchmarks=benchmarks(),
        kept=KeptRuns(presigning_client("s3"), variable("TROOP_RESULTS_BUCKET")),
        calls=ReportCalls(client("lambda"), variable("TROOP_REPORT_FUNCTION")),
        claims=ReportClaims(client("dynamodb"), variable("TROOP_STATE_TABLE"), sleep),
        clock=now,
    )


def estimating() -> Estimating:
    ec2 = quick_client("ec2")
    region = ec2.meta.region_name
    served = region_of(region)
    price_list = PriceList(regional_client("pricing", served), region) if served else None
    cache = PriceCache(client("dynamodb"), variable("TROOP_STATE_TABLE"), sleep)
    return Estimating(PriceBook(region, price_list, ec2, cache, now), quick_client("service-quotas"))


def cell_store() -> CellStore:
    return CellStore(many_client("s3"), variable("TROOP_RESULTS_BUCKET"))


@cache
def launching() -> Launching:
    ec2 = client("ec2")
    return Launching(
        deployment=settings().deployment,
        network=Network(variable("TROOP_NETWORK_VPC"), tuple(variable("TROOP_NETWORK_SUBNETS").split(","))),
        profile=variable("TROOP_NODE_PROFILE"),
        region=ec2.meta.region_name,
        agent=Path(os.environ.get("TROOP_AGENT_FILE", Path(__file__).parents[1] / "agent.pyz")),
        runs=runs(),
        store=cell_store(),
        fleets=Fleets(ec2, client("autoscaling"), client("ssm"), sleep),
        clock=now,
    )


@cache
def backup() -> Backup:
    ec2, autoscaling = client("ec2"), client("autoscaling")
    return Backup(
        deployment=settings().deployment,
        runs=runs(),
        store=cell_store(),
        groups=BackupGroups(autoscaling),
        fleets=Fleets(ec2, autoscaling, client("ssm"), sleep),
        clock=now,
    )


@cache
def cell_steps() -> CellSteps:
    looks = FleetLooks(client("ec2"), client("autoscaling"))
    return CellSteps(runs=runs(), store=cell_store(), looks=looks, clock=now)


@cache
def attempts() -> Attempts:
    return Attempts(runs(), cell_store(), now)


@cache
def reaper() -> Reaper:
    machines = [variable(f"TROOP_{name}_MACHINE") for name in ("BENCHMARK", "TEARDOWN", "FLEET")]
    return Reaper(runs(), leftovers(), Executions(client("stepfunctions"), *machines), now)


def fleet_record() -> FleetRecord:
    return FleetRecord(client("dynamodb"), variable("TROOP_RUNS_TABLE"), sleep)


def fleet_view() -> FleetView:
    return FleetView(StandingGroups(client("autoscaling")), cell_store())


@cache
def fleet_steps() -> FleetSteps:
    return FleetSteps(runs(), fleet_record(), fleet_view(), leftovers(), now)


@cache
def fleets() -> StandingFleets:
    machines = RunMachines(client("stepfunctions"), variable("TROOP_FLEET_MACHINE"), variable("TROOP_TEARDOWN_MACHINE"))
    return StandingFleets(
        every=replace(benchmarks(), machines=machines, kind=FLEET),
        record=fleet_record(),
        view=fleet_view(),
        calls=FleetCalls(client("lambda"), variable("TROOP_FLEET_FUNCTION")),
        clock=now,
    )
