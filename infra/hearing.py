"""Defines the events of AWS that a deployment hears, on the default bus of its account and region."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

_LATEST_MINUTES = 5
"""Later, checks of the workflow have long found what an event could say."""

_ATTEMPTS = 2

HEARD: Mapping[str, tuple[str, events.EventPattern]] = {
    "Groups": (
        "Instances that groups have launched or terminated",
        events.EventPattern(
            source=["aws.autoscaling"],
            detail_type=[
                "EC2 Instance Launch Successful",
                "EC2 Instance Launch Unsuccessful",
                "EC2 Instance Terminate Successful",
            ],
        ),
    ),
    "Instances": (
        "Instances that run",
        events.EventPattern(
            source=["aws.ec2"],
            detail_type=["EC2 Instance State-change Notification"],
            detail={"state": ["running"]},
        ),
    ),
    "Alarms": (
        "Alarms that go off",
        events.EventPattern(
            source=["aws.cloudwatch"],
            detail_type=["CloudWatch Alarm State Change"],
            detail={"state": {"value": ["ALARM"]}},
        ),
    ),
}
"""Rule -> what it matches. A rule cannot know which groups and alarms have a termination in flight: the function finds
out.
"""


class Hearing(Construct):
    """The rules that call the function ``hear``. AWS charges nothing for these events. CloudWatch delivers its own
    for certain, Auto Scaling, EC2 and Systems Manager theirs at best effort.

    Attributes:
        rules: by name.
    """

    def __init__(self, scope: Construct, construct_id: str, *, function: lambda_.Function) -> None:
        super().__init__(scope, construct_id)
        function.configure_async_invoke(max_event_age=cdk.Duration.minutes(_LATEST_MINUTES), retry_attempts=_ATTEMPTS)
        self.rules = {
            name: self.add(name, f"{description}, for terminations in flight", pattern, function)
            for name, (description, pattern) in HEARD.items()
        }

    def add(self, name: str, description: str, pattern: events.EventPattern, function: lambda_.Function) -> events.Rule:
        """Adds a rule that calls a function."""
        return events.Rule(
            self,
            name,
            description=description,
            event_pattern=_from_here(pattern),
            targets=[target(function)],
        )


def target(function: lambda_.Function) -> targets.LambdaFunction:
    """Returns the target of a rule that calls a function."""
    return targets.LambdaFunction(
        function, max_event_age=cdk.Duration.minutes(_LATEST_MINUTES), retry_attempts=_ATTEMPTS
    )


def _from_here(pattern: events.EventPattern) -> events.EventPattern:
    """Narrows a pattern to events of the deployment's own account and region. A default bus can also receive those of
    others, see "Sending and receiving events between AWS accounts": theirs have groups and alarms of the same names.
    """
    return events.EventPattern(
        account=[cdk.Aws.ACCOUNT_ID],
        region=[cdk.Aws.REGION],
        source=pattern.source,
        detail_type=pattern.detail_type,
        detail=pattern.detail,
    )
