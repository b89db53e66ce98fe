"""Defines the workflow of terminations on demand: the API starts one execution for each."""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct

from infra import ROOT, permissions
from infra.functions import Functions
from infra.machines import make_machine
from infra.roles import make_role
from infra.settings import DeploymentSettings

DEFINITION = ROOT / "statemachines" / "on_demand.asl.json"


class OnDemandWorkflow(Construct):
    """The state machine, its role and its log; as the workflow of ticks, without a Distributed Map.

    Attributes:
        machine: the state machine, of type STANDARD. An execution's name is made of the event's id, so it starts only
            once.
        role: the role of the machine.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: DeploymentSettings, functions: Functions
    ) -> None:
        super().__init__(scope, construct_id)
        definition = DEFINITION.read_text(encoding="utf-8")
        tasks = {"TerminateFunction": functions.terminate, "CheckRecoveryFunction": functions.check_recovery}
        substitutions = {
            **{name: function.function_arn for name, function in tasks.items()},
            "LambdaInvoke": f"arn:{cdk.Aws.PARTITION}:states:::lambda:invoke",
        }
        self.role = make_role(
            self,
            "Role",
            service="states.amazonaws.com",
            description="Runs Troop's terminations on demand",
            statements=permissions.machine(list(tasks.values())),
        )
        self.machine = make_machine(self, definition, substitutions, self.role, settings)
