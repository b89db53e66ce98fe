"""Queues that hear what a deployment tells others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from local.launcher import LocalAccount
from tests.e2e.conftest import Deployment, eventually


class Heard:
    """A queue, and all that has come into it so far."""

    def __init__(self, account: LocalAccount, name: str) -> None:
        self._sqs = account.client("sqs")
        self._url = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        self.arn = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        self.messages: list[dict[str, Any]] = []

    def let_in(self, topic: str) -> None:
        """The policy without which no topic can send to a queue."""
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": self.arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        self._sqs.set_queue_attributes(QueueUrl=self._url, Attributes={"Policy": policy})

    def first(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that matches, within a while."""

        def probe() -> dict[str, Any] | None:
            for message in self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages", []):
                self.messages.append(json.loads(message["Body"]))
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            return next((message for message in self.messages if matches(message)), None)

        match: dict[str, Any] = eventually(probe, 20)
        return match


def listen_to_the_bus(deployment: Deployment) -> Heard:
    events = deployment.account.client("events")
    queue, bus = Heard(deployment.account, "tick-heard"), deployment.outputs["EventBusName"]
    events.put_rule(Name="tick-all", EventBusName=bus, EventPattern=json.dumps({"source": ["troop"]}))
    events.put_targets(Rule="tick-all", EventBusName=bus, Targets=[{"Id": "queue", "Arn": queue.arn}])
    return queue


def listen_to_the_topic(deployment: Deployment) -> Heard:
    """Subscribes as docs/reference/notifications.md says, to some kinds only."""
    queue = Heard(deployment.account, "tick-news")
    queue.let_in(deployment.outputs["NewsTopicArn"])
    kinds = {"kind": ["terminated", "recovered", "halted", "policy-changed", "weekly-letter"]}
    deployment.account.client("sns").subscribe(
        TopicArn=deployment.outputs["NewsTopicArn"],
        Protocol="sqs",
        Endpoint=queue.arn,
        Attributes={"RawMessageDelivery": "true", "FilterPolicy": json.dumps(kinds)},
    )
    return queue
