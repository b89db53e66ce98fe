"""Reads queues of dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from troop.chaos.dead_letters import Letter

_AT_A_TIME = 10
WAIT = 1
"""The wait of a call in seconds. A waiting call asks all of SQS's servers; another one can miss messages."""

HIDDEN = 240
"""Seconds for which a received message is hidden; a longer read detects repetitions itself. Less than the five minutes
of an alarm about a queue: otherwise every read would end that alarm and start it again.
"""


@dataclass(frozen=True)
class Queue:
    """A queue, by its URL."""

    client: Any
    url: str

    def letters(self, most: int) -> Iterator[Letter]:
        """Yields at most ``most`` messages, each once. They stay in the queue until they are removed.

        A call can return fewer messages than there are, so only a call without new messages shows the end.
        """
        seen: set[str] = set()
        while len(seen) < most:
            answer = self.client.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=min(_AT_A_TIME, most - len(seen)),
                WaitTimeSeconds=WAIT,
                VisibilityTimeout=HIDDEN,
                MessageSystemAttributeNames=["SentTimestamp"],
                MessageAttributeNames=["All"],
            )
            new = {one["MessageId"]: one for one in answer.get("Messages", []) if one["MessageId"] not in seen}
            if not new:
                return
            seen |= new.keys()
            yield from map(_letter, new.values())

    def remove(self, letter: Letter) -> None:
        self.client.delete_message(QueueUrl=self.url, ReceiptHandle=letter.receipt)


def _letter(message: dict[str, Any]) -> Letter:
    return Letter(
        receipt=message["ReceiptHandle"],
        body=message["Body"],
        sent=datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC),
        attributes={name: value.get("StringValue", "") for name, value in message.get("MessageAttributes", {}).items()},
    )
