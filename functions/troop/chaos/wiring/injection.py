"""Creates what injects lasting faults."""

from __future__ import annotations

from functools import cache

from troop.chaos.aws.backstops import Backstops
from troop.chaos.aws.injection_steps import InjectionSteps
from troop.chaos.aws.run_command import RunCommand
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.aws.terminator import Terminator
from troop.chaos.flows.injector import Injector
from troop.chaos.flows.objections import Objections
from troop.chaos.wiring import tables
from troop.chaos.wiring.account import account_reader
from troop.chaos.wiring.recovery import alarm_stop
from troop.faults import services
from troop.shared.aws.clients import client, quick_client, single_client, termination_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


@cache
def injector(function: str) -> Injector:
    """Creates the injector.

    Args:
        function: ARN of the function itself, which backstops call.
    """
    return Injector(
        steps=InjectionSteps(tables.events()),
        commands=RunCommand(sender=single_client("ssm"), reader=quick_client("ssm")),
        backstops=Backstops(
            client=quick_client("scheduler"),
            group=variable(Variable.BACKSTOP_GROUP),
            role=variable(Variable.BACKSTOP_ROLE),
            function=function,
        ),
        objections=Objections(account_reader()),
        terminator=Terminator({service: termination_client(service) for service in services()}),
        tokens=TaskTokens(client("stepfunctions")),
        alarm_stop=alarm_stop(),
        ec2=quick_client("ec2"),
        probe_document=variable(Variable.PROBE_DOCUMENT),
        clock=environment.now,
        sleep=environment.sleep,
    )
