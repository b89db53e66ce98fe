"""Publishes messages for people on the topics of alarms, and forms subjects that SNS accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_LONGEST_SUBJECT = 99


@dataclass(frozen=True)
class AlarmTopics:
    """The topics of the two classes of alarms.

    Attributes:
        client: SNS's.
        act_now, warning: their ARNs.
    """

    client: Any
    act_now: str
    warning: str

    def send(self, subject: str, text: str, *, act_now: bool) -> None:
        """Publishes a message.

        Args:
            act_now: whether somebody must act now.

        Raises:
            ClientError, BotoCoreError: the topic refused it.
        """
        arn = self.act_now if act_now else self.warning
        self.client.publish(TopicArn=arn, Subject=plain_subject(subject), Message=text)


def plain_subject(words: str) -> str:
    """Returns a subject that SNS accepts: fewer than 100 characters of ASCII, without control characters."""
    plain = "".join(character if " " <= character <= "~" else "?" for character in words)
    return plain if len(plain) <= _LONGEST_SUBJECT else plain[: _LONGEST_SUBJECT - 3] + "..."
