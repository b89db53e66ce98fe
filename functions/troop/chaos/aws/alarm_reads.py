"""Reads which of the deployment's alarms are on, and whether alarms of the class "act now" have subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from troop.chaos.health_facts import Alarm

ALARMS_READ = 500
"""The most alarms in alarm that are examined, of those whose names begin like this deployment's."""


@dataclass(frozen=True)
class AlarmReads:
    """Reads the alarms of one deployment.

    Attributes:
        deployment: the stack's name; its alarms are called ``DEPLOYMENT-NAME``, and no NAME has a hyphen.
        act_now: ARN of the topic for alarms of the class "act now".
    """

    cloudwatch: Any
    sns: Any
    deployment: str
    act_now: str

    def on(self) -> tuple[Alarm, ...]:
        """Returns the alarms that are on, by name; at most 5 calls."""
        return tuple(sorted(self._on(), key=lambda alarm: alarm.name))

    def _on(self) -> Iterator[Alarm]:
        prefix = f"{self.deployment}-"
        pages = self.cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNamePrefix=prefix,
            AlarmTypes=["MetricAlarm"],
            StateValue="ALARM",
            PaginationConfig={"PageSize": 100, "MaxItems": ALARMS_READ},
        )
        for page in pages:
            for alarm in page["MetricAlarms"]:
                name = alarm["AlarmName"].removeprefix(prefix)
                # A name with a hyphen belongs to another deployment whose name begins the same way. Some emulations of
                # AWS ignore the state if a prefix is given.
                if "-" not in name and alarm["StateValue"] == "ALARM":
                    todo = alarm.get("AlarmDescription", "").rpartition("What to do: ")[2]
                    yield Alarm(name, self.act_now in alarm.get("AlarmActions", ()), todo)

    def subscribers(self) -> int:
        """Returns the number of confirmed subscriptions; an unanswered confirmation mail does not count."""
        answer = self.sns.get_topic_attributes(TopicArn=self.act_now)
        return int(answer["Attributes"]["SubscriptionsConfirmed"])
