"""Reads the facts for health checks, in a bounded number of calls for a deployment of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.account_reads import AccountReads
from troop.chaos.aws.alarm_reads import AlarmReads
from troop.chaos.aws.release_table import ReleaseTable
from troop.chaos.aws.state_table import StateTable
from troop.chaos.change_calendars import ChangePeriod
from troop.chaos.health_facts import FAILURES_OF, Children, HealthFacts, Runs, Schedule, Unread
from troop.chaos.tick_times import AROUND, TickSpan
from troop.shared.aws.dynamo import plain
from troop.shared.metrics import CALENDAR, CHILDREN, DIMENSION, NAMESPACE, Metric
from troop.shared.state_keys import UNIT, UNRECOVERED

ENDED_BADLY = ("FAILED", "TIMED_OUT", "ABORTED")
SCHEDULES_READ = 500
"""The most schedules that are examined."""

RUNS_READ = 100
"""The most executions that are read, of all and of each status."""

_PERIOD = 300
"""The length of a period in seconds: 288 periods are a day, and CloudWatch returns at most 1,440 at a time."""

UNITS_READ = 100
"""The most units out of chaos whose own items are examined: DynamoDB reads no more items at a time."""

USUAL_REASON = "unrecovered"
"""Why a unit has left chaos if no reason was read: earlier versions had this one only."""

CALENDARS_READ = 20
"""The most calendars whose ticks are examined."""

Read = TypeVar("Read")


@dataclass(frozen=True)
class HealthReads:
    """Reads a deployment's health.

    Attributes:
        machine: ARN of the chaos workflow.
        schedule_group: name of the group of all schedules.
        queue: URL of the queue of undeliverable messages.
        tables: names of all tables.
        state: name of the table State.
        alarms: reads the alarms; None for the watchdog, whose metrics must not turn alarms into further alarms.
        account: reads facts that only people need; None for the watchdog.
        spans: returns the expected ticks of each calendar's last business day, whose real ones to read; None for the
            watchdog.
        changes: reads the current periods of SSM Change Calendars; None for the watchdog.
        deployment: the stack's name, a dimension of its metrics.
        releases: reads the release that runs; None for the watchdog, which writes it.
    """

    scheduler: Any
    states: Any
    cloudwatch: Any
    sqs: Any
    dynamodb: Any
    machine: str
    schedule_group: str
    queue: str
    tables: Sequence[str]
    state: str
    alarms: AlarmReads | None = None
    account: AccountReads | None = None
    spans: Callable[[datetime], Mapping[str, TickSpan]] | None = None
    changes: Callable[[datetime], tuple[ChangePeriod, ...]] | None = None
    deployment: str = ""
    releases: ReleaseTable | None = None

    def observe(self, now: datetime) -> HealthFacts:
        """Reads everything. A part that AWS refuses or does not answer is marked as unread, and does not stop the rest.

        Makes at most 5 calls for schedules, 5 for executions, 1 for each table and 7 others; 6 for alarms; 3 for the
        account, 2 for each table of an earlier deployment, and 1 for each calendar and each SSM Change Calendar.
        """
        alarms, account, spans, releases = self.alarms, self.account, self.spans, self.releases
        return HealthFacts(
            schedules=_read(self._schedules),
            runs=_read(lambda: self._runs(now)),
            children=_read(lambda: self._children(now)),
            dead_letters=_read(self._dead_letters),
            tables=_read(lambda: {name: self._table(name) for name in self.tables}),
            left=_read(self._left),
            self_halt=_read(self._state.self_halt),
            alarms=_read(alarms.on) if alarms else None,
            subscribers=_read(alarms.subscribers) if alarms else None,
            strays=_read(self._state.strays) if account else None,
            concurrency=_read(account.concurrency) if account else None,
            earlier=_read(account.earlier.undecided) if account else None,
            changes=self.changes(now) if self.changes else None,
            release=_read(releases.running) if releases else None,
            came=_read(lambda: self._came(spans(now))) if spans else None,
        )

    def _schedules(self) -> tuple[Schedule, ...]:
        pages = self.scheduler.get_paginator("list_schedules").paginate(
            GroupName=self.schedule_group, PaginationConfig={"PageSize": 100, "MaxItems": SCHEDULES_READ}
        )
        return tuple(
            Schedule(
                name=s["Name"],
                enabled=s["State"] == "ENABLED",
                ticks=s["Target"]["Arn"] == self.machine,
                changed=s["LastModificationDate"].astimezone(UTC),
            )
            for page in pages
            for s in page["Schedules"]
        )

    def _runs(self, now: datetime) -> Runs:
        since = now - FAILURES_OF
        failed = [s for status in ENDED_BADLY for s in self._started(statusFilter=status)]
        return Runs(
            newest=max(self._started(), default=None),
            newest_succeeded=max(self._started(statusFilter="SUCCEEDED"), default=None),
            failed=tuple(sorted((s for s in failed if s > since), reverse=True)),
        )

    def _started(self, **which: str) -> list[datetime]:
        """Returns when the latest executions started. Children of a Distributed Map are not included.

        Step Functions lists executions that have ended by their ends. So one that started long ago can precede the
        one that started last.
        """
        answer = self.states.list_executions(stateMachineArn=self.machine, maxResults=RUNS_READ, **which)
        return [execution["startDate"].astimezone(UTC) for execution in answer["executions"]]

    def _children(self, now: datetime) -> Children:
        """Returns CloudWatch's counts: listing children would need a call for each tick."""
        failed, succeeded = self._ended("ExecutionsFailed", now), self._ended("ExecutionsSucceeded", now)
        return Children(
            failed=sum(failed.values()),
            last_failed=max((at for at, count in failed.items() if count), default=None),
            last_succeeded=max((at for at, count in succeeded.items() if count), default=None),
        )

    def _ended(self, metric: str, now: datetime) -> dict[datetime, int]:
        """Returns how many children ended this way, by the start of their five-minute period."""
        answer = self.cloudwatch.get_metric_statistics(
            Namespace="AWS/States",
            MetricName=metric,
            Dimensions=[{"Name": "StateMachineArn", "Value": f"{self.machine}/{CHILDREN}"}],
            StartTime=now - FAILURES_OF,
            EndTime=now,
            Period=_PERIOD,
            Statistics=["Sum"],
        )
        return {point["Timestamp"].astimezone(UTC): round(point["Sum"]) for point in answer["Datapoints"]}

    def _came(self, spans: Mapping[str, TickSpan]) -> dict[str, tuple[TickSpan, tuple[datetime, ...]]]:
        return {name: (span, self._came_on(name, span)) for name, span in islice(spans.items(), CALENDARS_READ)}

    def _came_on(self, calendar: str, span: TickSpan) -> tuple[datetime, ...]:
        """Returns when ticks came that found units, by the metric that each of them writes."""
        answer = self.cloudwatch.get_metric_statistics(
            Namespace=NAMESPACE,
            MetricName=Metric.UNITS_TAKING_PART.value,
            Dimensions=[{"Name": DIMENSION, "Value": self.deployment}, {"Name": CALENDAR, "Value": calendar}],
            StartTime=span.first - AROUND,
            EndTime=span.last + AROUND,
            Period=_PERIOD,
            Statistics=["SampleCount"],
        )
        return tuple(sorted(point["Timestamp"].astimezone(UTC) for point in answer["Datapoints"]))

    def _dead_letters(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self.sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=names)
        return sum(int(answer["Attributes"][name]) for name in names)

    def _table(self, name: str) -> str:
        try:
            return str(self.dynamodb.describe_table(TableName=name)["Table"]["TableStatus"])
        except self.dynamodb.exceptions.ResourceNotFoundException:
            return "gone"

    @property
    def _state(self) -> StateTable:
        return StateTable(self.dynamodb, self.state, leashed=False)

    def _left(self) -> dict[str, str]:
        """Returns the units that have left chaos, and why. The stored set only suggests candidates: a unit's own item
        decides, as for a claim.
        """
        key = {"key": {"S": UNRECOVERED}}
        answer = self.dynamodb.get_item(TableName=self.state, Key=key, ConsistentRead=True)
        units = sorted(plain(answer.get("Item", {})).get("units", ()))
        if not units:
            return {}
        keys = [{"key": {"S": UNIT + unit}} for unit in units[:UNITS_READ]]
        request = {self.state: {"Keys": keys, "ConsistentRead": True}}
        answer = self.dynamodb.batch_get_item(RequestItems=request)
        why = dict.fromkeys(units, USUAL_REASON)
        for item in map(plain, answer["Responses"].get(self.state, [])):
            unit = item["key"].removeprefix(UNIT)
            if item.get("unrecovered"):
                why[unit] = item.get("left_for") or USUAL_REASON
            else:
                del why[unit]  # somebody has edited its item
        return why


def _read(read: Callable[[], Read]) -> Read | Unread:
    try:
        return read()
    except (BotoCoreError, ClientError) as error:
        return Unread(f"{type(error).__name__}: {error}")
