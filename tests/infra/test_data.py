"""Tables, bucket and salt: keys, and that data outlives what made it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.infra.cfn import resources_of, text
from tests.unit.chaos.build import FRIDAY, facts
from troop.chaos.aws.decision_table import to_item
from troop.chaos.decisions import decide_all
from troop.shared.tags import TABLE_TAG

Template = Mapping[str, Any]
TABLES = ("GroupTags", "Events", "State", "Decisions", "Changes", "Runs")


def table(template: Template, name: str) -> dict[str, Any]:
    properties: dict[str, Any] = resources_of(template, "AWS::DynamoDB::Table")[name]["Properties"]
    return properties


def keys(schema: list[dict[str, str]]) -> list[str]:
    return [key["AttributeName"] for key in sorted(schema, key=lambda key: key["KeyType"])]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("GroupTags", ["unit"]),
        ("Events", ["event_id"]),
        ("State", ["key"]),
        ("Decisions", ["unit", "tick"]),
        ("Changes", ["subject", "at"]),
        ("Runs", ["run", "item"]),
    ],
)
def test_keys(template: Template, name: str, key: list[str]) -> None:
    properties = table(template, name)
    assert keys(properties["KeySchema"]) == key
    numbers = {a["AttributeName"] for a in properties["AttributeDefinitions"] if a["AttributeType"] != "S"}
    assert numbers == ({"schema"} if name == "Changes" else set())


BY_TIME, BY_OPEN = {"by-time": ["kind", "at"]}, {"by-open": ["open", "at"]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Events", BY_TIME | BY_OPEN | {"by-unit": ["unit", "at"]}),
        ("Runs", BY_TIME | BY_OPEN | {"by-name": ["series", "at"]}),
        ("Changes", {"by-time": ["schema", "at"]}),
    ],
)
def test_indexes_list_whole_items_by_time_and_while_open(
    template: Template, name: str, expected: dict[str, list[str]]
) -> None:
    indices = {i["IndexName"]: i for i in table(template, name)["GlobalSecondaryIndexes"]}
    assert {index: keys(properties["KeySchema"]) for index, properties in indices.items()} == expected
    assert all(index["Projection"] == {"ProjectionType": "ALL"} for index in indices.values())


def test_index_lists_decisions_of_a_day_without_their_policy(template: Template) -> None:
    (index,) = table(template, "Decisions")["GlobalSecondaryIndexes"]
    assert (index["IndexName"], keys(index["KeySchema"])) == ("by-day", ["day_shard", "at"])
    assert index["Projection"]["ProjectionType"] == "INCLUDE"
    attributes = {"unit", "tick", "at", "day_shard", *index["Projection"]["NonKeyAttributes"]}
    decision = decide_all([facts()])[0]
    written = to_item(decision, FRIDAY, timedelta(days=90)).keys()
    assert written - attributes == {"schema", "expires_at", "policy"}
    assert attributes <= written


def test_decisions_and_passing_state_expire_and_nothing_else_does(template: Template) -> None:
    expiring = {name: table(template, name).get("TimeToLiveSpecification") for name in TABLES}
    assert expiring == {
        **dict.fromkeys(TABLES),
        "State": {"AttributeName": "expires_at", "Enabled": True},
        "Decisions": {"AttributeName": "expires_at", "Enabled": True},
    }


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_paid_by_request_encrypted_and_restorable(template: Template, name: str) -> None:
    properties = table(template, name)
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


POLICIES = (("AWS::S3::BucketPolicy", "WorkBucketPolicy"), ("AWS::S3::BucketPolicy", "ResultsPolicy"))
"""Without them what is left of the buckets could be read without TLS."""

STATEFUL = (
    *(("AWS::DynamoDB::Table", name) for name in TABLES),
    ("AWS::S3::Bucket", "WorkBucket"),
    ("AWS::S3::Bucket", "Results"),
    ("AWS::SecretsManager::Secret", "Salt"),
    ("AWS::Logs::LogGroup", "DecideLogs"),
    *POLICIES,
)


@pytest.mark.parametrize(("kind", "name"), STATEFUL)
def test_data_outlives_the_stack(template: Template, kind: str, name: str) -> None:
    resource = resources_of(template, kind)[name]
    assert resource["UpdateReplacePolicy"] == "Retain"
    # What a first creation has made goes when it is rolled back, but for what is protected, which cannot.
    assert resource["DeletionPolicy"] == ("Retain" if kind == "AWS::DynamoDB::Table" else "RetainExceptOnCreate")


def test_whatever_is_retained_makes_no_rollback_fail(template: Template) -> None:
    left = {r["Type"] for r in template["Resources"].values() if r.get("DeletionPolicy") == "Retain"}
    assert left == {"AWS::DynamoDB::Table"}


@pytest.mark.parametrize(("kind", "name"), STATEFUL)
def test_a_throw_away_deployment_leaves_nothing(blue: Template, kind: str, name: str) -> None:
    resource = resources_of(blue, kind)[name]
    assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Delete"


def test_tables_with_data_to_keep_refuse_deletion(template: Template, blue: Template) -> None:
    assert all(table(template, name)["DeletionProtectionEnabled"] is True for name in TABLES)
    assert not any(table(blue, name)["DeletionProtectionEnabled"] for name in TABLES)


@pytest.mark.parametrize(
    ("name", "days"), [("WorkBucket", {"ticks/": 7}), ("Results", {"runs/": 365, "artifacts/": 30, "data/": 2})]
)
def test_buckets_are_private_and_forget(template: Template, name: str, days: dict[str, int]) -> None:
    bucket = resources_of(template, "AWS::S3::Bucket")[name]["Properties"]
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    rules = bucket["LifecycleConfiguration"]["Rules"]
    assert {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules} == days
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    assert {rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] for rule in rules} == {1}
    policy = resources_of(template, "AWS::S3::BucketPolicy")[f"{name}Policy"]
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_salt_is_generated_by_the_deployment(template: Template) -> None:
    salt = resources_of(template, "AWS::SecretsManager::Secret")["Salt"]["Properties"]
    assert salt["GenerateSecretString"] == {"ExcludePunctuation": True, "PasswordLength": 64}
    assert "SecretString" not in salt


def test_the_salt_names_the_tables_of_its_stack(template: Template) -> None:
    """It outlives them: a later deployment takes over a table that it names."""
    tags = resources_of(template, "AWS::SecretsManager::Secret")["Salt"]["Properties"]["Tags"]
    named = {tag["Key"].removeprefix(TABLE_TAG): tag["Value"] for tag in tags if tag["Key"].startswith(TABLE_TAG)}
    assert {name: text(value) for name, value in named.items()} == {name: f"<{name}>" for name in TABLES}


def test_tables_with_notifications_stream_both_images(template: Template) -> None:
    both = {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert {name: table(template, name).get("StreamSpecification") for name in TABLES} == {
        **dict.fromkeys(TABLES, both),
        "Decisions": None,
        "Runs": None,
    }
