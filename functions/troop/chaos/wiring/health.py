"""Creates what checks the deployment's health."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import cache, partial

from troop.chaos.aws.account_reads import AccountReads
from troop.chaos.aws.alarm_reads import AlarmReads
from troop.chaos.aws.change_calendars import read_period
from troop.chaos.aws.health_reads import CALENDARS_READ, HealthReads
from troop.chaos.aws.queue import Queue
from troop.chaos.aws.release_table import ReleaseTable
from troop.chaos.change_calendars import ChangePeriod, documents
from troop.chaos.cures import Cures
from troop.chaos.flows.health import Health, RememberedHealth
from troop.chaos.flows.repairs import DeadLetters
from troop.chaos.tick_times import last_spans
from troop.chaos.wiring import tables
from troop.shared.aws.clients import quick_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


@cache
def health() -> Health:
    """Creates the checks that the watchdog writes as metrics, without those of alarms, which depend on
    these metrics.
    """
    reads = HealthReads(
        scheduler=quick_client("scheduler"),
        states=quick_client("stepfunctions"),
        cloudwatch=quick_client("cloudwatch"),
        sqs=quick_client("sqs"),
        dynamodb=quick_client("dynamodb"),
        machine=variable(Variable.CHAOS_MACHINE),
        schedule_group=variable(Variable.SCHEDULE_GROUP),
        queue=variable(Variable.UNDELIVERED_QUEUE),
        tables=list(tables.names().values()),
        state=variable(Variable.STATE_TABLE),
    )
    tick_minutes, others = int(variable(Variable.TICK_MINUTES)), int(variable(Variable.OTHER_SCHEDULES))
    cures = Cures(
        deployment=settings().deployment,
        region=quick_client("sqs").meta.region_name,
        machine=reads.machine,
        schedule_group=reads.schedule_group,
        queue=reads.queue,
        group_tags=variable(Variable.GROUP_TAGS_TABLE),
    )
    return Health(settings(), tick_minutes, others, reads, environment.now, cures)


@cache
def health_and_alarms() -> RememberedHealth:
    """Creates the checks for people: also those of alarms, their subscribers, the account, and the ticks' hours."""
    seen = health()
    alarms = AlarmReads(
        quick_client("cloudwatch"),
        quick_client("sns"),
        settings().deployment,
        variable(Variable.ACT_NOW_TOPIC),
    )
    account = AccountReads(quick_client("lambda"), tables.earlier_tables())
    spans = partial(last_spans, settings().calendars, seen.tick_minutes)
    reads = replace(
        seen.reads,
        alarms=alarms,
        account=account,
        spans=spans,
        changes=_change_periods,
        deployment=settings().deployment,
        releases=releases(),
    )
    cures = replace(seen.cures, act_now=alarms.act_now, runbook=variable(Variable.RUNBOOK))
    return RememberedHealth(replace(seen, reads=reads, cures=cures))


def _change_periods(now: datetime) -> tuple[ChangePeriod, ...]:
    named = documents(settings().calendars.values())[:CALENDARS_READ]
    return tuple(read_period(quick_client("ssm"), one, now) for one in named)


@cache
def releases() -> ReleaseTable:
    return ReleaseTable(quick_client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep)


@cache
def dead_letters() -> DeadLetters:
    queue = Queue(quick_client("sqs"), variable(Variable.UNDELIVERED_QUEUE))
    groups, functions = [variable(Variable.SCHEDULE_GROUP)], [variable(Variable.RISKS_FUNCTION)]
    if settings().benchmarks:
        groups.append(variable(Variable.RUN_SCHEDULE_GROUP))
        functions.append(variable(Variable.START_FUNCTION))
    return DeadLetters(queue, groups, functions, environment.now)
