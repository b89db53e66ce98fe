"""Which tables are proven to be a deployment's own: by CloudFormation's record, or by the secret with the salt."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from cli.shared import aws
from lifecycle.origin import proven
from lifecycle.retained import RetainedTable
from troop.shared.tags import DEPLOYMENT_TAG, STACK_TAG, TABLE_TAG

PREFIX = "arn:aws:cloudformation:eu-west-1:111122223333:stack/"
FIRST, SECOND = f"{PREFIX}Troop/1", f"{PREFIX}Troop/2"
DELETED = datetime(2026, 11, 20, 10, tzinfo=UTC)
BEFORE, AFTER = DELETED - timedelta(days=30), DELETED + timedelta(minutes=1)
Resources = list[tuple[str, str]]


class CloudFormation:
    """The record of stacks: their name, status and resources (name and status of a table) by id."""

    def __init__(self) -> None:
        self.stacks: dict[str, tuple[str, str, Resources]] = {}
        self.events: dict[str, Resources] = {}
        self.read: list[str] = []

    def get_paginator(self, operation: str) -> Any:
        return type("Pages", (), {"paginate": lambda _, StackName="": getattr(self, operation)(StackName)})()

    def list_stacks(self, _: str) -> Iterator[dict[str, Any]]:
        for stack, (name, status, _resources) in self.stacks.items():
            yield {"StackSummaries": [{"StackId": stack, "StackName": name, "StackStatus": status}]}

    def list_stack_resources(self, stack: str) -> Iterator[dict[str, Any]]:
        self.read.append(stack)
        yield {"StackResourceSummaries": []}
        listed = [_resource(*one) | {"LastUpdatedTimestamp": DELETED} for one in self.stacks[stack][2]]
        yield {"StackResourceSummaries": listed}

    def describe_stack_events(self, stack: str) -> Iterator[dict[str, Any]]:
        self.read.append(f"events of {stack}")
        yield {"StackEvents": [_resource(*one) | {"Timestamp": DELETED} for one in self.events.get(stack, [])]}


def _resource(name: str, status: str) -> dict[str, Any]:
    return {"ResourceType": "AWS::DynamoDB::Table", "PhysicalResourceId": name, "ResourceStatus": status}


@pytest.fixture
def record(session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> CloudFormation:
    played, real = CloudFormation(), aws.client
    monkeypatch.setattr(aws, "client", lambda s, name, **o: played if name == "cloudformation" else real(s, name, **o))
    return played


def stacks_of(session: boto3.Session, **created: datetime) -> dict[str, str]:
    tables = [RetainedTable(name, "State", moment, 1, {}) for name, moment in created.items()]
    return {table.name: " ".join(table.stacks) for table in proven(session, "Troop", tables)}


def test_a_deleted_stack_proves_what_it_has_retained(session: boto3.Session, record: CloudFormation) -> None:
    record.stacks = {
        FIRST: ("Troop", "DELETE_COMPLETE", [("a", "DELETE_SKIPPED"), ("b", "DELETE_COMPLETE")]),
        f"{PREFIX}Troop-Staging/3": ("Troop-Staging", "DELETE_COMPLETE", [("c", "DELETE_SKIPPED")]),
        SECOND: ("Troop", "IMPORT_ROLLBACK_COMPLETE", [("d", "IMPORT_ROLLBACK_COMPLETE")]),
    }
    stack_by_table = stacks_of(session, a=BEFORE, b=BEFORE, c=BEFORE, d=BEFORE)
    assert stack_by_table == {"a": FIRST, "b": "", "c": "", "d": ""}
    assert f"{PREFIX}Troop-Staging/3" not in record.read


def test_table_younger_than_the_record_of_its_name_is_another_one(
    session: boto3.Session, record: CloudFormation
) -> None:
    record.stacks = {FIRST: ("Troop", "DELETE_COMPLETE", [("a", "DELETE_SKIPPED")])}
    assert stacks_of(session, a=AFTER) == {"a": ""}


def test_events_of_an_existing_stack_prove_which_resources_it_retained(
    session: boto3.Session, record: CloudFormation
) -> None:
    record.stacks = {FIRST: ("Troop", "UPDATE_COMPLETE", [("own", "UPDATE_COMPLETE")])}
    record.events = {FIRST: [("runs", "DELETE_SKIPPED"), ("own", "UPDATE_COMPLETE")]}
    assert stacks_of(session, runs=BEFORE, planted=BEFORE) == {"runs": FIRST, "planted": ""}
    record.read.clear()
    record.stacks = {FIRST: ("Troop", "UPDATE_COMPLETE", [("runs", "DELETE_SKIPPED")])}
    assert stacks_of(session, runs=BEFORE) == {"runs": FIRST}
    assert record.read == [FIRST], "all pages of events only if something is left to prove"


def secret(session: boto3.Session, name: str, stack: str, deployment: str = "Troop", **tables: str) -> None:
    tags = {DEPLOYMENT_TAG: deployment, **{f"{TABLE_TAG}{part}": table for part, table in tables.items()}}
    tags |= {STACK_TAG: stack} if stack else {}
    listed: Any = [{"Key": key, "Value": value} for key, value in tags.items()]
    session.client("secretsmanager").create_secret(Name=name, SecretString="salt", Tags=listed)


def test_the_secret_proves_the_tables_of_its_stack_when_the_record_is_gone(
    session: boto3.Session, record: CloudFormation
) -> None:
    """AWS sets the tag with the stack's id on secrets; nobody else can."""
    secret(session, "ours", FIRST, State="a", Events="b")
    secret(session, "without", "", State="c")
    secret(session, "others", f"{PREFIX}Troop-Staging/1", State="d")
    created = datetime.now(UTC) - timedelta(days=200)
    stack_by_table = stacks_of(session, a=created, b=created, c=created, d=created, e=created)
    assert stack_by_table == {"a": FIRST, "b": FIRST, "c": "", "d": "", "e": ""}
    assert stacks_of(session, a=datetime.now(UTC) + timedelta(days=2)) == {"a": ""}


def test_the_stack_that_had_a_table_last_comes_last(session: boto3.Session, record: CloudFormation) -> None:
    record.stacks = {FIRST: ("Troop", "DELETE_COMPLETE", [("a", "DELETE_SKIPPED")])}
    secret(session, "ours", SECOND, State="a")
    assert stacks_of(session, a=BEFORE) == {"a": f"{FIRST} {SECOND}"}


def test_nothing_is_read_without_a_table(session: boto3.Session, record: CloudFormation) -> None:
    assert proven(session, "Troop", []) == []
    assert record.read == []
