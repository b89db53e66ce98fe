"""Queues as SQS has them: a call brings some of the messages, and may bring one again."""

from __future__ import annotations

from typing import Any

import pytest

from infra.metric_helpers import SOON
from troop.chaos.aws.queue import HIDDEN, Queue

MOST_CALLS = 60


class Sqs:
    """A queue that answers with three messages at a time, however many are asked for."""

    def __init__(self, numbers: list[int]) -> None:
        self.left = numbers
        self.limits: list[int] = []

    def receive_message(self, **request: Any) -> dict[str, Any]:
        self.limits.append(request["MaxNumberOfMessages"])
        assert len(self.limits) < MOST_CALLS
        some = min(3, request["MaxNumberOfMessages"])
        now, self.left = self.left[:some], self.left[some:]
        attributes = {"SentTimestamp": "0"}
        messages = [
            {"MessageId": f"{one}", "ReceiptHandle": f"{one}", "Body": "", "Attributes": attributes} for one in now
        ]
        return {"Messages": messages} if messages else {}


@pytest.mark.parametrize(
    ("there", "most", "expected"),
    [
        ([], 100, 0),
        ([1, 2], 100, 2),
        (list(range(25)), 100, 25),
        (list(range(200)), 100, 100),
        (list(range(25)), 11, 11),
        ([1, 2, 3, 3, 4], 100, 4),
        ([1, 2, 3] * 1000, 100, 3),
    ],
    ids=["none", "few", "short answers", "more than asked for", "no more than asked for", "one twice", "for ever"],
)
def test_all_are_read_though_a_call_brings_only_some(there: list[int], most: int, expected: int) -> None:
    sqs = Sqs(there)
    letters = [letter.receipt for letter in Queue(sqs, "url").letters(most)]
    assert letters == [f"{number}" for number in dict.fromkeys(there)][:expected]
    assert all(1 <= limit <= 10 for limit in sqs.limits)


def test_read_of_a_queue_does_not_end_its_alarm() -> None:
    """It counts what can be received, once a minute, over five: one of those minutes must see what is there."""
    assert SOON.to_seconds() >= HIDDEN + 60
