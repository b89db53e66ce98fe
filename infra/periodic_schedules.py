"""Schedules that call a function day and night, whatever the calendars say: most of them every quarter of an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra import permissions
from infra.schedules import ENABLED, Schedules

MINUTES = 15
WATCHDOG = f"rate({MINUTES} minutes)"
"""What a day leaves behind is noticed in the evening, too."""

SWEEP = f"cron(8/{MINUTES} * * * ? *)"
"""What is left behind at night does not wait for the next business day. Not on the quarters of an hour, which are the
ticks': two sweeps at a time do no harm, and no good either.
"""

REAPER = f"cron(4/{MINUTES} * * * ? *)"
"""What a benchmark may leave behind lives no longer than this beyond its time."""

REDRIVE = "cron(12 * * * ? *)"
"""What nobody could be told of, in all the hours that Lambda tries, may well wait for another one."""

SWEPT: Mapping[str, str] = {
    "execution": "<aws.scheduler.execution-id>",
    "started": "<aws.scheduler.scheduled-time>",
}
"""What a sweep by schedule is given, as a tick's is by its execution: a clock to hold the function's own against."""


@dataclass(frozen=True)
class Call:
    """A function that is called by the clock.

    Attributes:
        schedule: the construct's id, of which the schedule's name is made.
        what: the function does, for descriptions.
        expression: EventBridge Scheduler's.
        payload: what the function is called with.
        tries_again: how often Lambda calls the function again when it has failed, whoever has called it without
            waiting. None: the next round comes soon, and finds for itself what there is to do.
    """

    schedule: str
    what: str
    function: lambda_.IFunction
    expression: str
    payload: Mapping[str, str] = field(default_factory=dict)
    tries_again: int = 0


class Calls(Construct):
    """A schedule that calls a function, and its role."""

    def __init__(self, scope: Construct, call: Call, schedules: Schedules) -> None:
        super().__init__(scope, call.schedule)
        call.function.configure_async_invoke(
            max_event_age=cdk.Duration.minutes(MINUTES), retry_attempts=call.tries_again
        )
        statements = permissions.function_scheduler(call.function, schedules.undelivered)
        role = schedules.role(self, f"Calls Troop's {call.what}", statements)
        scheduler.CfnSchedule(
            self,
            "Resource",
            group_name=schedules.group.ref,
            description=f"Calls Troop's {call.what}",
            schedule_expression=call.expression,
            state=ENABLED,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=schedules.target(call.function.function_arn, role, call.payload),
        )
