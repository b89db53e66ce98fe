"""Defines scheduled runs of benchmarks: the group of their schedules, the function that starts them, and its caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra import permissions
from infra.bench_data import BenchData
from infra.functions import Functions
from infra.permissions import allow
from infra.roles import make_role
from infra.schedules import Schedules
from troop.bench.definition.names import SCHEDULES_PREFIX
from troop.shared.variables import Variable

SCHEDULE_OBJECTS = f"{SCHEDULES_PREFIX}*"
_MINUTES = 15


class ScheduledRuns(Construct):
    """A group of schedules that callers of the API create; removing the stack removes the group with its schedules.

    Attributes:
        group: apart from the group of ticks, in which the watchdog knows each schedule.
        start: the function that all schedules call.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        data: BenchData,
        functions: Functions,
        schedules: Schedules,
        statements: Sequence[iam.PolicyStatement],
        environment: Mapping[Variable, str],
    ) -> None:
        super().__init__(scope, construct_id)
        self._results, self._undelivered = data.results, schedules.undelivered
        self.group = scheduler.CfnScheduleGroup(self, "Group")
        reads = allow(["s3:GetObject"], data.results.arn_for_objects(SCHEDULE_OBJECTS))
        self.start = functions.make(
            "start",
            [*statements, reads, allow(["sqs:SendMessage"], schedules.undelivered.queue_arn)],
            {**environment, Variable.RUN_SCHEDULE_GROUP: self.group.ref},
            layers=[functions.api_layer],
            seconds=60,
            megabytes=512,
        )
        # Scheduler's call only puts a start into Lambda's own queue, so Scheduler does not see that Lambda gives it up.
        self.start.configure_async_invoke(
            max_event_age=cdk.Duration.minutes(_MINUTES),
            retry_attempts=2,
            on_failure=destinations.SqsDestination(schedules.undelivered),
        )
        self.role = make_role(
            self,
            "Role",
            service="scheduler.amazonaws.com",
            description="Starts Troop's scheduled runs",
            statements=permissions.function_scheduler(self.start, schedules.undelivered),
            conditions={
                "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID, "aws:SourceArn": self.group.attr_arn}
            },
        )

    def environment_of_api(self) -> dict[Variable, str]:
        """Returns the variables with which the API's function creates schedules."""
        return {
            Variable.RUN_SCHEDULE_GROUP: self.group.ref,
            Variable.RUN_SCHEDULE_ROLE: self.role.role_arn,
            Variable.RUN_SCHEDULE_UNDELIVERED: self._undelivered.queue_arn,
            Variable.START_FUNCTION: self.start.function_arn,
        }

    def permissions_of_api(self) -> list[iam.PolicyStatement]:
        """Allows creating and deleting schedules of the group, with this role only, and storing their requests."""
        return [
            allow(["scheduler:CreateSchedule", "scheduler:DeleteSchedule"], self.schedule_arns()),
            permissions.passes_to_scheduler(self.role),
            allow(["s3:DeleteObject", "s3:PutObject"], self._results.arn_for_objects(SCHEDULE_OBJECTS)),
        ]

    def schedule_arns(self) -> str:
        """Returns the ARN of all schedules of the group."""
        return cdk.Stack.of(self).format_arn(
            service="scheduler", resource="schedule", resource_name=f"{self.group.ref}/*"
        )
