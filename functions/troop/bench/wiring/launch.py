"""Creates the steps that launch fleets."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from troop.bench.aws.backup_groups import BackupGroups
from troop.bench.aws.fleets import Fleets
from troop.bench.aws.service_roles import ServiceRoles
from troop.bench.aws.work_queues import WorkQueues
from troop.bench.flows.backup import Backup
from troop.bench.flows.launching import Launching, Network
from troop.bench.flows.queueing import Queueing
from troop.bench.wiring.store import cell_store, runs
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import settings, variable


@cache
def launching() -> Launching:
    ec2 = client("ec2")
    fleets = Fleets(ec2, client("autoscaling"), client("ssm"), environment.sleep)
    return Launching(
        deployment=settings().deployment,
        tags=settings().tags,
        network=Network(variable(Variable.NETWORK_VPC), tuple(variable(Variable.NETWORK_SUBNETS).split(","))),
        profile=variable(Variable.NODE_PROFILE),
        role_id=variable(Variable.NODE_ROLE_ID),
        region=ec2.meta.region_name,
        stage=environment.stage() or "",
        agent=Path(os.environ.get(Variable.AGENT_FILE, environment.CODE / "agent.pyz")),
        runs=runs(),
        store=cell_store(),
        fleets=fleets,
        roles=ServiceRoles(client("iam"), environment.sleep),
        queueing=_queueing(fleets) if settings().queues else None,
        clock=environment.now,
    )


def _queueing(fleets: Fleets) -> Queueing:
    return Queueing(
        fleets,
        WorkQueues(client("sqs"), environment.sleep),
        region=fleets.ec2.meta.region_name,
        account=variable(Variable.NODE_PROFILE),
        key=os.environ.get(Variable.DATA_KEY) or None,
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
