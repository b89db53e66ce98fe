"""Creates the steps of the chaos workflow: decide, terminate, check recovery, sweep."""

from __future__ import annotations

from functools import cache

from aws_lambda_powertools.utilities import parameters

from troop.aws.chaos.balancers import Balancers
from troop.aws.chaos.termination import Terminator
from troop.aws.clients import client, termination_client
from troop.environment import Variable
from troop.faults import services
from troop.flows.chaos.check_recovery import RecoveryCheck
from troop.flows.chaos.sweep import Sweeper
from troop.flows.chaos.terminate import Termination
from troop.flows.chaos.tick import Tick
from troop.wiring import chaos_tables, environment
from troop.wiring.chaos_account import account_reader
from troop.wiring.environment import variable


def salt() -> bytes:
    """Returns the salt of the rolls; cached for five minutes, so that a rotation takes effect."""
    return str(parameters.get_secret(variable(Variable.SALT_SECRET), max_age=300)).encode()


@cache
def tick() -> Tick:
    return Tick(
        reader=account_reader(),
        decisions=chaos_tables.decisions(),
        events=chaos_tables.events(),
        strays=chaos_tables.strays(),
        settle=chaos_tables.initial_switch().settle,
        salt=salt,
        clock=environment.now,
    )


@cache
def termination() -> Termination:
    return Termination(
        reader=account_reader(),
        claims=chaos_tables.claims(),
        decisions=chaos_tables.decisions(),
        events=chaos_tables.events(),
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
        events=chaos_tables.events(),
        timeout=environment.recovery_timeout(),
        clock=environment.now,
        sleep=environment.sleep,
    )


@cache
def sweeper() -> Sweeper:
    return Sweeper(
        client("ec2"),
        client("autoscaling"),
        chaos_tables.events(),
        recovery_check(),
        environment.now,
        environment.sleep,
    )
