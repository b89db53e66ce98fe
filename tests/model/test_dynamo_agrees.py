"""The model's DynamoDB is held against moto's: the same requests, in the same order, have the same answers."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.model import expressions
from tests.model.dynamo import Dynamo
from tests.model.replay import CONDITIONS, ITEM, SEEDS, agree_on, create_tables, replay


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    return boto3.client("dynamodb", region_name="eu-central-1")


def test_requests_of_whole_histories_are_answered_alike(client: Any) -> None:
    outcomes: set[tuple[str, str, bool]] = set()
    for seed in SEEDS:
        with mock_aws():
            create_tables(client)
            outcomes |= replay(client, seed)
    refused = {operation for operation, _, failed in outcomes if failed}
    assert refused >= {"transact_write_items"}
    assert len({text for _, text, _ in outcomes}) >= 15, "most of what Troop ever asks"


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_mean_the_same(client: Any, text: str) -> None:
    with mock_aws():
        create_tables(client)
        agree_on(client, text)


@pytest.mark.parametrize("bad", ["n == :two", "begins_with(s, :b)", "n = :two AND", "(n = :two", "n > :two"])
def test_expression_unknown_to_the_model_is_refused(bad: str) -> None:
    with pytest.raises((expressions.BadExpression, IndexError)):
        expressions.condition(bad)


def test_names_and_values_that_are_not_used_are_refused_as_by_aws() -> None:
    ours = Dynamo(lambda: 0.0, lambda: False, lambda table, old, new: None)
    for more in ({"ExpressionAttributeNames": {"#x": "x"}}, {"ExpressionAttributeValues": {":x": {"S": ""}}}):
        with pytest.raises(expressions.BadExpression):
            ours.put_item(TableName="Events", Item=ITEM, ConditionExpression="attribute_not_exists(event_id)", **more)
