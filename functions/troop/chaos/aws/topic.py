"""Publishes notifications for people, and for programs outside AWS."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from troop.chaos.notifications import Notification
from troop.shared.aws.alarm_topics import plain_subject

_LONGEST_ATTRIBUTE = 256
"""The most characters of an attribute for subscription filters. SNS accepts more, but names of units do not need it."""


@dataclass(frozen=True)
class Topic:
    """The deployment's topic of notifications."""

    client: Any
    arn: str

    def send(self, notifications: Sequence[Notification]) -> None:
        """Publishes each notification: a subject for mail, the document as the message, and attributes for filters.

        Raises:
            ClientError, BotoCoreError: the topic refused one; it may have accepted others.
        """
        for notification in notifications:
            self.client.publish(
                TopicArn=self.arn,
                Subject=_subject(notification),
                Message=json.dumps(notification.detail, ensure_ascii=False, indent=2),
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": _attribute(value)}
                    for name in ("kind", "deployment", "unit", "owner")
                    if (value := notification.detail.get(name))  # SNS refuses empty ones
                },
            )


def _attribute(value: Any) -> str:
    """Returns the value of an attribute that a filter can match: it must be valid as a string of JSON."""
    text = "".join(character if character.isprintable() else " " for character in str(value))
    return text[:_LONGEST_ATTRIBUTE]


def _subject(notification: Notification) -> str:
    unit = notification.detail.get("unit")
    words = f"{notification.detail['deployment']}: {notification.detail_type}" + (f": {unit}" if unit else "")
    return plain_subject(words)
