"""Records of DynamoDB streams, as Lambda hands them to a function, and as the stream itself has them for a day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from troop.chaos.dead_letters import Batch

MOST_PAGES = 10
"""Of a stream, read for one batch; a page has up to 1,000 records, a batch ten."""


class IncompleteBatch(RuntimeError):
    """The stream has not shown all records of a batch; what is missing may come with another look."""


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
    at = datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC)
    return _record(raw["eventSourceARN"], change, at)


@dataclass(frozen=True)
class Streams:
    """Reads streams again."""

    client: Any

    def records(self, batch: Batch) -> list[Record]:
        """The records of a batch, in order, up to its last.

        Raises:
            IncompleteBatch: its last was not among them.
            ClientError: the stream has them no more (TrimmedDataAccessException, ResourceNotFoundException), or does
                not answer.
        """
        iterator = self.client.get_shard_iterator(
            StreamArn=batch.stream,
            ShardId=batch.shard,
            ShardIteratorType="AT_SEQUENCE_NUMBER",
            SequenceNumber=batch.first,
        )["ShardIterator"]
        records: list[Record] = []
        for _ in range(MOST_PAGES):
            page = self.client.get_records(ShardIterator=iterator)
            for raw in page["Records"]:
                change = raw["dynamodb"]
                if not batch.has(change["SequenceNumber"]):
                    raise IncompleteBatch(f"after {len(records)} records came one that is not of the batch")
                records.append(_record(batch.stream, change, change["ApproximateCreationDateTime"].astimezone(UTC)))
                if int(change["SequenceNumber"]) == int(batch.last):
                    return records
            iterator = page.get("NextShardIterator")
            if not iterator:
                raise IncompleteBatch(f"the shard ended after {len(records)} records, before the last of the batch")
        raise IncompleteBatch(f"{MOST_PAGES} pages had {len(records)} records, and not the last of the batch")


def _record(stream: str, change: Mapping[str, Any], at: datetime) -> Record:
    _, _, rest = stream.partition(":table/")
    return Record(
        sequence=change["SequenceNumber"],
        table=rest.partition("/")[0],
        at=at,
        old=change.get("OldImage", {}),
        new=change.get("NewImage", {}),
    )
