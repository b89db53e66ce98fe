"""The parts of a deployment that health is read from, in moto."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.validate import ParamValidator
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb import dynamodb_backends
from moto.scheduler import scheduler_backends
from moto.sns import sns_backends
from moto.stepfunctions import stepfunctions_backends

from tests.tables import create_table
from tests.unit.account.account import FRIDAY, OVERDUE, SETTINGS, Account
from tests.unit.account.fast_moto import calls_are_usual, once
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import typed
from troop.shared.release import Release
from troop.shared.tables import RUNS
from troop.shared.tags import DATA_TAG, DECLINED_TAG, DEPLOYMENT_TAG

REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/role"
TABLES = ("GroupTags", "Events", "State", "Decisions", "Changes", "Runs")
RELEASE = Release("0.1.0", "0f" * 20, {"functions": "a1" * 32, "runtime": "b2" * 32})
NAMES = ("GROUP_TAGS", "EVENTS", "STATE", "DECISIONS", "CHANGES", "RUNS")


@dataclass
class Deployed:
    """The parts of a deployment that health is read from.

    Attributes:
        concurrency: how many functions the account may run at a time; nothing of it is reserved.
        forgotten: ARNs of tables that are gone, and whose tags are still known.
    """

    account: Account
    machine: str
    queue: str
    topic: str
    concurrency: int = 1000
    forgotten: list[str] = field(default_factory=list)

    def answer(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Answers in the place of AWS what moto does not know."""
        if operation == "GetAccountSettings":
            limits = dict.fromkeys(("ConcurrentExecutions", "UnreservedConcurrentExecutions"), self.concurrency)
            return {"AccountLimit": limits}
        assert parameters["ResourceTypeFilters"] == ["dynamodb:table"]
        filters = {one["Key"]: one["Values"] for one in parameters["TagFilters"]}
        tables = [(t.table_arn, t.tags) for t in dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables.values()]
        state = [{"Key": DEPLOYMENT_TAG, "Value": "Troop"}, {"Key": DATA_TAG, "Value": "State"}]
        mappings = [
            {"ResourceARN": arn, "Tags": tags}
            for arn, tags in [*tables, *((arn, state) for arn in self.forgotten)]
            if all(any(t["Key"] == key and t["Value"] in values for t in tags) for key, values in filters.items())
        ]
        return {"ResourceTagMappingList": mappings, "PaginationToken": ""}

    def run(self, started: datetime, status: str = "SUCCEEDED", ended: datetime | None = None) -> None:
        """An execution of the workflow, as if it had started then, and ended at once or later."""
        arn = client("stepfunctions").start_execution(stateMachineArn=self.machine)["executionArn"]
        execution = stepfunctions_backends[DEFAULT_ACCOUNT_ID][REGION].describe_execution(arn)
        execution.start_date, execution.stop_date, execution.status = started, ended or started, status

    def schedule(self, name: str, target: str, changed: datetime = OVERDUE - timedelta(days=30)) -> None:
        client("scheduler").create_schedule(
            Name=name,
            GroupName="Schedules",
            ScheduleExpression="rate(15 minutes)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": target, "RoleArn": ROLE},
        )
        schedule = scheduler_backends[DEFAULT_ACCOUNT_ID][REGION].get_schedule("Schedules", name)
        schedule.last_modified_date = changed.timestamp()

    def alarm(self, name: str, topic: str, state: str = "ALARM") -> None:
        """An alarm in that state, described as the stack's are."""
        description = f"It has happened. What to do: docs/guides/runbook.md#{name.removeprefix('Troop-')}"
        self.account.alarm(name, state, AlarmDescription=description, AlarmActions=[topic])

    def subscribers(self, confirmed: int) -> None:
        """Of the topic of alarms to act on; moto does not count them."""
        sns_backends[DEFAULT_ACCOUNT_ID][REGION].topics[self.topic].subscriptions_confimed = confirmed

    def unrecovered(self, *units: str) -> None:
        for unit in units:
            event = {"key": f"unit#{unit}", "unrecovered": f"{FRIDAY}#{unit}"}
            self.account.dynamodb.put_item(TableName="State", Item=typed(event))
        self.account.dynamodb.put_item(TableName="State", Item={"key": {"S": "unrecovered"}, "units": {"SS": [*units]}})


def deploy(account: Account, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """A deployment in which all is well: ticks came until a minute ago."""
    deployed = Deployed(account, *once("deployed", lambda: _create(account)))
    environment = {
        "TROOP_ACT_NOW_TOPIC": deployed.topic,
        "TROOP_RUNBOOK": "docs/guides/runbook.md",
        "TROOP_CHAOS_MACHINE": deployed.machine,
        "TROOP_SCHEDULE_GROUP": "Schedules",
        "TROOP_RUN_SCHEDULE_GROUP": "Runs",
        "TROOP_RISKS_FUNCTION": "arn:aws:lambda:eu-central-1:123456789012:function:Risks",
        "TROOP_START_FUNCTION": "arn:aws:lambda:eu-central-1:123456789012:function:Start",
        "TROOP_UNDELIVERED_QUEUE": deployed.queue,
        "TROOP_TICK_MINUTES": "15",
        "TROOP_OTHER_SCHEDULES": "4",
        "TROOP_RELEASE": json.dumps(RELEASE.document()),
        **{f"TROOP_{name}_TABLE": table for name, table in zip(NAMES, TABLES, strict=True)},
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("troop.chaos.aws.queue.WAIT", 0)
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation not in ("GetAccountSettings", "GetResources"):
            return real(self, operation, parameters)
        shape = self.meta.service_model.operation_model(operation).input_shape
        assert not ParamValidator().validate(parameters, shape).has_errors()
        return deployed.answer(operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    calls_are_usual((deployed, "concurrency", "forgotten"))
    return deployed


def _create(account: Account) -> tuple[str, str, str]:
    """Machine, queue, and topic."""
    machine = client("stepfunctions").create_state_machine(
        name="chaos", definition=json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}), roleArn=ROLE
    )["stateMachineArn"]
    queue = client("sqs").create_queue(QueueName="undelivered")["QueueUrl"]
    client("scheduler").create_schedule_group(Name="Schedules")
    topic = client("sns").create_topic(Name="act-now")["TopicArn"]
    if RUNS.name not in account.dynamodb.list_tables()["TableNames"]:
        create_table(account.dynamodb, RUNS)
    deployed = Deployed(account, machine, queue, topic)
    for calendar in SETTINGS["calendars"]:
        deployed.schedule(calendar, machine)
    deployed.schedule("watchdog", f"arn:aws:lambda:{REGION}:123456789012:function:watchdog")
    deployed.schedule("sweep", f"arn:aws:lambda:{REGION}:123456789012:function:sweep")
    deployed.schedule("redrive", f"arn:aws:lambda:{REGION}:123456789012:function:notify")
    deployed.schedule("reaper", f"arn:aws:lambda:{REGION}:123456789012:function:reaper")
    deployed.run(OVERDUE - timedelta(minutes=1))
    deployed.subscribers(1)
    return machine, queue, topic


def leave(name: str, part: str, deployment: str = "Troop", *, full: bool = False) -> str:
    """Leaves a table of an earlier deployment in the account, with an item if ``full``. Returns its ARN."""
    table = client("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        Tags=[{"Key": DEPLOYMENT_TAG, "Value": deployment}, {"Key": DATA_TAG, "Value": part}],
    )
    if full:
        client("dynamodb").put_item(TableName=name, Item={"key": {"S": "switch"}})
    return str(table["TableDescription"]["TableArn"])


def decline(arn: str) -> None:
    client("dynamodb").tag_resource(ResourceArn=arn, Tags=[{"Key": DECLINED_TAG, "Value": "yes"}])
