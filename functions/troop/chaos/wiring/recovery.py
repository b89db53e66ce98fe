"""Creates the steps that check recovery, hear of events, and sweep."""

from __future__ import annotations

from functools import cache

from troop.chaos.aws.alarm_history import AlarmHistory
from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.flows.alarm_stop import AlarmStop
from troop.chaos.flows.hearing import Hearing
from troop.chaos.flows.judgement import Judgement
from troop.chaos.flows.recovery_check import RecoveryCheck
from troop.chaos.flows.sweep import Sweep
from troop.chaos.wiring import tables
from troop.shared.aws.clients import client, quick_client
from troop.shared.wiring import environment


@cache
def recovery_check() -> RecoveryCheck:
    return RecoveryCheck(
        autoscaling=client("autoscaling"),
        ec2=client("ec2"),
        balancers=Balancers(client),
        events=tables.events(),
        tokens=TaskTokens(client("stepfunctions")),
        judgement=Judgement(AlarmHistory(client("cloudwatch"))),
        timeout=environment.recovery_timeout(),
        clock=environment.now,
        sleep=environment.sleep,
    )


@cache
def hearing() -> Hearing:
    return Hearing(quick_client("autoscaling"), tables.events(), recovery_check(), environment.now)


@cache
def alarm_stop() -> AlarmStop:
    return AlarmStop(tables.events(), recovery_check(), environment.now)


@cache
def sweep() -> Sweep:
    return Sweep(
        client("ec2"),
        client("autoscaling"),
        tables.events(),
        recovery_check(),
        environment.now,
        environment.sleep,
    )
