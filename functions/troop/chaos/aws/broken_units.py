"""Writes which units were broken within the last hour, and the deployment's own halt when they are too many.

Both are parts of the transaction that records a verdict. Their item has a version, so that two verdicts at the same
time both count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from troop.chaos.events import SCHEMA, Event
from troop.chaos.self_halt import BrokenEvent, SelfHalt, recent, self_halt
from troop.chaos.verdict_rules import went_off
from troop.shared import codec
from troop.shared.aws.dynamo import plain, typed
from troop.shared.state_keys import BROKEN, SELF_HALT

Part = dict[str, Any]


@dataclass(frozen=True)
class BrokenUnits:
    """The items of the table ``State`` about broken units.

    Attributes:
        halt_after: the number of causes within an hour with which the deployment halts itself; 0 for never.
    """

    client: Any
    state: str
    halt_after: int

    def parts(self, event: Event) -> list[Part]:
        """Reads the items, and returns the writes that count an event whose verdict is BROKEN. A condition of theirs
        fails if another verdict or the API was faster: then read and write again.
        """
        assert event.verdict
        read = self._read(BROKEN)
        broken = BrokenEvent(event.event_id, event.unit, event.verdict.at, went_off(event.verdict))
        events = recent(_events(read), broken)
        parts = [self._broken(read.get("version"), events)]
        halt = self_halt(events, self.halt_after, event.verdict.at)
        if halt and not self._read(SELF_HALT):
            parts.append(self._halt(halt))
        return parts

    def _read(self, key: str) -> dict[str, Any]:
        answer = self.client.get_item(TableName=self.state, Key={"key": {"S": key}}, ConsistentRead=True)
        return plain(answer.get("Item", {}))

    def _broken(self, version: Any, events: Iterable[BrokenEvent]) -> Part:
        listed = list(events)
        # The version is the last event: each is counted once, so that an item that the API removed in between, and
        # that another verdict has written anew, differs.
        values = {"events": [codec.to_document(one) for one in listed], "version": listed[-1].event_id}
        part = self._setting(BROKEN, values)
        if version is None:
            part["Update"]["ConditionExpression"] = "attribute_not_exists(#version)"
        else:
            part["Update"]["ConditionExpression"] = "#version = :read"
            part["Update"]["ExpressionAttributeValues"] |= typed({":read": version})
        return part

    def _halt(self, halt: SelfHalt) -> Part:
        part = self._setting(SELF_HALT, codec.to_document(halt))
        part["Update"]["ConditionExpression"] = "attribute_not_exists(#at)"
        return part

    def _setting(self, key: str, values: Mapping[str, Any]) -> Part:
        values = {**values, "schema": SCHEMA}
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": key}},
                "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in values),
                "ExpressionAttributeNames": {f"#{name}": name for name in values},
                "ExpressionAttributeValues": typed({f":{name}": value for name, value in values.items()}),
            }
        }


def _events(item: Mapping[str, Any]) -> list[BrokenEvent]:
    return list(_readable(item.get("events", ())))


def _readable(documents: Iterable[Any]) -> Iterator[BrokenEvent]:
    """Yields the events that can be read. A verdict must not fail because somebody edited the others."""
    for document in documents:
        try:
            yield codec.from_document(BrokenEvent, document)
        except codec.DocumentError:
            continue
