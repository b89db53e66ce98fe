"""Defines the chaos workflow: one state machine, run by every tick."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import permissions
from infra.chaos_functions import ChaosFunctions
from infra.data import Data
from infra.injections import STATES, Injections
from infra.machines import make_machine
from infra.settings import DeploymentSettings


class ChaosWorkflow(Construct):
    """The state machine, its role and its log.

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
        functions: ChaosFunctions,
        injections: Injections | None,
    ) -> None:
        super().__init__(scope, construct_id)
        tasks = {
            "DecideFunction": functions.decide,
            "TerminateFunction": functions.terminate,
            "CheckRecoveryFunction": functions.check_recovery,
            "SweepFunction": functions.sweep,
            **(injections.tasks() if injections else {}),
        }
        self.machine, self.role = make_machine(
            self,
            "chaos",
            description="Runs Troop's chaos workflow",
            statements=permissions.chaos_machine(data, list(tasks.values())),
            substitutions={
                **{name: function.function_arn for name, function in tasks.items()},
                "WorkBucket": data.work.bucket_name,
            },
            settings=settings,
            without=() if injections else STATES,
        )
        # The machine needs its role first, so permissions on the machine itself are attached afterwards.
        self.ready = iam.Policy(
            self,
            "MapChildren",
            roles=[self.role],
            statements=permissions.map_children(cdk.Stack.of(self), self.machine),
        )
