"""Reads a deployment: its ticks, its events from the API, and its decisions from the table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from cli.client.signed_api import SignedApi
from local.launcher import LocalAccount

_plain = TypeDeserializer().deserialize
RUNNING = "RUNNING"


@dataclass(frozen=True)
class TickRun:
    """An execution of the chaos workflow. ``started`` is aware; the workflow uses it as the current time."""

    arn: str
    status: str
    started: datetime


class DeploymentView:
    """A deployment in the local account."""

    def __init__(self, account: LocalAccount, outputs: dict[str, str]) -> None:
        self._states = account.client("stepfunctions")
        self._dynamodb = account.client("dynamodb")
        self._outputs = outputs
        self.api = SignedApi(outputs["ApiUrl"], account.session(), account.exports["AWS_CA_BUNDLE"])

    def ticks(self) -> list[TickRun]:
        """Lists the executions of the workflow, earliest first."""
        pages = self._states.get_paginator("list_executions").paginate(
            stateMachineArn=self._outputs["ChaosStateMachineArn"]
        )
        runs = [TickRun(e["executionArn"], e["status"], e["startDate"]) for p in pages for e in p["executions"]]
        return sorted(runs, key=lambda run: run.started)

    def deliver_again(self, arn: str) -> str:
        """Starts the workflow with the input of an earlier tick, as a second delivery does. Returns the new ARN.

        EventBridge Scheduler delivers at least once ("Managing invocation", its user guide).
        """
        earlier = self._states.describe_execution(executionArn=arn)
        started = self._states.start_execution(stateMachineArn=earlier["stateMachineArn"], input=earlier["input"])
        return str(started["executionArn"])

    def failure(self, arn: str) -> str:
        """Returns the error and cause of a failed execution."""
        described = self._states.describe_execution(executionArn=arn)
        return f"{described.get('error')}: {described.get('cause')}"

    def events(self) -> list[dict[str, Any]]:
        """Returns the events of ``GET /events``.

        Raises:
            RuntimeError: the API does not return 200.
        """
        answer = self.api.get("events")
        if answer.status != 200:
            raise RuntimeError(f"GET /events returned {answer.status}: {answer.body}")
        events: list[dict[str, Any]] = answer.body["events"]
        return events

    def decisions(self, unit: str) -> list[dict[str, Any]]:
        """Lists the decisions of a unit in the table, latest first."""
        answer = self._dynamodb.query(
            TableName=self._outputs["DecisionsTable"],
            KeyConditionExpression="#unit = :unit",
            ExpressionAttributeNames={"#unit": "unit"},
            ExpressionAttributeValues={":unit": {"S": unit}},
            ScanIndexForward=False,
            ConsistentRead=True,
        )
        return [{k: _plain(v) for k, v in item.items()} for item in answer["Items"]]

    def opt_out(self, unit: str, reason: str, owner: str) -> None:
        """Writes the item that a user would edit in the console."""
        self._dynamodb.put_item(
            TableName=self._outputs["GroupTagsTable"],
            Item={
                "unit": {"S": unit},
                "opt_out": {"BOOL": True},
                "reason": {"S": reason},
                "owner": {"S": owner},
            },
        )
