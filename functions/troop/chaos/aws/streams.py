"""Reads records of DynamoDB streams, from Lambda's events and, for a day, from the stream itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from troop.chaos.dead_letters import Batch

MOST_PAGES = 10
"""The most pages of a stream that are read for one batch. A page has up to 1,000 records, a batch ten."""


class IncompleteBatch(RuntimeError):
    """The stream did not return all records of a batch; a retry may return the rest."""


@dataclass(frozen=True)
class Record:
    """A written item.

    Attributes:
        sequence: the record's number in its shard; a function names it to get the record again.
        table: the table's name.
        at: when it was written, to about a second.
        old, new: the item before and after, in DynamoDB's types; empty if there is none.
    """

    sequence: str
    table: str
    at: datetime
    old: Mapping[str, Any]
    new: Mapping[str, Any]


def parse(raw: Mapping[str, Any]) -> Record:
    """Parses a stream record with both images.

    Raises:
        KeyError, ValueError: it is not such a record.
    """
    change = raw["dynamodb"]
    at = datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC)
    return _record(raw["eventSourceARN"], change, at)


@dataclass(frozen=True)
class Streams:
    """Reads records of streams again."""

    client: Any

    def records(self, batch: Batch) -> list[Record]:
        """Returns the records of a batch, in order, up to its last.

        Raises:
            IncompleteBatch: the last record was not among them.
            ClientError: the stream no longer has them (TrimmedDataAccessException, ResourceNotFoundException), or does
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
                    raise IncompleteBatch(f"after {len(records)} records, the stream returned one of another batch")
                records.append(_record(batch.stream, change, change["ApproximateCreationDateTime"].astimezone(UTC)))
                if int(change["SequenceNumber"]) == int(batch.last):
                    return records
            iterator = page.get("NextShardIterator")
            if not iterator:
                raise IncompleteBatch(f"the shard ended after {len(records)} records, before the last of the batch")
        raise IncompleteBatch(f"{MOST_PAGES} pages contained {len(records)} records, but not the last of the batch")


def _record(stream: str, change: Mapping[str, Any], at: datetime) -> Record:
    _, _, rest = stream.partition(":table/")
    return Record(
        sequence=change["SequenceNumber"],
        table=rest.partition("/")[0],
        at=at,
        old=change.get("OldImage", {}),
        new=change.get("NewImage", {}),
    )
