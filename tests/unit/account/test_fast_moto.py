"""Each test has an account of its own, though its deployment is a copy, and presigned addresses are signed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import OVERDUE, Account, calls
from tests.unit.account.benches import Bench
from tests.unit.account.fast_moto import once
from tests.unit.account.market import Market
from troop.shared.aws.clients import client, presigning_client
from troop.shared.tables import CHAOS_TABLES

KEYS = [{key: {"S": "k"} for key in (table.partition, table.sort) if key} for table in CHAOS_TABLES]


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_an_account_has_nothing_of_the_one_before_it(account: Account, turn: int) -> None:
    """Each turn finds what is deployed, complete and empty, and then fills and changes all of it."""
    s3, secrets, events = client("s3"), client("secretsmanager"), client("events")
    account.unsettle()
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


makers: list[str] = []
"""The accounts that were really changed, by what was in them before."""


@pytest.mark.parametrize("before", ["one", "two"])
@pytest.mark.parametrize("turn", [1, 2])
def test_shared_step_runs_once_for_each_state_of_the_account(
    account: Account, market: Market, turn: int, before: str
) -> None:
    def make() -> str:
        makers.append(before)
        account.put("State", {"key": {"S": "after"}, "of": {"S": before}})
        account.clock.forward(minutes=1)
        market.quotas["L-1"] = 5.0
        return "answer"

    account.put("State", {"key": {"S": before}})
    assert once("made in a test", make) == "answer"
    assert makers.count(before) == 1
    assert (account.state("after")["of"], account.clock(), market.quotas["L-1"]) == (
        before,
        OVERDUE + timedelta(minutes=1),
        5.0,
    )
    account.put("State", {"key": {"S": "after"}, "of": {"S": "nobody"}})
    market.quotas.clear()


def test_shared_step_runs_each_time_while_a_test_intercepts_calls(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    with calls(monkeypatch):
        for number in range(2):
            once("answered by a test", lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == [0, 1]


flows: list[Any] = []


@pytest.mark.parametrize("turn", [1, 2])
def test_a_copied_cell_is_what_the_first_one_was(bench: Bench, turn: int) -> None:
    bench.measuring()
    launched = bench.groups(), bench.templates(), bench.account.states()
    flows.append((*launched, bench.objects(), bench.cell(), bench.roles))
    assert flows[-1] == flows[0]
    bench.lose(bench.nodes("drivers")[0])
    bench.put("one/more", {})
    bench.drop()


def test_presigned_addresses_are_signed(account: Account) -> None:
    def address(key: str) -> Any:
        return presigning_client("s3").generate_presigned_url("get_object", {"Bucket": "work-bucket", "Key": key})

    signatures = {address(key).rpartition("X-Amz-Signature=")[2] for key in ("one", "two")}
    assert len(signatures) == 2
    assert "0" * 64 not in signatures
