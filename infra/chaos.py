"""Defines the chaos workflow: one state machine, run by every tick."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import ROOT, permissions
from infra.data import Data
from infra.functions import Functions
from infra.machines import make_machine
from infra.roles import make_role
from infra.settings import DeploymentSettings

DEFINITION = ROOT / "statemachines" / "chaos.asl.json"


class ChaosWorkflow(Construct):
    """The state machine, its role and its log.

    It invokes functions by their plain ARN, without versions or aliases. The code deployed at its next step finishes a
    claim, so a corrected function also corrects waiting executions.

    Attributes:
        machine: the state machine, of type STANDARD: executions wait up to hours for recovery, each starts once, and
            their history stays readable for 90 days.
        role: the role of the machine.
        ready: depend on this to start executions: machine and role are complete.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: DeploymentSettings,
        data: Data,
        functions: Functions,
    ) -> None:
        super().__init__(scope, construct_id)
        definition = DEFINITION.read_text(encoding="utf-8")
        tasks = {
            "DecideFunction": functions.decide,
            "TerminateFunction": functions.terminate,
            "CheckRecoveryFunction": functions.check_recovery,
            "SweepFunction": functions.sweep,
        }
        substitutions = {
            **{name: function.function_arn for name, function in tasks.items()},
            "WorkBucket": data.work.bucket_name,
            # Service integrations of any partition. Whole ARNs, because cfn-lint accepts no substitution within one.
            "LambdaInvoke": f"arn:{cdk.Aws.PARTITION}:states:::lambda:invoke",
            "S3GetObject": f"arn:{cdk.Aws.PARTITION}:states:::s3:getObject",
        }
        self.role = make_role(
            self,
            "Role",
            service="states.amazonaws.com",
            description="Runs Troop's chaos workflow",
            statements=permissions.chaos_machine(data, list(tasks.values())),
        )
        self.machine = make_machine(self, definition, substitutions, self.role, settings)
        # The machine needs its role first, so permissions on the machine itself are attached afterwards.
        self.ready = iam.Policy(
            self,
            "MapChildren",
            roles=[self.role],
            statements=permissions.map_children(cdk.Stack.of(self), self.machine),
        )
