"""Creates the steps of the chaos workflow: decide, terminate, check recovery, sweep."""

from __future__ import annotations

from functools import cache

from aws_lambda_powertools.utilities import parameters

from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.termination import Terminator
from troop.chaos.flows.check_recovery import RecoveryCheck
from troop.chaos.flows.sweep import Sweeper
from troop.chaos.flows.terminate import Termination
from troop.chaos.flows.tick import Tick
from troop.chaos.wiring import tables
from troop.chaos.wiring.account import account_reader
from troop.faults import services
from troop.shared.aws.clients import client, termination_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


def salt() -> bytes:
    """Returns the salt of the rolls; cached for five minutes, so that a rotation takes effect."""
    return str(parameters.get_secret(variable(Variable.SALT_SECRET), max_age=300)).encode()


@cache
def tick() -> Tick:
    return Tick(
        reader=account_reader(),
        decisions=tables.decisions(),
        events=tables.events(),
        strays=tables.strays(),
        settle=tables.initial_switch().settle,
        salt=salt,
        clock=environment.now,
    )


@cache
def termination() -> Termination:
    return Termination(
        reader=account_reader(),
        claims=tables.claims(),
        decisions=tables.decisions(),
        events=tables.events(),
        terminator=Terminator({service: termination_client(service) for service in services()}),
        salt=salt,
        clock=environment.now,
    )


@cache
def recovery_check() -> RecoveryCheck:
    return RecoveryCheck(
        autoscaling=client("autoscaling"),
        ec2=client("ec2"),
        balancers=Balancers(client),
        events=tables.events(),
        timeout=environment.recovery_timeout(),
        clock=environment.now,
        sleep=environment.sleep,
    )


@cache
def sweeper() -> Sweeper:
    return Sweeper(
        client("ec2"),
        client("autoscaling"),
        tables.events(),
        recovery_check(),
        environment.now,
        environment.sleep,
    )
