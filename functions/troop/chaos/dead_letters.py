"""Dead letters: what could not be delivered, and what is done about it without anybody's help. Pure.

Two queues have them. What no schedule could deliver, and what the rule about failed runs could not, is not tried again:
a tick that old does nothing, and whatever else is called by a schedule is called again within the hour and finds for
itself what there is to do. So such a letter says only that something is wrong, and is dropped after that was said. What
nobody could be told of is sent again, as long as the table's stream still has it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

WARNING_TIME = timedelta(minutes=30)
"""So long a letter is left in its queue, so that the alarm about it goes off. It ends by itself if no others follow."""

TRIED_FOR = timedelta(hours=24)
"""So long is one sent again, about once an hour: a stream keeps its records for a day, and they are older than the
letter. How often a message was received tells nothing: whoever reads a queue to see what is in it counts, too."""


class UnreadableLetter(ValueError):
    """It does not say which records it is about."""


@dataclass(frozen=True)
class Letter:
    """A message in a queue of dead letters.

    Attributes:
        receipt: by which it is removed.
        sent: when it came.
        attributes: what was sent beside the body, such as ``TARGET_ARN`` and ``ERROR_CODE``.
    """

    receipt: str
    body: str
    sent: datetime
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """Records of a stream that nobody was told of.

    Attributes:
        stream: its ARN.
        shard: id of its part.
        first, last: the records' numbers, both included.
    """

    stream: str
    shard: str
    first: str
    last: str

    def has(self, number: str) -> bool:
        """Whether the record of this number is one of them."""
        return int(self.first) <= int(number) <= int(self.last)


def is_obsolete(letter: Letter, schedule_group: str, now: datetime) -> bool:
    """Whether a letter has said what it had to say, and can be dropped. Those of an unknown sender never are.

    Args:
        schedule_group: name of the group of the deployment's schedules.
    """
    ours = f":schedule/{schedule_group}/" in letter.attributes.get("SCHEDULE_ARN", "")
    return (ours or "RULE_ARN" in letter.attributes) and now - letter.sent >= WARNING_TIME


def is_dropped(letter: Letter, now: datetime) -> bool:
    """Whether the stream has nothing any more of what a letter is about: only a person can help."""
    return now - letter.sent > TRIED_FOR


def batch_of(letter: Letter) -> Batch:
    """Which records a letter of a stream's event source mapping is about.

    Raises:
        UnreadableLetter: it does not say so.
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
