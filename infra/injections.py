"""Defines what injects and ends faults inside instances: it exists only with the setting ``troop:inside_instances``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra import permissions
from infra.data import Data
from infra.functions import Functions
from infra.hearing import Hearing, target
from infra.notifications import criteria
from infra.permissions import allow
from infra.roles import make_role
from troop import faults
from troop.chaos.probe import BUDGET
from troop.faults.kill import PROCESS_NAME
from troop.shared.state_keys import SELF_HALT, SWITCH
from troop.shared.variables import Variable

STATES = ("Inject", "IsOver", "InjectFailed")
"""The states of the workflows that exist only with the setting."""

COMMANDS = "Commands"
"""The name of the rule about commands."""

UNFINISHED = ("Pending", "InProgress", "Delayed", "Cancelling")
"""Run Command's statuses of a command that may still run. Its other ones are final, those that are new to Troop too."""

_BATCH, _AT_ONCE = 100, 10
"""Records in a call, and calls for a part of a stream at the same time: as many as Lambda allows."""

_LATEST_MINUTES = 5
_ATTEMPTS = 2
_HOURS = 6


class Injections(Construct):
    """The function ``inject``, the document with which it reads on an instance, and the group of its backstops:
    schedules that call it again although a workflow has died.

    Attributes:
        probe: the document.
        backstops: the schedule group. Removing the stack removes it with its schedules.
        role: of the backstops.
        inject: the function.
    """

    def __init__(self, scope: Construct, construct_id: str, *, data: Data, functions: Functions) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.probe = ssm.CfnDocument(
            self,
            "Probe",
            content=probe_document(),
            document_type="Command",
            document_format="JSON",
            target_type="/AWS::EC2::Instance",
            # A new version of a document would not be the default one for certain, and a request names no version.
            update_method="Replace",
        )
        self.backstops = scheduler.CfnScheduleGroup(self, "Backstops")
        self.role = make_role(
            self,
            "Role",
            service="scheduler.amazonaws.com",
            description="Calls Troop's function inject from backstops",
            statements=[],
            conditions={
                "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID, "aws:SourceArn": self.backstops.attr_arn}
            },
        )
        self.inject = functions.make(
            "inject",
            [
                *permissions.inject(stack, data, self.probe.ref, self.backstops.ref, self.role),
                *functions.reads_change_calendars(),
                *functions.reads_registrations(),
            ],
            {
                **data.environment(),
                Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
                Variable.PROBE_DOCUMENT: self.probe.ref,
                Variable.BACKSTOP_GROUP: self.backstops.ref,
                Variable.BACKSTOP_ROLE: self.role.role_arn,
            },
            seconds=150,
            megabytes=256,
        )
        # The function needs the role's ARN first, so the permission to call the function is attached afterwards.
        iam.Policy(
            self,
            "Calls",
            roles=[self.role],
            statements=[allow(["lambda:InvokeFunction"], self.inject.function_arn)],
        )
        # A late step is still due: each call takes only those that are. So none is given up before Lambda has to.
        self.inject.configure_async_invoke(max_event_age=cdk.Duration.hours(_HOURS), retry_attempts=_ATTEMPTS)
        self._read("State", data.state, {"dynamodb": {"Keys": {"key": {"S": [SWITCH, SELF_HALT]}}}})
        self._read("GroupTags", data.group_tags)

    def tasks(self) -> dict[str, lambda_.Function]:
        """Returns the functions that the workflows call, by the name of their substitution."""
        return {"InjectFunction": self.inject}

    def hear(self, hearing: Hearing) -> None:
        """Has the function called by events of AWS: commands that are over, and alarms that go off."""
        hearing.rules["Alarms"].add_target(target(self.inject))
        documents = [*dict.fromkeys(fault.document for fault in faults.LASTING), self.probe.ref]
        hearing.add(
            COMMANDS,
            "Commands of Troop's documents that are over",
            events.EventPattern(
                source=["aws.ssm"],
                detail_type=["EC2 Command Invocation Status-change Notification"],
                detail={"document-name": documents, "status": [{"anything-but": list(UNFINISHED)}]},
            ),
            self.inject,
        )

    def _read(self, name: str, table: dynamodb.Table, *filters: Mapping[str, Any]) -> None:
        """Has the function called with changes of a table, of the kinds that can end a fault."""
        lambda_.CfnEventSourceMapping(
            self,
            name,
            function_name=self.inject.function_name,
            event_source_arn=table.table_stream_arn,
            # LATEST could miss writes during the creation of the mapping.
            starting_position="TRIM_HORIZON",
            batch_size=_BATCH,
            # Changes of different items need not wait for one another.
            parallelization_factor=_AT_ONCE,
            maximum_retry_attempts=_ATTEMPTS,
            maximum_record_age_in_seconds=_LATEST_MINUTES * 60,
            filter_criteria=criteria(filters),
        )


def probe_document() -> dict[str, Any]:
    """Returns the document that reads on an instance. Its steps change nothing.

    Systems Manager puts the parameters into the script's text. So their patterns admit nothing that a shell would
    interpret.
    """
    script = Path(__file__).with_name("probe.sh").read_text(encoding="utf-8")
    return {
        "schemaVersion": "2.2",
        "description": "Reads, for Troop, what faults inside an instance leave there. Changes nothing.",
        "parameters": {
            "Token": {
                "type": "String",
                "description": "Comes back in the answer, which so belongs to this request.",
                "allowedPattern": "^[0-9a-f]{32}$",
            },
            "Process": {
                "type": "String",
                "description": "The name of processes to count; empty for none.",
                "default": "",
                "allowedPattern": f"^({PROCESS_NAME})?$",
            },
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "Read",
                "precondition": {"StringEquals": ["platformType", "Linux"]},
                # The agent kills a script that takes longer: nobody waits for its answer any more.
                "inputs": {"timeoutSeconds": f"{BUDGET.total_seconds():.0f}", "runCommand": script.splitlines()},
            }
        ],
    }
