"""Stores scheduled runs: their calls in EventBridge Scheduler, their requests in the results bucket, and their outcomes
and the month's cost in the table ``State``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.aws.run_keys import KEY_LIFETIME
from troop.bench.definition.names import schedule_key
from troop.bench.records.schedule import MOST_SCHEDULES, Schedule
from troop.shared import moments
from troop.shared.aws.dynamo import plain, typed
from troop.shared.aws.throttling import Sleep
from troop.shared.aws.transact import ConditionFailed, transact, write
from troop.shared.errors import TroopError
from troop.shared.malformed import Read, read, read_one
from troop.shared.state_keys import (
    BENCH_SCHEDULE,
    BENCH_SCHEDULES,
    SCHEDULED_COST,
    SCHEDULED_START,
    SCHEDULES_OFF,
    SWITCH,
)

_SECONDS = 900
_ATTEMPTS = 3
_COST_LIFETIME = timedelta(days=400)
_REMOVED_LIFETIME = timedelta(days=1)
_OUTCOME = ("last_at", "last_run", "last_refusal")


class RefusedExpressionError(TroopError):
    """EventBridge Scheduler refuses an expression."""


class TooManySchedulesError(TroopError):
    """The deployment has as many schedules as it can have."""

    def __init__(self) -> None:
        super().__init__(f"there are {MOST_SCHEDULES} schedules, the most possible: remove one first")


@dataclass(frozen=True)
class ScheduleGroup:
    """The schedules in EventBridge Scheduler.

    Attributes:
        client: EventBridge Scheduler's.
        group: the name of the deployment's group for scheduled runs.
        function: ARN of the start function.
        role: ARN of the role with which Scheduler calls it.
        undelivered: ARN of the queue for calls that cannot be delivered.
    """

    client: Any
    group: str
    function: str
    role: str
    undelivered: str

    def create(self, schedule: Schedule, first: datetime | None) -> None:
        """Creates a schedule; one that exists stays.

        Args:
            first: the first start of a rate, aware. Without it, Scheduler starts a rate at once. Other expressions
                state their times themselves.

        Raises:
            RefusedExpressionError: Scheduler refuses the expression or the time zone.
            ClientError: Scheduler refused for another reason.
        """
        payload = {"name": schedule.name, "digest": schedule.digest, "scheduled": "<aws.scheduler.scheduled-time>"}
        try:
            self.client.create_schedule(
                Name=schedule.name,
                GroupName=self.group,
                Description=f"Runs the benchmark {schedule.benchmark}"[:512],
                ScheduleExpression=schedule.expression,
                ScheduleExpressionTimezone=schedule.time_zone,
                FlexibleTimeWindow={"Mode": "OFF"},
                State="ENABLED",
                **({"StartDate": first} if first and schedule.expression.startswith("rate(") else {}),
                Target={
                    "Arn": self.function,
                    "RoleArn": self.role,
                    "Input": json.dumps(payload),
                    "RetryPolicy": {"MaximumEventAgeInSeconds": _SECONDS, "MaximumRetryAttempts": _ATTEMPTS},
                    "DeadLetterConfig": {"Arn": self.undelivered},
                },
            )
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ValidationException":
                raise RefusedExpressionError(error.response["Error"].get("Message", code)) from None
            if code != "ConflictException":
                raise

    def delete(self, name: str) -> None:
        """Deletes a schedule; a missing one is no error."""
        try:
            self.client.delete_schedule(Name=name, GroupName=self.group)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise


@dataclass(frozen=True)
class ScheduleRequests:
    """The requests that schedules repeat, in the results bucket."""

    client: Any
    bucket: str

    def put(self, name: str, digest: str, request: Mapping[str, Any]) -> None:
        """Writes the body of a request to run."""
        key = schedule_key(name, digest)
        body = json.dumps(request).encode()
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType="application/json")

    def get(self, name: str, digest: str) -> dict[str, Any]:
        """Reads the body of a request to run."""
        answer = self.client.get_object(Bucket=self.bucket, Key=schedule_key(name, digest))
        request: dict[str, Any] = json.loads(answer["Body"].read())
        return request

    def delete(self, name: str, digest: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=schedule_key(name, digest))


@dataclass(frozen=True)
class ScheduleStates:
    """The state of schedules, in the table ``State``.

    Attributes:
        client: DynamoDB's.
        group: the name of the schedules' group. A deployment that takes over the table of an earlier one has another
            group, and none of its schedules.
    """

    client: Any
    table: str
    group: str
    sleep: Sleep = time.sleep

    def off(self) -> bool:
        """Checks whether all schedules are switched off."""
        return bool(self._item(SWITCH).get(SCHEDULES_OFF, False))

    def find(self, name: str) -> Schedule | None:
        """Returns a schedule; None if there is none.

        Raises:
            MalformedItemError: it cannot be read.
        """
        item = self._item(self._key(name))
        return read_one(item, _schedule_of, lambda _: self._name(name)) if "digest" in item else None

    def all(self) -> Read[Schedule]:
        """Returns all schedules in the order of their names. Costs an item for each."""
        names = read(
            [self._item(BENCH_SCHEDULES + self.group).get("names", set())],
            _names_of,
            lambda _: f"State: {BENCH_SCHEDULES}{self.group}",
        )
        items = ((name, self._item(self._key(name))) for listed in names.items for name in listed)
        there = ((name, item) for name, item in items if "digest" in item)
        schedules = read(there, lambda one: _schedule_of(one[1]), lambda one: self._name(one[0]))
        return Read(schedules.items, (*names.malformed, *schedules.malformed))

    def create(self, schedule: Schedule) -> bool:
        """Records a schedule, unless there is one of this name. Returns whether it did.

        Raises:
            TooManySchedulesError: there are too many.
        """
        values = {key: value for key, value in asdict(schedule).items() if key not in _OUTCOME}
        values["created_at"] = moments.iso(schedule.created_at)
        values = {key: value for key, value in values.items() if value is not None}
        removed = {key: key for key in (*_OUTCOME, "expires_at", *({"size"} - values.keys()))}
        parts = [
            self._update(
                self._key(schedule.name),
                "SET "
                + ", ".join(f"#{key} = :{key}" for key in values)
                + " REMOVE "
                + ", ".join(f"#{key}" for key in removed),
                {f":{key}": value for key, value in values.items()},
                (*values, *removed),
                "attribute_not_exists(#digest)",
            ),
            self._update(
                BENCH_SCHEDULES + self.group,
                "ADD #names :one",
                {":one": {schedule.name}, ":most": MOST_SCHEDULES},
                ("names",),
                "attribute_not_exists(#names) OR size(#names) < :most",
            ),
        ]
        try:
            transact(self.client, parts, self.sleep)
        except ConditionFailed as failed:
            if failed.part == 1:
                raise TooManySchedulesError from None
            return False
        return True

    def delete(self, name: str, now: datetime) -> None:
        """Removes a schedule. DynamoDB deletes the item later."""
        values = {":expires_at": int((now + _REMOVED_LIFETIME).timestamp())}
        parts = [
            self._update(
                self._key(name),
                "SET #expires_at = :expires_at REMOVE #digest",
                values,
                ("digest", "expires_at"),
            ),
            self._update(BENCH_SCHEDULES + self.group, "DELETE #names :one", {":one": {name}}, ("names",)),
        ]
        transact(self.client, parts, self.sleep)

    def record(self, schedule: Schedule, at: datetime, run: str | None, refusal: str | None) -> None:
        """Records the outcome of a start, unless a later start is on record, or the schedule was removed.

        Args:
            at: the start's scheduled time.
            run: None if it was refused.
            refusal: why; None if it was not refused.
        """
        request = self._update(
            self._key(schedule.name),
            "SET #last_at = :at" + (", #last_run = :run REMOVE #last_refusal" if run else "")
            + (", #last_refusal = :refusal REMOVE #last_run" if not run else ""),
            {":at": moments.iso(at), ":digest": schedule.digest, **({":run": run} if run else {":refusal": refusal})},
            (*_OUTCOME, "digest"),
            "#digest = :digest AND (attribute_not_exists(#last_at) OR #last_at <= :at)",
        )["Update"]  # fmt: skip
        try:
            write(self.client.update_item, self.sleep, **request)
        except ConditionFailed:
            return

    def cost(self, month: str) -> Decimal:
        """Returns the sum of the worst cases of all runs that schedules have started in a month, such as 2027-01.

        Raises:
            MalformedItemError: it cannot be read.
        """
        item = self._item(SCHEDULED_COST + month)
        return read_one(item, lambda item: _number(item.get("amount", 0)), lambda _: f"State: {SCHEDULED_COST}{month}")

    def count(self, start: str, month: str, amount: Decimal, budget: Decimal | None, now: datetime) -> bool:
        """Counts a start once against the month's budget. Returns False if the budget does not suffice.

        Args:
            start: identifies it; a repeated start counts once.
            amount: the worst case of its run.
            budget: None for no limit.
        """
        if budget is not None and amount > budget:
            return False
        token, month_end = int((now + KEY_LIFETIME).timestamp()), int((now + _COST_LIFETIME).timestamp())
        room = {} if budget is None else {":room": budget - amount}
        condition = "attribute_not_exists(#amount) OR #amount <= :room" if room else None
        names, set_once = ("amount", "expires_at"), "SET #amount = :amount, #expires_at = :expires_at"
        add = "SET #expires_at = :expires_at ADD #amount :amount"
        values = {":amount": amount, ":expires_at": token}
        month_values = {":amount": amount, ":expires_at": month_end, **room}
        parts = [
            self._update(SCHEDULED_START + start, set_once, values, names, "attribute_not_exists(#amount)"),
            self._update(SCHEDULED_COST + month, add, month_values, names, condition),
        ]
        try:
            transact(self.client, parts, self.sleep)
        except ConditionFailed as failed:
            return failed.part == 0
        return True

    def _key(self, name: str) -> str:
        return f"{BENCH_SCHEDULE}{self.group}#{name}"

    def _name(self, name: str) -> str:
        return f"State: {self._key(name)}"

    def _item(self, key: str) -> dict[str, Any]:
        answer = self.client.get_item(TableName=self.table, Key=typed({"key": key}), ConsistentRead=True)
        return plain(answer.get("Item", {}))

    def _update(
        self,
        key: str,
        expression: str,
        values: Mapping[str, Any],
        names: tuple[str, ...],
        condition: str | None = None,
    ) -> dict[str, Any]:
        update = {
            "TableName": self.table,
            "Key": typed({"key": key}),
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {f"#{name}": name for name in names},
            "ExpressionAttributeValues": typed(values),
        }
        return {"Update": update | ({"ConditionExpression": condition} if condition else {})}


def _names_of(stored: Any) -> list[str]:
    if not isinstance(stored, set) or not all(isinstance(name, str) for name in stored):
        raise ValueError("names must be a set of texts")
    return sorted(stored)


def _schedule_of(item: Mapping[str, Any]) -> Schedule:
    values: dict[str, Any] = {key: item.get(key) for key in Schedule.__dataclass_fields__}
    wrong = [key for key in _TEXTS if not isinstance(values[key], str)]
    wrong += [key for key in (*_OUTCOME, "size") if not isinstance(values[key], str | None)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} must be text")
    values |= {key: _number(values[key]) for key in ("expected", "most")}
    values["created_at"] = moments.parse(item["created_at"])
    values["last_at"] = moments.parse(item["last_at"]) if item.get("last_at") else None
    return Schedule(**values)


_TEXTS = ("name", "expression", "time_zone", "digest", "benchmark", "currency", "created_by")


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError(f"{value!r:.50} must be a number")
    return Decimal(value)
