"""What `make destroy` names and takes along, and what it tries once more, with CloudFormation played by the test."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle import destroy
from lifecycle.resources import resources_of
from troop.shared.tags import DATA_TAG, DEPLOYMENT_TAG

STACK_ID = "arn:aws:cloudformation:eu-west-1:111122223333:stack/Troop/1"
Events = list[tuple[str, str, str]]
REFUSED: Events = [("Work", "work", "BucketNotEmpty"), ("Bus", "Troop", "it has rules")]


class CloudFormation:
    """A stack with a bus of two rules and a bucket that goes with it; its deletion fails as often as there are reasons.

    Attributes:
        status: of the stack.
        failures: what each deletion fails for; it succeeds when there are none left.
        meanwhile: called at each deletion.
    """

    def __init__(self) -> None:
        self.status = "UPDATE_COMPLETE"
        self.failures: list[Events] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.events: list[dict[str, str]] = []
        self.deletions = 0
        self.skipped: list[str] = []

    def get_template(self, **_: Any) -> dict[str, Any]:
        tags = [{"Key": DATA_TAG, "Value": "Events"}]
        table = {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "Properties": {"Tags": tags}}
        resources = {"Work": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Delete"}, "Events": table}
        return {"TemplateBody": json.dumps({"Resources": resources})}

    def get_paginator(self, operation: str) -> Any:
        listed = {"StackSummaries": [{"StackName": "Troop", "StackId": STACK_ID, "StackStatus": self.status}]}
        pages = {
            "list_stacks": lambda: listed,
            "list_stack_resources": self._resources,
            "describe_stack_events": lambda: {"StackEvents": self.events},
        }
        return type("Pages", (), {"paginate": lambda *_, **__: iter([pages[operation]()])})()

    def _resources(self) -> dict[str, Any]:
        kinds = {"Bus": ("AWS::Events::EventBus", "Troop"), "Work": ("AWS::S3::Bucket", "work"),
                 "Own": ("AWS::Events::Rule", "Troop|own")}  # fmt: skip
        summaries: list[dict[str, Any]] = [
            {"LogicalResourceId": key, "ResourceType": kind, "PhysicalResourceId": name, "ResourceStatus": "A"}
            for key, (kind, name) in kinds.items()
        ]
        at = datetime.now(UTC) + timedelta(minutes=1)
        retained_table = {
            "LogicalResourceId": "Events",
            "ResourceType": "AWS::DynamoDB::Table",
            "LastUpdatedTimestamp": at,
        }
        summaries += [
            retained_table | {"PhysicalResourceId": name, "ResourceStatus": "DELETE_SKIPPED"} for name in self.skipped
        ]
        return {"StackResourceSummaries": summaries}

    def delete_stack(self, StackName: str) -> None:
        assert StackName == "Troop"
        self.deletions += 1
        self.meanwhile()
        self._add("Troop", STACK_ID, "DELETE_IN_PROGRESS", "")
        reasons = self.failures.pop(0) if self.failures else []
        for logical_id, physical_id, reason in reasons:
            self._add(logical_id, physical_id, "DELETE_FAILED", reason)
        self.status = "DELETE_FAILED" if reasons else "DELETE_COMPLETE"
        self._add("Troop", STACK_ID, self.status, "the following resources failed")

    def _add(self, logical_id: str, physical_id: str, status: str, reason: str) -> None:
        event = {"LogicalResourceId": logical_id, "PhysicalResourceId": physical_id, "ResourceStatus": status}
        self.events.insert(0, event | {"ResourceStatusReason": reason})

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"StackName": "Troop", "StackId": STACK_ID, "StackStatus": self.status}]}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    played, real = CloudFormation(), aws.client
    monkeypatch.setattr(aws, "client", lambda s, name, **o: played if name == "cloudformation" else real(s, name, **o))
    monkeypatch.setattr(aws, "make_session", lambda *_: session())
    monkeypatch.setattr(aws, "account_of", lambda _: "111122223333")
    with mock_aws():
        events, s3 = session().client("events"), session().client("s3")
        events.create_event_bus(Name="Troop")
        events.put_rule(Name="own", EventBusName="Troop", EventPattern='{"source": ["troop"]}')
        s3.create_bucket(Bucket="work", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        yield played


@cache  # it takes time to read the services' descriptions
def session() -> boto3.Session:
    return boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="eu-west-1")


def run(confirm: str | None = "Troop", *, purge: bool = False) -> None:
    destroy.destroy(argparse.Namespace(deployment="Troop", stage=None, confirm=confirm, purge=purge))


def rules() -> set[str]:
    return {rule["Name"] for rule in session().client("events").list_rules(EventBusName="Troop")["Rules"]}


def test_rules_of_people_are_named_beforehand_and_go_with_the_bus(
    stack: CloudFormation, capsys: pytest.CaptureFixture[str]
) -> None:
    events, queue = session().client("events"), "arn:aws:sqs:eu-west-1:111122223333:ours"
    events.put_rule(Name="page-us", EventBusName="Troop", EventPattern='{"source": ["troop"]}')
    events.put_targets(Rule="page-us", EventBusName="Troop", Targets=[{"Id": "1", "Arn": queue}])
    with pytest.raises(CliError, match="nothing was removed"):
        run(confirm="Troup")
    assert f"page-us -> {queue}" in capsys.readouterr().out
    assert rules() == {"own", "page-us"}
    stack.meanwhile = lambda: seen.append(rules())
    seen: list[set[str]] = []
    run()
    assert seen == [{"own"}]  # CloudFormation's, and it does


def test_a_rule_of_a_service_is_left_to_what_it_is_for(stack: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bus:
        def get_paginator(self, operation: str) -> Any:
            pages = {"list_rules": {"Rules": [{"Name": "archive", "ManagedBy": "prod.vhs.events.aws.internal"}]}}
            return type("Pages", (), {"paginate": lambda *_, **__: [pages.get(operation, {"Targets": []})]})()

    played = aws.client
    monkeypatch.setattr(aws, "client", lambda s, name, **o: Bus() if name == "events" else played(s, name, **o))
    with pytest.raises(CliError, match=r"archive \(of prod.vhs.events.aws.internal\)"):
        run()
    assert stack.deletions == 0


def test_a_bucket_that_was_written_into_meanwhile_is_emptied_once_more(stack: CloudFormation) -> None:
    s3 = session().client("s3")

    def tick() -> None:
        stack.meanwhile = lambda: None
        s3.put_object(Bucket="work", Key="ticks/one.json", Body=b"[]")

    stack.meanwhile, stack.failures = tick, [REFUSED]
    run()
    assert stack.deletions == 2
    assert s3.list_objects_v2(Bucket="work")["KeyCount"] == 0


def test_a_bucket_that_went_the_first_time_holds_nothing_up(stack: CloudFormation) -> None:
    def gone() -> None:
        stack.meanwhile = lambda: None
        session().client("s3").delete_bucket(Bucket="work")

    stack.meanwhile, stack.failures = gone, [REFUSED[1:]]
    run()
    assert stack.deletions == 2


def test_second_failure_raises_the_last_reasons(stack: CloudFormation) -> None:
    stack.failures = [REFUSED, REFUSED[1:]]
    with pytest.raises(CliError, match="Bus: it has rules") as failed:
        run()
    assert "BucketNotEmpty" not in str(failed.value)
    assert stack.deletions == 2


def make_table(name: str, *, used: bool = False) -> None:
    dynamodb = session().client("dynamodb")
    tags = {DEPLOYMENT_TAG: "Troop", DATA_TAG: "Events"}
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        DeletionProtectionEnabled=True,
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )
    if used:
        dynamodb.put_item(TableName=name, Item={"k": {"S": "1"}})


@pytest.mark.parametrize(
    ("status", "left"),
    [("ROLLBACK_COMPLETE", {"Troop-used", "Troop-earlier"}),
     ("UPDATE_ROLLBACK_COMPLETE", {"Troop-empty", "Troop-used", "Troop-earlier"})],
)  # fmt: skip
def test_empty_tables_go_with_a_stack_that_never_came_up_and_with_no_other(
    stack: CloudFormation, status: str, left: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    stack.status = status
    stack.skipped = ["Troop-empty", "Troop-used"]
    make_table("Troop-empty")
    make_table("Troop-used", used=True)
    make_table("Troop-earlier")
    run()
    assert set(session().client("dynamodb").list_tables()["TableNames"]) == left
    output = capsys.readouterr().out
    assert ("Troop-empty" in output) is ("Troop-empty" not in left)
    assert ("delete-table --region eu-west-1 --table-name Troop-used" in output) is ("Troop-empty" not in left)
    assert "Troop-earlier" not in output
    assert "Events" not in resources_of(session(), "Troop"), "it is listed, but no longer the stack's"


RETAINED = {
    "Events": ("AWS::DynamoDB::Table", "Troop-Events"),
    "Results": ("AWS::S3::Bucket", "results"),
    "Salt": ("AWS::SecretsManager::Secret", "DataSalt"),
    **{f"Log{n}": ("AWS::Logs::LogGroup", f"Troop-{n:02}") for n in range(12)},
}


@pytest.fixture
def retaining(stack: CloudFormation, monkeypatch: pytest.MonkeyPatch) -> CloudFormation:
    """The same stack with a table, a bucket, a secret and twelve log groups that outlive it."""
    template = {"Resources": {name: {"Type": kind, "DeletionPolicy": "Retain"} for name, (kind, _) in RETAINED.items()}}
    monkeypatch.setattr(stack, "get_template", lambda **_: {"TemplateBody": json.dumps(template)})
    resources = [
        {"LogicalResourceId": key, "ResourceType": kind, "PhysicalResourceId": name, "ResourceStatus": "A"}
        for key, (kind, name) in RETAINED.items()
    ]
    monkeypatch.setattr(stack, "_resources", lambda: {"StackResourceSummaries": resources})
    make_table("Troop-Events", used=True)
    s3 = session().client("s3")
    s3.create_bucket(Bucket="results", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.put_bucket_versioning(Bucket="results", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="results", Key="runs/1", Body=b"one")
    s3.put_object(Bucket="results", Key="runs/1", Body=b"two")
    session().client("secretsmanager").create_secret(Name="DataSalt", SecretString="salt")
    for n in range(12):
        session().client("logs").create_log_group(logGroupName=f"Troop-{n:02}")
    return stack


def there() -> dict[str, set[str]]:
    """The names of what is in the account, by kind."""
    aws_session = session()
    return {
        "tables": set(aws_session.client("dynamodb").list_tables()["TableNames"]),
        "buckets": {bucket["Name"] for bucket in aws_session.client("s3").list_buckets()["Buckets"]} - {"work"},
        "secrets": {secret["Name"] for secret in aws_session.client("secretsmanager").list_secrets()["SecretList"]},
        "logs": {group["logGroupName"] for group in aws_session.client("logs").describe_log_groups()["logGroups"]},
    }


def test_retained_resources_are_counted_before_the_question_and_listed_with_commands_afterwards(
    retaining: CloudFormation, capsys: pytest.CaptureFixture[str]
) -> None:
    before = there()
    with pytest.raises(CliError, match="nothing was removed"):
        run(confirm="Troup")
    question = capsys.readouterr().out
    assert "12 log groups: Troop-00, " in question
    assert "1 table: Troop-Events\n" in question
    assert "aws " not in question
    assert question.count("\n") < 12
    run()
    assert "aws logs delete-log-group --region eu-west-1 --log-group-name Troop-11" in capsys.readouterr().out
    assert there() == before


def test_a_purge_deletes_what_stays_with_its_records_and_only_after_the_name(
    retaining: CloudFormation, capsys: pytest.CaptureFixture[str]
) -> None:
    before = there()
    with pytest.raises(CliError, match="nothing was removed"):
        run(confirm="Troup", purge=True)
    assert "with all records" in capsys.readouterr().out
    assert there() == before
    run(purge=True)
    assert not any(there().values())
    assert "aws " not in capsys.readouterr().out, "there is nothing left to type"


def test_a_purge_deletes_the_others_where_aws_refuses_one(
    retaining: CloudFormation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Logs:
        exceptions = type("", (), {"ResourceNotFoundException": KeyError})

        def delete_log_group(self, logGroupName: str) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteLogGroup")

    played = aws.client
    monkeypatch.setattr(aws, "client", lambda s, name, **o: Logs() if name == "logs" else played(s, name, **o))
    with pytest.raises(CliError, match="12 of what it left remain") as failed:
        run(purge=True)
    assert failed.value.code == Exit.FAILED
    output = capsys.readouterr().out
    assert "must allow logs:DeleteLogGroup" in output
    assert "aws logs delete-log-group --region eu-west-1 --log-group-name Troop-00" in output
    assert {kind for kind, names in there().items() if names} == {"logs"}


def test_a_purge_goes_on_where_somebody_was_faster(retaining: CloudFormation) -> None:
    session().client("logs").delete_log_group(logGroupName="Troop-03")
    session().client("dynamodb").update_table(TableName="Troop-Events", DeletionProtectionEnabled=False)
    session().client("dynamodb").delete_table(TableName="Troop-Events")
    run(purge=True)
    assert not any(there().values())
