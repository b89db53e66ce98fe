"""The watchdog: every quarter of an hour it says as metrics how the deployment does."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra import permissions
from infra.schedules import Schedules

MINUTES = 15


class Watchdog(Construct):
    """The schedule that calls the watchdog, day and night: what a day leaves behind is noticed in the evening, too."""

    def __init__(
        self, scope: Construct, construct_id: str, *, function: lambda_.IFunction, schedules: Schedules
    ) -> None:
        super().__init__(scope, construct_id)
        statements = permissions.watchdog_scheduler(function, schedules.undelivered)
        role = schedules.role(self, "Calls Troop's watchdog", statements)
        scheduler.CfnSchedule(
            self,
            "Resource",
            group_name=schedules.group.ref,
            description="Calls Troop's watchdog",
            schedule_expression=f"rate({MINUTES} minutes)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=schedules.target(function.function_arn, role, {}),
        )
