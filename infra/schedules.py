"""Defines the schedules of ticks: one for each calendar, in the calendar's own time zone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra import permissions
from infra.chaos import ChaosWorkflow
from infra.data import make_queue
from infra.roles import make_role
from infra.settings import DeploymentSettings
from troop.chaos.tick_times import schedule_hours
from troop.shared.calendars import Calendar
from troop.shared.day_rules import WEEKDAYS
from troop.shared.settings import OLDEST_TICK

_STALE_SECONDS = int(OLDEST_TICK.total_seconds())
_ATTEMPTS = 3

ENABLED = "ENABLED"
"""Explicit although it is the default: a property that a template omits is no drift, and is not restored after a
change.
"""


class Schedules(Construct):
    """A schedule group with a schedule for each calendar.

    Attributes:
        group: of all schedules of the deployment.
        undelivered: the queue for ticks that could not be delivered.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: DeploymentSettings, workflow: ChaosWorkflow
    ) -> None:
        super().__init__(scope, construct_id)
        self.group = scheduler.CfnScheduleGroup(self, "Group")
        self.undelivered = make_queue(self, "Undelivered", cdk.Duration.days(14))
        statements = permissions.scheduler(workflow.machine, self.undelivered)
        role = self.role(self, "Starts Troop's chaos workflow", statements)
        for name, calendar in settings.chaos.calendars.items():
            schedule = scheduler.CfnSchedule(
                self,
                f"Calendar-{name}",
                group_name=self.group.ref,
                description=f"Ticks of Troop's calendar {name}",
                schedule_expression=cron_expression(calendar, settings.tick_minutes),
                schedule_expression_timezone=calendar.time_zone,
                state=ENABLED,
                flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
                target=self.target(workflow.machine.state_machine_arn, role, {"calendar": name}),
            )
            schedule.node.add_dependency(workflow.ready)

    def role(self, scope: Construct, description: str, statements: Sequence[iam.PolicyStatement]) -> iam.Role:
        """Creates a role that only schedules of this deployment can use."""
        return make_role(
            scope,
            "Role",
            service="scheduler.amazonaws.com",
            description=f"{description} on schedule",
            statements=statements,
            # Others' schedules could name this role as well, but cannot use it.
            conditions={
                "StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID, "aws:SourceArn": self.group.attr_arn}
            },
        )

    def target(self, arn: str, role: iam.IRole, payload: Mapping[str, str]) -> scheduler.CfnSchedule.TargetProperty:
        """Returns the target of a schedule: what it calls, how often it retries, and where undeliverable calls go."""
        return scheduler.CfnSchedule.TargetProperty(
            arn=arn,
            role_arn=role.role_arn,
            input=json.dumps(dict(payload)),
            retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                maximum_event_age_in_seconds=_STALE_SECONDS, maximum_retry_attempts=_ATTEMPTS
            ),
            dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self.undelivered.queue_arn),
        )


def cron_expression(calendar: Calendar, tick_minutes: int) -> str:
    """Returns ``cron(...)`` for a tick every ``tick_minutes`` of each hour that the window touches, on the calendar's
    weekdays.

    The expression applies in the calendar's time zone. Its hours are whole: ticks before a window that opens at half
    past find the calendar closed.

    Args:
        calendar: its ``weekdays``, ``open_minute`` and ``close_minute`` (exclusive) are used.
        tick_minutes: divides 60.
    """
    minutes = "*" if tick_minutes == 1 else f"0/{tick_minutes}"
    first, last = schedule_hours(calendar)
    hours = str(first) if first == last else f"{first}-{last}"
    days = ",".join(WEEKDAYS[day] for day in sorted(calendar.weekdays))
    return f"cron({minutes} {hours} ? * {days} *)"
