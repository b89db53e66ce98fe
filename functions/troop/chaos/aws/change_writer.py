"""Writes the changes that people make through the API: the change and its record, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.chaos.aws.change_table import ChangeTable
from troop.chaos.changes import Author, Change, halt_of, request_of, version_of
from troop.chaos.events import SCHEMA
from troop.shared import moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.aws.throttling import Sleep, ThrottledError
from troop.shared.aws.transact import ConditionFailed, transact
from troop.shared.state_keys import BROKEN, HALT, ITSELF, SELF_HALT, SWITCH, UNIT, UNRECOVERED

Item = Mapping[str, Any]


class ChangedMeanwhile(Exception):
    """The stored item is no longer as it was read, so nothing was written."""


@dataclass(frozen=True)
class ChangeWriter:
    """Changes items of ``GroupTags`` and ``State``.

    Writes only the attributes of the change, and only if they are still as they were read. So concurrent changes by
    others, even by hand, are neither lost nor missing in the record.
    """

    client: Any
    group_tags: str
    state: str
    changes: ChangeTable
    sleep: Sleep = time.sleep

    def write_policy(
        self,
        unit: str,
        read: Item,
        changes: Mapping[str, Any],
        left_by: str | None,
        author: Author,
        now: datetime,
        owner: str = "",
    ) -> None:
        """Changes a unit's item, and returns the unit to chaos. Writes nothing if the values are already stored.

        Args:
            read: the unit's item in DynamoDB's types, as the caller has read it.
            changes: plain values by key; None removes.
            left_by: the event because of which the unit has left chaos, if it returns.
            owner: the unit's owner before the change, for the record.

        Raises:
            ChangedMeanwhile: the item, or the unit's ``unrecovered``, is no longer as it was read.
        """
        differing = _differing(read, changes)
        parts, record = [], _record(read, differing)
        if differing:
            bookkeeping = _signed(author, now) | {"version": version_of(plain(read)) + 1}
            unchanged = ("version", "changed_request")
            parts.append(_update(self.group_tags, {"unit": unit}, read, differing, bookkeeping, unchanged))
        if left_by is not None:
            parts += [self._unit_put_back(unit, left_by), self._unit_unlisted(unit)]
            record["unrecovered"] = (left_by, None)
        replaces = request_of(plain(read))
        self._write(parts, Change(UNIT + unit, now, author.caller, record, replaces, owner), author)

    def write_switch(
        self,
        read: Item,
        changes: Mapping[str, Any],
        self_halt: Item,
        author: Author,
        now: datetime,
        *,
        unless_itself: bool = False,
    ) -> None:
        """Changes the switch in the same way, and ends the halt that the deployment has given itself.

        Args:
            self_halt: the item of that halt in DynamoDB's types, as it was read; empty to keep it, or without one. The
                units that were broken until now no longer count for the next one.
            unless_itself: change nothing if the deployment has halted itself.

        Raises:
            ChangedMeanwhile: the switch, or the halt, is no longer as it was read.
        """
        differing = _differing(read, changes)
        parts, record = [], _record(read, differing)
        if differing or self_halt:
            bookkeeping = _signed(author, now) | {HALT: _halt(plain(read), changes, author, now)}
            parts.append(_update(self.state, {"key": SWITCH}, read, differing, bookkeeping, ("changed_request",)))
        if unless_itself:
            parts.append(_absent(self.state, SELF_HALT))
        if self_halt:
            parts += [_delete(self.state, SELF_HALT, self_halt), _delete(self.state, BROKEN)]
            record[ITSELF] = (
                {key: value for key, value in plain(self_halt).items() if key not in ("key", "schema")},
                None,
            )
        self._write(parts, Change(SWITCH, now, author.caller, record, request_of(plain(read))), author)

    def _write(self, parts: list[dict[str, Any]], change: Change, author: Author) -> None:
        if not parts:
            return
        try:
            transact(self.client, [*parts, self.changes.part(change, author)], self.sleep)
        except ConditionFailed:
            raise ChangedMeanwhile(change.subject) from None
        except ThrottledError as error:
            if error.conflicts:
                raise ChangedMeanwhile(change.subject) from None
            raise

    def _unit_put_back(self, unit: str, event_id: str) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": typed({"key": UNIT + unit}),
                "UpdateExpression": "REMOVE unrecovered, left_for",
                "ConditionExpression": "unrecovered = :event",
                "ExpressionAttributeValues": typed({":event": event_id}),
            }
        }

    def _unit_unlisted(self, unit: str) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": typed({"key": UNRECOVERED}),
                "UpdateExpression": "DELETE #units :unit",
                "ExpressionAttributeNames": {"#units": "units"},
                "ExpressionAttributeValues": {":unit": {"SS": [unit]}},
            }
        }


def _signed(author: Author, now: datetime) -> dict[str, Any]:
    return {
        "changed_at": moments.iso(now),
        "changed_by": author.caller,
        "changed_request": author.request_id,
        "schema": SCHEMA,
    }


def _halt(read: Item, changes: Mapping[str, Any], author: Author, now: datetime) -> dict[str, str] | None:
    """Returns the halt by people that holds after changes of the switch; None without one."""
    if "halted" not in changes:
        return halt_of(read)
    new = {"at": moments.iso(now), "by": author.caller, "reason": changes.get("reason") or ""}
    return new if changes["halted"] else None


def _differing(read: Item, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes whose stored value differs (also in type, as people write it by hand)."""
    new = typed(changes)
    return {key: value for key, value in changes.items() if read.get(key) != new.get(key)}


def _record(read: Item, differing: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    old = plain({key: read[key] for key in differing if key in read})
    return {key: (old.get(key), new) for key, new in differing.items()}


def _delete(table: str, key: str, read: Item | None = None) -> dict[str, Any]:
    """Deletes an item; if it is given as it was read, only if it is still the same."""
    part = {"TableName": table, "Key": typed({"key": key})}
    if read:
        names = {name: f"#a{index}" for index, name in enumerate(read)}
        part |= {
            "ConditionExpression": " AND ".join(f"{short} = :{short[1:]}" for short in names.values()),
            "ExpressionAttributeNames": {short: name for name, short in names.items()},
            "ExpressionAttributeValues": {f":{names[name][1:]}": value for name, value in read.items()},
        }
    return {"Delete": part}


def _absent(table: str, key: str) -> dict[str, Any]:
    part = {"TableName": table, "Key": typed({"key": key}), "ConditionExpression": "attribute_not_exists(#key)"}
    return {"ConditionCheck": part | {"ExpressionAttributeNames": {"#key": "key"}}}


def _update(
    table: str,
    key: Mapping[str, str],
    read: Item,
    changes: Mapping[str, Any],
    bookkeeping: Mapping[str, Any],
    unchanged: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Sets and removes attributes, if they and those in ``unchanged`` are as they were read."""
    new = typed({**changes, **bookkeeping})
    names = {name: f"#a{index}" for index, name in enumerate([*changes, *bookkeeping])}
    removed = [short for name, short in names.items() if name not in new]
    update = "SET " + ", ".join(f"{names[name]} = :n{names[name][1:]}" for name in new)
    values = {f":n{names[name][1:]}": value for name, value in new.items()}
    conditions = []
    for name in [*changes, *unchanged]:
        if name in read:
            conditions.append(f"{names[name]} = :o{names[name][1:]}")
            values[f":o{names[name][1:]}"] = read[name]
        else:
            conditions.append(f"attribute_not_exists({names[name]})")
    return {
        "Update": {
            "TableName": table,
            "Key": typed(key),
            "UpdateExpression": update + (" REMOVE " + ", ".join(removed) if removed else ""),
            "ConditionExpression": " AND ".join(conditions),
            "ExpressionAttributeNames": {short: name for name, short in names.items()},
            "ExpressionAttributeValues": values,
        }
    }
