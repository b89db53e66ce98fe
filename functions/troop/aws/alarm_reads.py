"""Reads which of the deployment's alarms are on, and whether anybody is told when somebody has to act."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from troop.chaos.health_facts import Alarm

ALARMS_READ = 500
"""Most alarms in alarm, of those whose names begin as this deployment's do, that are looked at."""


@dataclass(frozen=True)
class AlarmReads:
    """Reads the alarms of one deployment.

    Attributes:
        deployment: whose; its alarms are called ``DEPLOYMENT-NAME``, and no NAME has a hyphen.
        act_now: ARN of the topic that alarms go to which somebody has to act on.
    """

    cloudwatch: Any
    sns: Any
    deployment: str
    act_now: str

    def on(self) -> tuple[Alarm, ...]:
        """Those that are on, by name; at most 5 calls."""
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
                # With a hyphen it is another deployment's, whose name begins as this one's does. Emulations of AWS, of
                # prefix and state, go by the prefix alone.
                if "-" not in name and alarm["StateValue"] == "ALARM":
                    todo = alarm.get("AlarmDescription", "").rpartition("What to do: ")[2]
                    yield Alarm(name, self.act_now in alarm.get("AlarmActions", ()), todo)

    def subscribers(self) -> int:
        """How many have said yes to being told; a mail that nobody has answered yet does not count."""
        answer = self.sns.get_topic_attributes(TopicArn=self.act_now)
        return int(answer["Attributes"]["SubscriptionsConfirmed"])
