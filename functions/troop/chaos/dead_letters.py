"""Decides what to do with dead letters: messages that could not be delivered. Pure.

There are two queues. One has what no schedule could deliver, what the rules about failed runs and for news to another
bus could not, and starts of benchmarks and readings of risks that Lambda gave up after delivery. Troop does not retry
these: an old tick does nothing, a benchmark runs again at its schedule's next time, risks are read again on the next
day, a report has the lines of a weekly letter, the topic has news, and everything else that a schedule calls is called
again within the hour. Such a letter only reports a fault, so it is dropped after the alarm. The other queue has
notifications that were not sent. They are sent again while the table's stream still has their records.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

WARNING_TIME = timedelta(minutes=30)
"""The time for which a letter stays in its queue, so that its alarm goes off. The alarm ends by itself if no others
follow.
"""

TRIED_FOR = timedelta(hours=24)
"""The time for which a notification is retried, about once an hour: a stream stores its records for a day, and they are
older than the letter. A message's receive count is useless here, because every reader of the queue increases it.
"""


class UnreadableLetter(ValueError):
    """The letter does not name its records."""


@dataclass(frozen=True)
class Letter:
    """A message in a queue of dead letters.

    Attributes:
        receipt: the handle to remove it.
        sent: when it arrived.
        attributes: the attributes sent with the body, such as ``TARGET_ARN`` and ``ERROR_CODE``.
    """

    receipt: str
    body: str
    sent: datetime
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Records of a stream without their notifications.

    Attributes:
        stream: the ARN of the stream.
        shard: id of its part.
        first, last: the records' numbers, both included.
    """

    stream: str
    shard: str
    first: str
    last: str

    def has(self, number: str) -> bool:
        """Checks whether the record of this number is one of them."""
        return int(self.first) <= int(number) <= int(self.last)


def is_obsolete(letter: Letter, schedule_groups: Iterable[str], functions: Collection[str], now: datetime) -> bool:
    """Checks whether a letter has caused its alarm, and can be dropped. Letters of an unknown sender never can.

    Args:
        schedule_groups: names of the groups of the deployment's schedules.
        functions: ARNs of the functions whose asynchronous calls Lambda puts into the queue when it gives them up.
    """
    ours = any(f":schedule/{group}/" in letter.attributes.get("SCHEDULE_ARN", "") for group in schedule_groups)
    known = ours or "RULE_ARN" in letter.attributes or _caller(letter) in functions
    return known and now - letter.sent >= WARNING_TIME


def _caller(letter: Letter) -> str:
    """Returns the ARN of the function whose call Lambda gave up, without its version; empty for another letter."""
    try:
        function = str(json.loads(letter.body)["requestContext"]["functionArn"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return ":".join(function.split(":")[:7])


def is_dropped(letter: Letter, now: datetime) -> bool:
    """Checks whether the stream no longer has the letter's records, so that only a person can help."""
    return now - letter.sent > TRIED_FOR


def batch_of(letter: Letter) -> Batch:
    """Returns the records that a letter of a stream's event source mapping is about.

    Raises:
        UnreadableLetter: the letter does not name them.
    """
    try:
        info: dict[str, Any] = json.loads(letter.body)["DDBStreamBatchInfo"]
        batch = Batch(
            info["streamArn"], info["shardId"], str(info["startSequenceNumber"]), str(info["endSequenceNumber"])
        )
        batch.has(batch.first)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UnreadableLetter(f"{type(error).__name__}: {error}") from error
    return batch
