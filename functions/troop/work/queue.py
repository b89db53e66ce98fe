"""Receives and removes messages of a queue of SQS, and changes how long they stay hidden."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.work.errors import WorkError
from troop.work.service import TRIES, Service, code_of

POLL_SECONDS = 20
"""How long SQS waits for a message; the most that it allows."""
GONE = frozenset({"MessageNotInflight", "ReceiptHandleIsInvalid"})
"""Codes for a receipt that is no longer valid: its lease has ended."""
_INVALID_RECEIPT = b"for parameter ReceiptHandle is invalid"
"""What SQS says about one whose message was deleted; its code is that of any invalid parameter."""
_COUNT = "ApproximateReceiveCount"


@dataclass(frozen=True)
class Message:
    """A message that was received.

    Attributes:
        receipt: proves to SQS who has it.
        tries: how often it was received, with this time.
    """

    body: str
    receipt: str
    tries: int


class Queue:
    """A queue, for any number of threads."""

    def __init__(self, url: str, service: Service) -> None:
        self._url, self._service = url, service

    def receive(self) -> Message | None:
        """Waits for a message; returns None if there is none for :data:`POLL_SECONDS`.

        Raises:
            WorkError: SQS refused, or did not answer.
        """
        answer = self._ask(
            "ReceiveMessage",
            {
                "MaxNumberOfMessages": 1,
                "WaitTimeSeconds": POLL_SECONDS,
                "MessageSystemAttributeNames": [_COUNT],
            },
            TRIES,
        )
        try:
            messages = answer.get("Messages") or ()
            return next((_message(one) for one in messages), None)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise WorkError(f"cannot read the answer of SQS: {error!r}") from None

    def delete(self, receipt: str) -> None:
        """Removes a message.

        Raises:
            WorkError: SQS refused, or did not answer.
        """
        self._ask("DeleteMessage", {"ReceiptHandle": receipt}, TRIES)

    def hide(self, receipt: str, seconds: int, tries: int = TRIES) -> None:
        """Hides a message for so many seconds from now; 0 hands it back.

        Raises:
            WorkError: SQS refused, or did not answer. Its code is one of :data:`GONE` if somebody else may have it.
        """
        self._ask("ChangeMessageVisibility", {"ReceiptHandle": receipt, "VisibilityTimeout": seconds}, tries)

    def _ask(self, operation: str, parameters: Mapping[str, Any], tries: int) -> dict[str, Any]:
        body = json.dumps({"QueueUrl": self._url, **parameters}).encode()
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"AmazonSQS.{operation}"}
        answer = self._service.ask("POST", "/", headers, body, tries).answer
        if answer.status != 200:
            code = "ReceiptHandleIsInvalid" if _INVALID_RECEIPT in answer.body else code_of(answer)
            text = answer.body[:300].decode(errors="replace")
            raise WorkError(f"SQS answered {answer.status} to {operation}: {text}", answer.status, code)
        try:
            document = json.loads(answer.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise WorkError(f"cannot read the answer of SQS: {error!r}") from None
        return document if isinstance(document, dict) else {}


def _message(document: Mapping[str, Any]) -> Message:
    tries = int((document.get("Attributes") or {}).get(_COUNT, 1))
    return Message(str(document["Body"]), str(document["ReceiptHandle"]), tries)
