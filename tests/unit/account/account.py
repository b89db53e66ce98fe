"""An AWS account in moto with everything a deployment has, and a clock to turn."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from math import inf
from types import SimpleNamespace
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from handlers import check_recovery, decide, hear, inject, sweep, terminate
from tests.tables import create_table
from tests.unit.account.fast_moto import once
from tests.unit.chaos.build import FRIDAY as FRIDAY
from tests.unit.chaos.build import raw_settings
from troop.chaos.aws.event_table import EventTable
from troop.chaos.events import Event
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import plain, typed
from troop.shared.state_keys import BROKEN, EARLIER_TABLES, SELF_HALT
from troop.shared.tables import CHAOS_TABLES

WEB = f"{FRIDAY}#web"
"""The event of that day of the unit ``web``."""
OVERDUE = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
"""14:46 in Los Angeles: whatever rolled is due, and 14 minutes of the window are left."""

SETTINGS = raw_settings(
    units={"web-v*": "web"},
    calendars={
        "default": {
            "time_zone": "America/Los_Angeles",
            "open": "09:00",
            "close": "15:00",
            "country": "US",
            "extra_dates": [{"date": "2026-12-24", "name": "Christmas Eve"}],
            "freezes": [{"from": "2026-12-14", "to": "2026-12-15", "reason": "release"}],
        },
        "night": {"time_zone": "Europe/Vienna", "open": "00:00", "close": "24:00", "weekdays": ["SUN", "MON"]},
    },
)

ENVIRONMENT = {
    "TROOP_GROUP_TAGS_TABLE": "GroupTags",
    "TROOP_EVENTS_TABLE": "Events",
    "TROOP_STATE_TABLE": "State",
    "TROOP_DECISIONS_TABLE": "Decisions",
    "TROOP_CHANGES_TABLE": "Changes",
    "TROOP_RUNS_TABLE": "Runs",
    "TROOP_WORK_BUCKET": "work-bucket",
    "TROOP_SALT_SECRET": "Salt",
    "TROOP_EVENT_BUS": "chaos",
    "TROOP_ON_DEMAND_MACHINE": "arn:aws:states:eu-central-1:123456789012:stateMachine:on-demand",
    "TROOP_PROBE_DOCUMENT": "Troop-Probe",
    "TROOP_BACKSTOP_GROUP": "backstops",
    "TROOP_BACKSTOP_ROLE": "arn:aws:iam::123456789012:role/backstop",
    "POWERTOOLS_SERVICE_NAME": "test",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
}

CONTEXT: Any = SimpleNamespace(
    function_name="f", memory_limit_in_mb=256, invoked_function_arn="arn:aws:lambda:::f", aws_request_id="r"
)


EXHAUSTIVE = bool(os.environ.get("TROOP_EXHAUSTIVE"))
"""Whether runs are cut at every call, before and after it acts: ``make test-all``."""

Call = partial[Any]
"""What makes a call of AWS that was intercepted; the last argument is the request."""

Intercept = Callable[[int, str, Call], Any]
"""What a test does in the place of a call: (number of the call, operation, call)."""


class Cut(Exception):
    """An injected end of a function's run."""


class Kill(BaseException):
    """An injected end that nothing in a function can catch."""


@dataclass
class Clock:
    """What ``environment.now`` is in tests."""

    moment: datetime = OVERDUE

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, **delta: float) -> None:
        self.moment += timedelta(**delta)


@dataclass
class Account:
    """Helpers around the clients; time is ``clock``. ``refreshes``: status of the latest instance refresh by group."""

    clock: Clock
    settings: dict[str, Any]
    refreshes: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.dynamodb, self.ec2, self.autoscaling = client("dynamodb"), client("ec2"), client("autoscaling")
        self.events = EventTable(self.dynamodb, "Events", "State")

    def deploy(self) -> None:
        """Makes what the stack makes."""
        once("deploy", self._create)

    def _create(self) -> None:
        for table in CHAOS_TABLES:
            create_table(self.dynamodb, table)
        self.put("State", typed({"key": EARLIER_TABLES, "settled_at": "2026-11-01T00:00:00Z"}))
        where = {"LocationConstraint": "eu-central-1"}
        client("s3").create_bucket(Bucket="work-bucket", CreateBucketConfiguration=where)
        client("secretsmanager").create_secret(Name="Salt", SecretString="s" * 64)
        client("events").create_event_bus(Name="chaos")
        self.ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData={"ImageId": "ami-12c6146b"})

    # What stands in the account

    def group(
        self,
        name: str,
        size: int = 3,
        tags: dict[str, str] | None = None,
        propagated: dict[str, str] | None = None,
        **more: Any,
    ) -> str:
        """Creates a group; its instances get the tags ``propagated``."""
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": "nodes"},
            MinSize=0,
            MaxSize=20,
            DesiredCapacity=size,
            AvailabilityZones=["eu-central-1a", "eu-central-1b"],
            Tags=[
                {"Key": key, "Value": value, "PropagateAtLaunch": propagate}
                for some, propagate in ((tags, False), (propagated, True))
                for key, value in (some or {}).items()
            ],
            **more,
        )
        return name

    def drop_group(self, name: str) -> None:
        self.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)

    def instances(self, name: str) -> list[str]:
        groups = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        return [i["InstanceId"] for g in groups for i in g["Instances"]]

    def states(self) -> dict[str, str]:
        """EC2's state by instance."""
        pages = self.ec2.get_paginator("describe_instances").paginate()
        return {i["InstanceId"]: i["State"]["Name"] for p in pages for r in p["Reservations"] for i in r["Instances"]}

    def gone(self) -> list[str]:
        return [i for i, state in self.states().items() if state in ("shutting-down", "terminated")]

    # What people write

    def policy(self, unit: str, **item: Any) -> None:
        self.dynamodb.put_item(TableName="GroupTags", Item=typed({"unit": unit} | item))

    def unsettle(self) -> None:
        """Makes the deployment as young as before its first tick."""
        self.dynamodb.delete_item(TableName="State", Key={"key": {"S": EARLIER_TABLES}})

    def switch(self, **values: bool) -> None:
        self.dynamodb.put_item(TableName="State", Item=typed({"key": "switch"} | values))

    def halt_itself(self, **more: Any) -> None:
        """Halts the deployment, as it halts itself when too many units are broken."""
        halt = {"at": moments.iso(self.clock()), "why": "2 causes broke units", "events": ["a", "b"], "schema": 1}
        self.put("State", typed({"key": SELF_HALT} | halt | more))
        self.put("State", typed({"key": BROKEN, "events": [{"event_id": "a"}, {"event_id": "b"}], "schema": 1}))

    def change(self, table: str, key: dict[str, str], **values: Any) -> None:
        """Sets attributes of an item, as nobody but a hand does."""
        updates = {name: {"Action": "PUT", "Value": value} for name, value in typed(values).items()}
        self.dynamodb.update_item(TableName=table, Key=typed(key), AttributeUpdates=updates)

    def alarm(self, name: str, state: str = "INSUFFICIENT_DATA", **more: Any) -> None:
        """Creates an alarm, if there is none, and sets its state."""
        values = {
            "AlarmName": name,
            "Namespace": "n",
            "MetricName": "m",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": 1.0,
            "ComparisonOperator": "GreaterThanThreshold",
        }
        client("cloudwatch").put_metric_alarm(**(values | more))
        client("cloudwatch").set_alarm_state(AlarmName=name, StateValue=state, StateReason="for the test")

    # What is on record

    def state(self, key: str) -> dict[str, Any]:
        return plain(self.dynamodb.get_item(TableName="State", Key={"key": {"S": key}}).get("Item", {}))

    def count(self, key: str) -> int:
        return int(self.state(key).get("count", 0))

    def put(self, table: str, item: dict[str, Any]) -> None:
        self.dynamodb.put_item(TableName=table, Item=item)

    def event(self, event_id: str) -> Event:
        event = self.events.get(event_id)
        assert event is not None, event_id
        return event

    def all_events(self) -> list[str]:
        return [i["event_id"]["S"] for i in self.dynamodb.scan(TableName="Events")["Items"]]

    def decisions(self) -> dict[str, dict[str, Any]]:
        """The latest decision by unit."""
        items = map(plain, self.dynamodb.scan(TableName="Decisions")["Items"])
        return {d["unit"]: d for d in sorted(items, key=lambda d: str(d["tick"]))}

    # What the workflow calls

    def execution(self) -> dict[str, str]:
        arn = f"arn:aws:states:eu-central-1:123456789012:execution:chaos:e{next(self._numbers)}"
        return {"execution": arn, "started": moments.iso(self.clock())}

    def decide(self, calendar: str = "default", **execution: str) -> dict[str, Any]:
        answer: dict[str, Any] = decide.handler({"calendar": calendar} | (execution or self.execution()), CONTEXT)
        return answer

    def work(self, decided: dict[str, Any]) -> list[dict[str, Any]]:
        body = client("s3").get_object(Bucket=decided["bucket"], Key=decided["key"])["Body"].read()
        items: list[dict[str, Any]] = json.loads(body)
        return items

    def terminate(self, item: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = terminate.handler(item, CONTEXT)
        return answer

    def item(self, *groups: str, unit: str = "") -> dict[str, Any]:
        """A work item for a unit, as decided now."""
        unit, execution = unit or groups[0], self.execution()
        return {
            "event_id": f"{FRIDAY}#{unit}",
            "unit": unit,
            "day": str(FRIDAY),
            "groups": list(groups),
            "tick": execution["started"],
            "execution": execution["execution"],
        }

    def check_recovery(self, event_id: str) -> dict[str, Any]:
        event = {"event_id": event_id, "entered": moments.iso(self.clock())}
        answer: dict[str, Any] = check_recovery.handler(event, CONTEXT)
        return answer

    def wait_for_recovery(self, event_id: str, token: str = "token") -> dict[str, Any]:
        """The step CheckRecovery of a workflow that waits by a token."""
        event = {"event_id": event_id, "entered": moments.iso(self.clock()), "token": token}
        answer: dict[str, Any] = check_recovery.handler(event, CONTEXT)
        return answer

    def inject(self, **event: Any) -> dict[str, str]:
        """A call of the function that injects; returns the statuses of the events that it was about."""
        answer: dict[str, str] = inject.handler(event, CONTEXT)["events"]
        return answer

    def hear(
        self,
        source: str,
        detail: dict[str, Any],
        at: datetime | None = None,
        kind: str = "EC2 Instance Launch Unsuccessful",
    ) -> list[str]:
        """An event of AWS, sent now or ``at``; returns the terminations that it was about."""
        time = moments.iso(at or self.clock())
        event = {"id": "an event's", "source": source, "detail-type": kind, "time": time, "detail": detail}
        answer: list[str] = hear.handler(event, CONTEXT)["events"]
        return answer

    def sweep(self) -> dict[str, Any]:
        answer: dict[str, Any] = sweep.handler(self.execution(), CONTEXT)
        return answer


def inputs(machine: str) -> dict[str, Any]:
    """Returns the inputs of a state machine's executions, by their name."""
    states = client("stepfunctions")
    executions = states.list_executions(stateMachineArn=machine)["executions"]
    described = [states.describe_execution(executionArn=one["executionArn"]) for one in executions]
    return {one["name"]: json.loads(one["input"]) for one in described}


def through(number: int, operation: str, call: Call) -> Any:
    """What :func:`calls` does when they are only listed."""
    return call()


@contextmanager
def calls(monkeypatch: Any, intercept: Intercept = through) -> Iterator[list[str]]:
    """Routes every call of every client through ``intercept(number, operation, call)``; lists the operations."""
    operations: list[str] = []
    real = BaseClient._make_api_call  # type: ignore[attr-defined]
    others = set(threading.enumerate()) - {threading.current_thread()}

    def routed(self: Any, operation: str, parameters: Any) -> Any:
        if threading.current_thread() in others:  # still at what an earlier test has begun, and cut off
            return real(self, operation, parameters)
        operations.append(operation)
        call = partial(real, self, operation, parameters)
        return intercept(len(operations) - 1, operation, call)

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", routed)
        yield operations


def raising(operation: str, error: Exception) -> Intercept:
    """Answers an operation with an error before it acts."""

    def intercept(number: int, name: str, call: Call) -> Any:
        if name == operation:
            raise error
        return call()

    return intercept


def refusing(operation: str, code: str, retries: int = 0, message: str = "it may not") -> Intercept:
    """Answers an operation with an error of AWS, as if botocore had tried so many times more."""
    error: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"RetryAttempts": retries}}
    return raising(operation, ClientError(error, operation))


def before(operation: str, do: Callable[[], object], times: int = 1) -> Intercept:
    """Does something right before the first calls of an operation: what another request does in between."""
    left = [times]

    def intercept(number: int, name: str, call: Call) -> Any:
        if name == operation and left[0]:
            left[0] -= 1
            do()
        return call()

    return intercept


def changing(operation: str, change: Callable[[Any], object], times: float = inf) -> Intercept:
    """Lets ``change`` work on the first answers to an operation, after it has acted."""
    left = [times]

    def intercept(number: int, name: str, call: Call) -> Any:
        answer = call()
        if name == operation and left[0]:
            left[0] -= 1
            change(answer)
        return answer

    return intercept


def losing(operation: str) -> Intercept:
    """Cuts the run after an operation has acted, its answer lost."""

    def lose(answer: Any) -> None:
        raise Cut(operation)

    return changing(operation, lose)


def cuts(numbers: Iterable[int]) -> list[tuple[int, bool]]:
    """Lists where to cut runs: (call, whether it acts), each call once, before one acts and after the next acts.

    With ``TROOP_EXHAUSTIVE`` each call both before and after it acts.
    """
    both = [(number, acted) for number in numbers for acted in (False, True)]
    return both if EXHAUSTIVE else [cut for at, cut in enumerate(both) if at % 4 in (0, 3)]


def ends(numbers: Iterable[int], operations: Sequence[str]) -> list[int]:
    """Lists those calls that are the first or last of their operation; with ``TROOP_EXHAUSTIVE`` all of them."""
    by_operation: dict[str, list[int]] = {}
    for number in sorted(numbers):
        by_operation.setdefault(operations[number], []).append(number)
    return sorted({n for calls in by_operation.values() for n in (calls if EXHAUSTIVE else (calls[0], calls[-1]))})


def cut_at(number: int, acted: bool, cut: type[BaseException] = Cut) -> Intercept:
    """Cuts the run at a call: before it acts, or after it, its answer lost."""

    def intercept(at: int, operation: str, call: Call) -> Any:
        if at != number:
            return call()
        if acted:
            with suppress(ClientError):
                call()
        raise cut(operation)

    return intercept
