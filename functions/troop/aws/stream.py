"""Records of DynamoDB streams, as Lambda hands them to a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class Record:
    """An item that was written.

    Attributes:
        sequence: the record's number in its shard; what a function names to get the record again.
        table: the table's name.
        at: about when it was written, to the second.
        old, new: the item before and after in DynamoDB's types; empty where there is none.
    """

    sequence: str
    table: str
    at: datetime
    old: Mapping[str, Any]
    new: Mapping[str, Any]


def parse(raw: Mapping[str, Any]) -> Record:
    """A record of a stream with both images.

    Raises:
        KeyError, ValueError: it is no such record.
    """
    change = raw["dynamodb"]
    _, _, rest = raw["eventSourceARN"].partition(":table/")
    return Record(
        sequence=change["SequenceNumber"],
        table=rest.partition("/")[0],
        at=datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC),
        old=change.get("OldImage", {}),
        new=change.get("NewImage", {}),
    )
