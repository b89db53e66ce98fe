"""Each test has an account of its own, though its deployment is a copy, and presigned addresses are signed."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.edge.account import Account
from troop.aws.clients import client, presigning_client
from troop.tables import CHAOS_TABLES

KEYS = [{key: {"S": "k"} for key in (table.partition, table.sort) if key} for table in CHAOS_TABLES]


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_an_account_has_nothing_of_the_one_before_it(account: Account, turn: int) -> None:
    """Each turn finds what is deployed, complete and empty, and then fills and changes all of it."""
    s3, secrets, events = client("s3"), client("secretsmanager"), client("events")
    described = {t.name: account.dynamodb.describe_table(TableName=t.name)["Table"] for t in CHAOS_TABLES}
    assert account.dynamodb.list_tables()["TableNames"] == [table.name for table in CHAOS_TABLES]
    for table, key in zip(CHAOS_TABLES, KEYS, strict=True):
        description = described[table.name]
        indices = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", ())}
        assert (description["ItemCount"], indices) == (0, {index.name for index in table.indices})
        assert account.dynamodb.scan(TableName=table.name)["Items"] == []
        account.dynamodb.put_item(TableName=table.name, Item=key)
        assert account.dynamodb.scan(TableName=table.name)["Items"] == [key]
    state = described["State"]["TableArn"]
    assert account.dynamodb.list_tags_of_resource(ResourceArn=state)["Tags"] == []
    account.dynamodb.tag_resource(ResourceArn=state, Tags=[{"Key": "turn", "Value": str(turn)}])
    account.dynamodb.delete_table(TableName="Changes")

    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["work-bucket"]
    assert s3.get_bucket_location(Bucket="work-bucket")["LocationConstraint"] == "eu-central-1"
    with pytest.raises(ClientError, match="BucketAlreadyOwnedByYou"):
        s3.create_bucket(Bucket="work-bucket", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    assert "Contents" not in s3.list_objects_v2(Bucket="work-bucket")
    s3.put_object(Bucket="work-bucket", Key="object", Body=b"body")
    assert s3.get_object(Bucket="work-bucket", Key="object")["Body"].read() == b"body"

    assert secrets.get_secret_value(SecretId="Salt")["SecretString"] == "s" * 64
    secrets.put_secret_value(SecretId="Salt", SecretString="other")
    secrets.create_secret(Name="Second", SecretString="text")

    assert [bus["Name"] for bus in events.list_event_buses()["EventBuses"]] == ["default", "chaos"]
    assert events.list_rules(EventBusName="chaos")["Rules"] == []
    events.put_rule(Name="rule", EventBusName="chaos", EventPattern='{"source": ["a"]}')
    events.create_event_bus(Name="second")

    assert account.states() == {}
    account.group("web", size=1)


def test_presigned_addresses_are_signed(account: Account) -> None:
    def address(key: str) -> Any:
        return presigning_client("s3").generate_presigned_url("get_object", {"Bucket": "work-bucket", "Key": key})

    signatures = {address(key).rpartition("X-Amz-Signature=")[2] for key in ("one", "two")}
    assert len(signatures) == 2
    assert "0" * 64 not in signatures
