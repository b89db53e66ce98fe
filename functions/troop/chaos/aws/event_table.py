"""Reads and writes the table ``Events``: the events, and their steps after the claim.

A step changes only its own attributes, and only if the event has the expected status.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from troop.chaos.aws.broken_units import BrokenUnits
from troop.chaos.aws.claim_rollback import rollback_writes
from troop.chaos.aws.event_items import from_item, name_of, to_item
from troop.chaos.events import (
    SCHEMA,
    USUAL_CAUSES,
    WITHOUT_TERMINATION,
    AbandonReason,
    Abort,
    Event,
    Status,
    fault_named,
    is_on_demand,
)
from troop.chaos.verdict import Verdict, VerdictValue
from troop.shared import codec, moments
from troop.shared.aws.dynamo import typed
from troop.shared.aws.throttling import WRITES, Sleep, ThrottledError, repeat
from troop.shared.aws.transact import ConditionFailed, transact, write
from troop.shared.errors import MissingEventError
from troop.shared.malformed import read_one
from troop.shared.state_keys import IN_FLIGHT, UNIT, UNRECOVERED
from troop.shared.tables import EVENT_OPEN, EVENT_SETTLES, EVENTS_BY_OPEN

LONGEST_NOTE = 500

_CONFLICT = {"Error": {"Code": "TransactionConflictException", "Message": "another verdict was faster"}}


class StepRefused(Exception):
    """The event does not have the status that the step expects: something else was faster."""


@dataclass(frozen=True)
class EventTable:
    """The events of a deployment.

    Attributes:
        state: the name of the table with the counters that a closed event restores.
        halt_after: see :class:`BrokenUnits`.
    """

    client: Any
    table: str
    state: str = ""
    sleep: Sleep = time.sleep
    halt_after: int = 0

    def get(self, event_id: str) -> Event | None:
        """Reads an event by its id, strongly consistent.

        Raises:
            MalformedItemError: it cannot be read.
        """
        answer = self.client.get_item(TableName=self.table, Key=_key(event_id), ConsistentRead=True)
        return read_one(answer["Item"], from_item, name_of) if "Item" in answer else None

    def open_ids(self, kind: str = EVENT_OPEN) -> list[str]:
        """Lists the ids of the events in flight, or with ``EVENT_SETTLES`` of those that await their verdict. The index
        lags slightly: read the event itself before acting on it.
        """
        return list(self.open_groups(kind))

    def open_groups(self, kind: str = EVENT_OPEN) -> dict[str, str]:
        """Returns the groups of the events of :meth:`open_ids`, by the events' ids; in one query. A malformed event,
        which has none, has the group "": it must not hide the others.
        """
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=EVENTS_BY_OPEN.name,
            KeyConditionExpression="#open = :open",
            ExpressionAttributeNames={"#open": EVENTS_BY_OPEN.partition, "#group": "group"},
            ExpressionAttributeValues={":open": {"S": kind}},
            ProjectionExpression="event_id, #group",
        )
        items = (item for page in pages for item in page["Items"])
        return {item["event_id"]["S"]: item.get("group", {}).get("S", "") for item in items}

    def record_leashed(self, event: Event) -> bool:
        """Records what would have been terminated, and marks the unit's day as recorded; False if the day already has
        its event.
        """
        put = {
            "TableName": self.table,
            "Item": to_item(event),
            "ConditionExpression": "attribute_not_exists(event_id)",
        }
        mark = {
            "TableName": self.state,
            "Key": {"key": {"S": UNIT + event.unit}},
            "UpdateExpression": "SET leashed_day = :day, #schema = :schema",
            "ExpressionAttributeNames": {"#schema": "schema"},
            "ExpressionAttributeValues": {":day": {"S": event.day.isoformat()}, ":schema": {"N": str(SCHEMA)}},
        }
        try:
            transact(self.client, [{"Put": put}, {"Update": mark}], self.sleep)
        except ConditionFailed:
            return False
        return True

    def attempt(self, event: Event, now: datetime) -> Event:
        """Counts an attempt just before its request to AWS. So an abandoned claim differs from an untouched one, and a
        first attempt from a repeated one. Returns the updated event.

        Raises:
            StepRefused: this execution may no longer carry out the claim.
            MissingFaultError: another version has claimed it, with a method that this one does not have.
        """
        answer = self.step(
            event,
            "SET attempted_at = if_not_exists(attempted_at, :now), os_shutdown = if_not_exists(os_shutdown, :shutdown)"
            " ADD attempts :one",
            "#status = :claimed AND execution = :execution AND attribute_not_exists(#abort)",
            {
                ":now": moments.iso(now),
                ":one": 1,
                ":shutdown": fault_named(event.method).os_shutdown,
                ":claimed": Status.CLAIMED.value,
                ":execution": event.execution,
            },
            ReturnValues="ALL_NEW",
        )
        return from_item(answer["Attributes"])

    def record_abort(self, event: Event, abort: Abort, detail: str) -> Event:
        """Records the first alarm that went off, in an event in flight or one that awaits its verdict. No attempt can
        follow. Returns the updated event.

        Raises:
            StepRefused: the event has another status than it was read with, or has an abort, or is over.
        """
        values = {":abort": codec.to_document(abort), ":detail": detail[:LONGEST_NOTE], ":status": event.status.value}
        self.step(
            event,
            "SET #abort = :abort, detail = :detail",
            "#status = :status AND attribute_exists(#open) AND attribute_not_exists(#abort)",
            values,
        )
        return replace(event, abort=abort, detail=detail[:LONGEST_NOTE])

    def record_os_shutdown(self, event: Event) -> Event:
        """Records that the operating system will be shut down although the fault has no shutdown. This precedes
        the request, because its response can be lost.

        Raises:
            StepRefused: the event is no longer CLAIMED.
        """
        values = {":shutdown": True, ":claimed": Status.CLAIMED.value}
        self.step(event, "SET os_shutdown = :shutdown", "#status = :claimed", values)
        return replace(event, os_shutdown=True)

    def note(self, event: Event, words: str) -> None:
        """Adds a note to a claim about what prevents the termination.

        Raises:
            StepRefused: the event is no longer CLAIMED.
        """
        values = {":detail": words[:LONGEST_NOTE], ":claimed": Status.CLAIMED.value}
        self.step(event, "SET detail = :detail", "#status = :claimed", values)

    def record_termination(self, event: Event, at: datetime, detail: str = "") -> Event:
        """Moves an event from CLAIMED to TERMINATED; it stays in flight until its recovery is known.

        Raises:
            StepRefused: the event is no longer CLAIMED.
        """
        self.step(
            event,
            "SET #status = :terminated, terminated_at = :at, detail = :detail",
            "#status = :claimed",
            {
                ":at": moments.iso(at),
                ":detail": detail,
                ":terminated": Status.TERMINATED.value,
                ":claimed": Status.CLAIMED.value,
            },
        )
        return replace(event, status=Status.TERMINATED, terminated_at=at, detail=detail)

    def record_check(self, event: Event) -> None:
        """Records the result of a check, so that any other watcher can continue.

        Raises:
            StepRefused: the event has another status, or another check has recorded its result since it was read.
        """
        values: dict[str, Any] = {
            ":watch": codec.to_document(event.watch),
            ":checks": event.watch.checks - 1,
            ":status": event.status.value,
        }
        update, condition = "SET watch = :watch", f"#status = :status AND ({_FIRST_SINCE_READ})"
        self.step(event, _with_remarks(update, values, event), condition, values)

    def store_token(self, event_id: str, token: str) -> None:
        """Stores the task token of the workflow that waits for an event, in place of an earlier one.

        Raises:
            MissingEventError: there is no such event.
        """
        try:
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=_key(event_id),
                UpdateExpression="SET #token = :token",
                ConditionExpression="attribute_exists(event_id)",
                ExpressionAttributeNames={"#token": "token"},
                ExpressionAttributeValues={":token": {"S": token}},
            )
        except ConditionFailed:
            raise MissingEventError(event_id) from None

    def record_running(self, event: Event, running: Mapping[str, datetime]) -> None:
        """Records when EC2 reported instances of the group as running, in place of what the event says.

        Raises:
            StepRefused: the event has another status, or is no longer as it was read.
        """
        values: dict[str, Any] = {":running": _moments(running), ":status": event.status.value}
        condition = "#status = :status AND attribute_not_exists(running)"
        if event.running:
            condition = "#status = :status AND running = :before"
            values[":before"] = _moments(event.running)
        self.step(event, "SET running = :running", condition, values)

    def close(
        self,
        event: Event,
        status: Status,
        detail: str,
        recovered_at: datetime | None = None,
        *,
        cause: AbandonReason | None = None,
        in_doubt: bool = False,
        verdict: Verdict | None = None,
        settles_at: datetime | None = None,
    ) -> Event:
        """Closes an event in flight in one transaction: writes its final status, and releases its place in flight. The
        unit of an UNRECOVERED or BROKEN one leaves chaos. A claim without a termination also restores the count of the
        day and the unit's last termination. A scheduled claim still uses up its day, because the day's event is
        recorded.

        Args:
            cause: why a claim terminated nothing; None for the usual cause of the status.
            in_doubt: AWS may have received the request to terminate, so a claim on demand also uses up its day.
            verdict: None if the event awaits it.
            settles_at: from when on the verdict can be given; None with a verdict.

        Raises:
            StepRefused: the event is no longer as it was read: its status has changed, or there was another attempt or
                another check.
        """
        assert status in WITHOUT_TERMINATION or event.injection is None or event.injection.proof, event.event_id
        cause = cause or USUAL_CAUSES.get(status)
        closed = replace(event, status=status, detail=detail, recovered_at=recovered_at, cause=cause)
        closed = replace(closed, verdict=verdict, settles_at=settles_at)
        parts = [self._closing(event, closed), self._release_place(event)]
        if status not in WITHOUT_TERMINATION:
            return self._end(closed, parts)
        spends = in_doubt or not is_on_demand(event.event_id)
        for restoring in (True, False):
            back = rollback_writes(self.state, closed, spends, restoring)
            try:
                transact(self.client, [*parts, *back], self.sleep)
            except ConditionFailed as failed:
                if failed.part == 0:
                    raise StepRefused(f"{event.event_id} is no longer as it was read ({event.status})") from None
            else:
                return closed
        raise AssertionError("without restoring only the event's part has a condition")

    def judge(self, event: Event, verdict: Verdict) -> Event:
        """Records the verdict on an event that awaits it, in one transaction. The unit of a BROKEN one leaves chaos.

        Raises:
            StepRefused: the event does not await a verdict any more.
        """
        part = {
            "TableName": self.table,
            "Key": _key(event.event_id),
            "UpdateExpression": "SET verdict = :verdict REMOVE #open",
            "ConditionExpression": "#status = :recovered AND attribute_not_exists(verdict)",
            "ExpressionAttributeNames": {"#status": "status", "#open": "open"},
            "ExpressionAttributeValues": typed(
                {":verdict": codec.to_document(verdict), ":recovered": Status.RECOVERED.value}
            ),
        }
        return self._end(replace(event, verdict=verdict), [{"Update": part}])

    def _end(self, event: Event, parts: list[dict[str, Any]]) -> Event:
        """Writes the parts, of which only the first one, the event's, has a condition; with them, that a unit leaves
        chaos, and why.
        """
        is_broken = event.verdict is not None and event.verdict.value is VerdictValue.BROKEN
        left_for = "unrecovered" if event.status is Status.UNRECOVERED else "broken" if is_broken else None
        leaving = [self._unit_taken_out(event, left_for), self._unit_listed(event)] if left_for else []
        # A benchmark causes what it measures: its hits say nothing about chaos in the whole deployment.
        counts = is_broken and not event.benchmark
        broken_units = BrokenUnits(self.client, self.state, self.halt_after)

        def once() -> None:
            counted = broken_units.parts(event) if counts else []
            try:
                transact(self.client, [*parts, *leaving, *counted], self.sleep)
            except ConditionFailed as failed:
                if failed.part == 0:
                    raise StepRefused(f"{event.event_id} is no longer as it was read") from None
                raise ThrottledError("TransactWriteItems", f"the verdict on {event.event_id}", _CONFLICT) from None

        repeat(once, WRITES, self.sleep)
        return event

    def step(
        self,
        event: Event,
        update: str,
        condition: str,
        values: dict[str, Any],
        **more: str,
    ) -> Any:
        """Changes an event on a condition, and returns DynamoDB's answer. In both texts ``#name`` is the attribute
        ``name``.

        Raises:
            StepRefused: the condition does not hold.
        """
        names = _names(update, condition)
        try:
            return write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=_key(event.event_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                **({"ExpressionAttributeNames": names} if names else {}),
                ExpressionAttributeValues=typed(values),
                **more,
            )
        except ConditionFailed:
            raise StepRefused(f"{event.event_id} is not as this step needs it ({condition})") from None

    def _closing(self, event: Event, closed: Event) -> dict[str, Any]:
        values: dict[str, Any] = {
            ":from": event.status.value,
            ":status": closed.status.value,
            ":detail": closed.detail,
            ":watch": codec.to_document(closed.watch),
        }
        update = "SET #status = :status, detail = :detail, watch = :watch"
        if closed.recovered_at:
            update += ", recovered_at = :recovered_at, recovery_seconds = :seconds"
            values[":recovered_at"], values[":seconds"] = moments.iso(closed.recovered_at), closed.recovery_seconds
        if closed.build and closed.replacement:
            update += ", build = :build, replacement = :replacement"
            values[":build"], values[":replacement"] = (
                codec.to_document(closed.build),
                codec.to_document(closed.replacement),
            )
        update = _with_remarks(update, values, closed)
        if closed.abort:
            update, values[":abort"] = f"{update}, #abort = :abort", codec.to_document(closed.abort)
        if closed.cause:
            update, values[":cause"] = f"{update}, cause = :cause", closed.cause.value
        if closed.verdict:
            update, values[":verdict"] = f"{update}, verdict = :verdict", codec.to_document(closed.verdict)
        condition = "#status = :from"
        if event.status is Status.RUNNING and closed.status is Status.ABANDONED:
            condition += " AND attribute_not_exists(#injection.#command_id)"
        if closed.settles_at:
            update += ", settles_at = :settles_at, #open = :settles"
            values |= {":settles_at": moments.iso(closed.settles_at), ":settles": EVENT_SETTLES}
        else:
            update += " REMOVE #open"
        if event.status is Status.CLAIMED:
            # To end a claim, the caller must know of every attempt: after another one it must read the event again.
            if event.attempts:
                condition, values[":attempts"] = f"{condition} AND attempts = :attempts", event.attempts
            else:
                condition += " AND attribute_not_exists(attempts)"
        elif closed.watch.checks:
            condition, values[":checks"] = f"{condition} AND ({_FIRST_SINCE_READ})", closed.watch.checks - 1
        return {
            "Update": {
                "TableName": self.table,
                "Key": _key(event.event_id),
                "UpdateExpression": update,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": _names(update, condition),
                "ExpressionAttributeValues": typed(values),
            }
        }

    def _release_place(self, event: Event) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": IN_FLIGHT}},
                "UpdateExpression": "ADD #count :back DELETE #instances :instance",
                "ExpressionAttributeNames": {"#count": "count", "#instances": "instances"},
                "ExpressionAttributeValues": {":back": {"N": "-1"}, ":instance": {"SS": [event.instance_id]}},
            }
        }

    def _unit_taken_out(self, event: Event, left_for: str) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": UNIT + event.unit}},
                "UpdateExpression": "SET unrecovered = :event, left_for = :left_for",
                "ExpressionAttributeValues": {":event": {"S": event.event_id}, ":left_for": {"S": left_for}},
            }
        }

    def _unit_listed(self, event: Event) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": UNRECOVERED}},
                "UpdateExpression": "ADD #units :unit SET #schema = :schema",
                "ExpressionAttributeNames": {"#units": "units", "#schema": "schema"},
                "ExpressionAttributeValues": {":unit": {"SS": [event.unit]}, ":schema": {"N": str(SCHEMA)}},
            }
        }


_FIRST_SINCE_READ = "watch.checks = :checks OR watch = :watch"
"""Whether no check was recorded since an event was read, before this one; or it was this one, and its answer was lost.
"""


def _with_remarks(update: str, values: dict[str, Any], event: Event) -> str:
    """Returns the update of an event with what its checks have learnt of the recovery; adds the values."""
    if event.injection and event.injection.proof:
        update, values[":proof"] = f"{update}, #injection.#proof = :proof", codec.to_document(event.injection.proof)
    if event.stages:
        update, values[":stages"] = f"{update}, stages = :stages", codec.to_document(event.stages)
    if event.launch_failure:
        update, values[":launch_failure"] = f"{update}, launch_failure = :launch_failure", event.launch_failure
    return update


def _names(*expressions: str) -> dict[str, str]:
    """Returns the names that expressions use: ``#name`` is the attribute ``name``."""
    return {f"#{name}": name for name in re.findall(r"#(\w+)", " ".join(expressions))}


def _moments(by_id: Mapping[str, datetime]) -> dict[str, str]:
    return {instance_id: moments.iso(at) for instance_id, at in by_id.items()}


def _key(event_id: str) -> dict[str, Any]:
    return {"event_id": {"S": event_id}}
