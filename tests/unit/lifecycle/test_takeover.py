"""How tables are taken over, and what is left where that fails, with CloudFormation played by the test."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import WaiterError

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle import takeover
from lifecycle.retained import RetainedTable
from lifecycle.takeover import adopt, adopt_into, clear_away

STACK_ID = "arn:aws:cloudformation:eu-west-1:111122223333:stack/Troop/1"
STREAM = {"StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"}}
TEMPLATE = {"Resources": {"Events": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "e", **STREAM}}}}


class CloudFormation:
    """Takes tables over.

    Attributes:
        refuses: it makes no change set of them.
        statuses: the stack's, in their order, once the change set is executed.
        has: what the stack has then: statuses by logical id.
        template: the template it was given.
        deleted: stacks.
    """

    def __init__(self) -> None:
        self.refuses = False
        self.statuses = ["IMPORT_IN_PROGRESS", "IMPORT_COMPLETE"]
        self.has: dict[str, str] = {}
        self.template: dict[str, Any] = {}
        self.deleted: list[str] = []

    def create_change_set(self, **request: Any) -> dict[str, str]:
        self.template = json.loads(request["TemplateBody"])
        return {"StackId": STACK_ID}

    def describe_change_set(self, **_: Any) -> dict[str, str]:
        return {"StatusReason": "e is not there"}

    def execute_change_set(self, **_: Any) -> None: ...

    def get_waiter(self, name: str) -> Any:
        def wait(_: Any, **__: Any) -> None:
            if self.refuses and name == "change_set_create_complete":
                raise WaiterError(name, "it failed", {})

        return type("Waiter", (), {"wait": wait})()

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        assert StackName == STACK_ID
        return {"Stacks": [{"StackStatus": self.statuses.pop(0)}]}

    def get_paginator(self, operation: str) -> Any:
        events = [
            {"LogicalResourceId": "Events", "ResourceStatus": status, "ResourceStatusReason": reason}
            for status, reason in [("IMPORT_ROLLBACK_COMPLETE", ""), ("IMPORT_FAILED", "it throttles")]
        ]
        resources = [
            {"LogicalResourceId": k, "ResourceType": "T", "PhysicalResourceId": "e", "ResourceStatus": status}
            for k, status in self.has.items()
        ]
        pages = {"describe_stack_events": {"StackEvents": events},
                 "list_stack_resources": {"StackResourceSummaries": resources}}  # fmt: skip
        return type("Pages", (), {"paginate": lambda *_, **__: iter([pages[operation]])})()

    def delete_stack(self, StackName: str) -> None:
        self.deleted.append(StackName)


@pytest.fixture
def cloudformation(monkeypatch: pytest.MonkeyPatch) -> CloudFormation:
    played, real = CloudFormation(), aws.client
    monkeypatch.setattr(aws, "client", lambda s, name: played if name == "cloudformation" else real(s, name))
    monkeypatch.setattr(takeover, "_POLL_SECONDS", 0)
    return played


def table(*, streamed: bool = False) -> dict[str, RetainedTable]:
    return {"Events": RetainedTable("e", "Events", datetime(2026, 11, 1, tzinfo=UTC), 1, {}, streamed=streamed)}


@pytest.mark.parametrize("streamed", [True, False])
def test_a_table_is_taken_over_without_the_stream_that_others_have_heard_already(
    session: boto3.Session, cloudformation: CloudFormation, streamed: bool
) -> None:
    """A stream that is only believed to be there would never be made, and the deployment fail for want of it."""
    dynamodb = session.client("dynamodb")
    specification: Any = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    stream: Any = {"StreamSpecification": specification} if streamed else {}
    dynamodb.create_table(
        TableName="e",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        **stream,
    )
    adopt(session, "Troop", TEMPLATE, table(streamed=streamed))
    assert cloudformation.template["Resources"]["Events"]["Properties"] == {"TableName": "e"}
    assert not dynamodb.describe_table(TableName="e")["Table"].get("StreamSpecification", {}).get("StreamEnabled")
    assert cloudformation.deleted == []


def test_index_of_a_later_version_is_left_to_the_deployment(
    session: boto3.Session, cloudformation: CloudFormation
) -> None:
    """CloudFormation believes what it imports: the index would never be made."""
    schemas = {"": ("event_id", "HASH"), "by-time": ("kind", "HASH"), "by-unit": ("unit", "HASH")}
    keys = {name: [{"AttributeName": key, "KeyType": kind}] for name, (key, kind) in schemas.items()}
    template = {"Resources": {"Events": {"Type": "AWS::DynamoDB::Table", "Properties": {
        "KeySchema": keys[""],
        "GlobalSecondaryIndexes": [{"IndexName": name, "KeySchema": keys[name]} for name in ("by-time", "by-unit")],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key, _ in schemas.values()],
    }}}}  # fmt: skip
    has = {name: (("HASH", schemas[name][0]),) for name in ("", "by-unit")}
    adopt(session, "Troop", template, {"Events": replace(table()["Events"], schema=has)})
    properties = cloudformation.template["Resources"]["Events"]["Properties"]
    assert [index["IndexName"] for index in properties["GlobalSecondaryIndexes"]] == ["by-unit"]
    assert [one["AttributeName"] for one in properties["AttributeDefinitions"]] == ["event_id", "unit"]


def test_refused_takeover_leaves_nothing_behind(session: boto3.Session, cloudformation: CloudFormation) -> None:
    cloudformation.refuses = True
    with pytest.raises(CliError, match="cannot take over the tables: e is not there"):
        adopt(session, "Troop", TEMPLATE, table())
    assert cloudformation.deleted == [STACK_ID]


@pytest.mark.parametrize("end", ["ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_FAILED"])
def test_failed_takeover_is_deleted_after_its_rollback(
    session: boto3.Session, cloudformation: CloudFormation, end: str
) -> None:
    """What is left would pass for a deployment, and the next one begin with empty tables."""
    cloudformation.statuses = ["IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS", end]
    cloudformation.has = {"Events": "IMPORT_ROLLBACK_COMPLETE"}
    with pytest.raises(CliError, match=f"failed \\({end}\\), and nothing was deployed: Events: it throttles"):
        adopt(session, "Troop", TEMPLATE, table())
    assert (cloudformation.deleted, cloudformation.statuses) == ([STACK_ID], [])


def test_a_stack_with_something_in_it_is_never_deleted(session: boto3.Session, cloudformation: CloudFormation) -> None:
    cloudformation.has = {"Events": "IMPORT_ROLLBACK_FAILED", "Changes": "IMPORT_ROLLBACK_COMPLETE"}
    clear_away(session, STACK_ID)
    cloudformation.refuses = True
    with pytest.raises(CliError, match="cannot take over the tables"):
        adopt(session, "Troop", TEMPLATE, table())
    assert cloudformation.deleted == []


@pytest.mark.parametrize("taken", [True, False])
def test_existing_stack_is_imported_without_streams_and_then_verified(
    session: boto3.Session, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, taken: bool
) -> None:
    """Of what it does not know, `cdk import` says that it skips it, and ends well."""
    file = tmp_path / "Troop.template.json"
    synthesised = json.dumps({**TEMPLATE, "Outputs": {}})
    file.write_text(synthesised)
    seen: list[Any] = []

    def cdk(_: Any, *arguments: str, quiet: bool) -> None:
        assert quiet
        seen.append((arguments[0], json.loads(arguments[-1]), json.loads(file.read_text())))
        cloudformation.has = {"Events": "IMPORT_COMPLETE"} if taken else {}

    monkeypatch.setattr(takeover, "cdk", cdk)
    if taken:
        adopt_into(session, "Troop", tmp_path, json.loads(synthesised), table())
    else:
        with pytest.raises(CliError, match="e could not be taken over, and nothing was deployed"):
            adopt_into(session, "Troop", tmp_path, json.loads(synthesised), table())
    without = {"Resources": {"Events": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "e"}}}}
    assert seen == [("import", {"Events": {"TableName": "e"}}, {**without, "Outputs": {}})]
    assert file.read_text() == synthesised


def test_failed_import_restores_the_template_and_advises_a_retry(
    session: boto3.Session, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "Troop.template.json"
    file.write_text(json.dumps(TEMPLATE))

    def cdk(*_: Any, quiet: bool) -> None:
        raise CliError(Exit.FAILED, "cdk import failed (1)")

    monkeypatch.setattr(takeover, "cdk", cdk)
    with pytest.raises(CliError, match=r"cdk import failed \(1\): .* No data is lost: try again"):
        adopt_into(session, "Troop", tmp_path, TEMPLATE, table())
    assert json.loads(file.read_text()) == TEMPLATE
