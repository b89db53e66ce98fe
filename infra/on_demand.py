"""Defines the workflow of terminations on demand: the API starts one execution for each, as does the function that
benchmarks call.
"""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import permissions
from infra.chaos_functions import ChaosFunctions
from infra.data import Data
from infra.functions import Functions
from infra.injections import STATES, Injections
from infra.machines import make_machine
from infra.settings import DeploymentSettings
from troop.shared.variables import Variable


class OnDemandWorkflow(Construct):
    """The state machine, its role and its log; as the workflow of ticks, without a Distributed Map.

    Attributes:
        machine: the state machine, of type STANDARD. An execution's name is made of the event's id, so it starts only
            once.
        role: the role of the machine.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: DeploymentSettings,
        functions: ChaosFunctions,
        injections: Injections | None,
    ) -> None:
        super().__init__(scope, construct_id)
        tasks = {
            "TerminateFunction": functions.terminate,
            "CheckRecoveryFunction": functions.check_recovery,
            **(injections.tasks() if injections else {}),
        }
        self.machine, self.role = make_machine(
            self,
            "on_demand",
            description="Runs Troop's terminations on demand",
            statements=permissions.machine(list(tasks.values())),
            substitutions={name: function.function_arn for name, function in tasks.items()},
            settings=settings,
            without=() if injections else STATES,
        )


def make_request(functions: Functions, data: Data, on_demand: sfn.IStateMachine) -> lambda_.Function:
    """Creates the function, in ``functions``, that requests hits on units for benchmarks. It exists only with the
    setting ``troop:under_load``.
    """
    return functions.make(
        "request",
        [
            *permissions.request(data, on_demand),
            *functions.reads_change_calendars(),
            *functions.reads_registrations(),
        ],
        {
            **data.environment(),
            Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
            Variable.ON_DEMAND_MACHINE: on_demand.state_machine_arn,
        },
        seconds=60,
        megabytes=512,
    )
