"""Defines schedules that call a function at all hours, by no calendar: most of them every quarter of an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra import permissions
from infra.schedules import ENABLED, Schedules

MINUTES = 15
WATCHDOG = f"rate({MINUTES} minutes)"
"""Problems of the day are noticed in the evening, too."""

SWEEP = f"cron(8/{MINUTES} * * * ? *)"
"""Work left open at night does not wait for the next business day. Not on the quarters of an hour, when ticks run: two
concurrent sweeps are harmless, but useless.
"""

REAPER = f"cron(4/{MINUTES} * * * ? *)"
"""Leftovers of a benchmark exist at most this long beyond its time."""

FAULTS = f"cron(12/{MINUTES} * * * ? *)"
"""A fault whose workflow and backstop were both lost, such as while the deployment was changed, does not stay open."""

DUE: Mapping[str, str] = {"due": "<aws.scheduler.scheduled-time>"}
"""The payload of a round of open faults: a clock to compare the function's own with."""

REDRIVE = "cron(12 * * * ? *)"
"""A notification that failed for all hours in which Lambda retries can wait for another hour."""

RISKS = "cron(23 3 * * ? *)"
"""Once a day, apart from ticks of most calendars: a reading makes many calls of the account."""

LETTER = "cron(0 9 ? * MON *)"
"""In the time zone of the calendar ``default``."""

WRITTEN: Mapping[str, str] = {"letter": "<aws.scheduler.scheduled-time>"}
"""The payload of a scheduled letter: a repeated call writes about the same week."""

SWEPT: Mapping[str, str] = {
    "execution": "<aws.scheduler.execution-id>",
    "started": "<aws.scheduler.scheduled-time>",
}
"""The payload of a scheduled sweep, like that of a tick from its execution: a clock to compare the function's own
with.
"""


@dataclass(frozen=True)
class Call:
    """A function that is called on schedule.

    Attributes:
        schedule: the construct's id, part of the schedule's name.
        purpose: the function's purpose, for descriptions.
        expression: EventBridge Scheduler's.
        payload: the event of the call.
        tries_again: how often Lambda retries a failed asynchronous call, from any caller: of a function with several
            schedules, that of the first. Zero: the next round comes soon, and finds the open work by itself.
        time_zone: of the expression.
        reports: whether Lambda puts a call that it gives up into the queue of undelivered calls, which raises an alarm.
            The function's role needs the permission.
    """

    schedule: str
    purpose: str
    function: lambda_.IFunction
    expression: str
    payload: Mapping[str, str] = field(default_factory=dict)
    tries_again: int = 0
    time_zone: str = "UTC"
    reports: bool = False


class Calls(Construct):
    """A schedule that calls a function, and its role."""

    def __init__(self, scope: Construct, call: Call, schedules: Schedules) -> None:
        super().__init__(scope, call.schedule)
        if call.function.node.try_find_child("EventInvokeConfig") is None:
            call.function.configure_async_invoke(
                max_event_age=cdk.Duration.minutes(MINUTES),
                retry_attempts=call.tries_again,
                on_failure=destinations.SqsDestination(schedules.undelivered) if call.reports else None,
            )
        statements = permissions.function_scheduler(call.function, schedules.undelivered)
        role = schedules.role(self, f"Calls Troop's {call.purpose}", statements)
        scheduler.CfnSchedule(
            self,
            "Resource",
            group_name=schedules.group.ref,
            description=f"Calls Troop's {call.purpose}",
            schedule_expression=call.expression,
            schedule_expression_timezone=None if call.time_zone == "UTC" else call.time_zone,
            state=ENABLED,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=schedules.target(call.function.function_arn, role, call.payload),
        )
