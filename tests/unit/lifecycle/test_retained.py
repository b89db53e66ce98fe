"""Which tables of earlier deployments are found and taken, and which are refused."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from cli.shared.errors import CliError, Exit
from lifecycle.retained import RetainedTable, accept, choose, decline, find_retained, imports, refuse_shared, used
from tests.unit.account.account import calls, refusing
from troop.shared.tags import DATA_TAG, DECLINED_TAG, DEPLOYMENT_TAG

KEY = {"": (("HASH", "event_id"),), "by-time": (("HASH", "kind"), ("RANGE", "at"))}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "DataEventsB3DA": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "KeySchema": [{"AttributeName": "event_id", "KeyType": "HASH"}],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-time",
                        "KeySchema": [
                            {"AttributeName": "kind", "KeyType": "HASH"},
                            {"AttributeName": "at", "KeyType": "RANGE"},
                        ],
                    }
                ],
                "Tags": [{"Key": DATA_TAG, "Value": "Events"}],
            },
        },
        "SomethingElse": {"Type": "AWS::S3::Bucket"},
    }
}


def table(name: str, part: str = "Events", day: int = 1, schema: Any = None, stack: str = "") -> RetainedTable:
    moment = datetime(2026, 11, day, tzinfo=UTC)
    return RetainedTable(name, part, moment, 7, KEY if schema is None else schema, stacks=(stack,) if stack else ())


def make(session: boto3.Session, name: str, **tags: str) -> None:
    session.client("dynamodb").create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "unit", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "unit", "KeyType": "HASH"}],
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )


def test_a_table_that_cannot_be_read_counts_as_one_with_items(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(session, "Troop-DataState1-X", **{DEPLOYMENT_TAG: "Troop", DATA_TAG: "State"})
    with calls(monkeypatch, refusing("Scan", "ValidationException")):  # its key is disabled
        (retained_table,) = find_retained(session, "Troop")
    assert not retained_table.empty


def test_tables_are_known_by_their_tags(session: boto3.Session) -> None:
    make(session, "Troop-DataGroupTags1-X", **{DEPLOYMENT_TAG: "Troop", DATA_TAG: "GroupTags"})
    make(session, "Troop-Staging-DataGroupTags1-X", **{DEPLOYMENT_TAG: "Troop-Staging", DATA_TAG: "GroupTags"})
    make(session, "Troop-mine", owner="me")
    make(session, "Other", **{DEPLOYMENT_TAG: "Troop", DATA_TAG: "GroupTags"})
    (retained_table,) = find_retained(session, "Troop")
    assert (retained_table.name, retained_table.part) == ("Troop-DataGroupTags1-X", "GroupTags")
    assert retained_table.schema == {"": (("HASH", "unit"),)}
    assert find_retained(session, "Nobodys") == []


def test_newest_of_several_tables_is_chosen_only_on_request() -> None:
    tables = [table("new", day=2), table("s", "State"), table("old")]
    with pytest.raises(CliError) as refused:
        choose(tables, newest=False)
    assert refused.value.code == Exit.USAGE
    for text in ("Events: new, created 2026-11-02", "Events: old, created 2026-11-01", "ADOPT=newest", "ADOPT=none"):
        assert text in str(refused.value)
    assert choose(tables, newest=True)["Events"].name == "new"


def test_tables_are_matched_to_the_template() -> None:
    """Whatever further indices they have."""
    events = table("e", schema=KEY | {"mine": (("HASH", "x"),)})
    assert imports(TEMPLATE, {"Events": events, "Gone": table("g", "Gone")}) == {"DataEventsB3DA": events}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [(KEY | {"": (("HASH", "id"),)}, "its key"), (KEY | {"by-time": ()}, "by-time")],
)
def test_a_table_that_does_not_fit_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(CliError, match=f"table e does not fit this version \\({problem}\\)"):
        imports(TEMPLATE, {"Events": table("e", schema=schema)})


@pytest.mark.parametrize(("lacking", "fits"), [(1, True), (2, False)])
def test_table_may_lack_one_index_which_the_deployment_creates(lacking: int, fits: bool) -> None:
    """An update of a table creates one index at most."""
    template = copy.deepcopy(TEMPLATE)
    indices = template["Resources"]["DataEventsB3DA"]["Properties"]["GlobalSecondaryIndexes"]
    indices += [{**indices[0], "IndexName": f"later-{number}"} for number in range(lacking)]
    with nullcontext() if fits else pytest.raises(CliError, match="does not fit this version \\(later-1\\)"):
        assert imports(template, {"Events": table("e")}) == {"DataEventsB3DA": table("e")}


def test_a_stream_is_seen(session: boto3.Session) -> None:
    make(session, "Troop-a", **{DEPLOYMENT_TAG: "Troop", DATA_TAG: "GroupTags"})
    make(session, "Troop-b", **{DEPLOYMENT_TAG: "Troop", DATA_TAG: "State"})
    session.client("dynamodb").update_table(
        TableName="Troop-b", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    )
    assert {retained_table.name: retained_table.streamed for retained_table in find_retained(session, "Troop")} == {
        "Troop-a": False,
        "Troop-b": True,
    }


def test_table_is_empty_only_without_items(session: boto3.Session) -> None:
    tags = {DEPLOYMENT_TAG: "Troop", DATA_TAG: "GroupTags"}
    make(session, "Troop-a", **tags)
    make(session, "Troop-b", **tags, **{DECLINED_TAG: "yes"})
    session.client("dynamodb").put_item(TableName="Troop-a", Item={"unit": {"S": "web"}})
    tables = {table.name: (table.empty, table.declined) for table in find_retained(session, "Troop")}
    assert tables == {"Troop-a": (False, False), "Troop-b": (True, True)}


def test_tables_are_declined_and_accepted_again(session: boto3.Session) -> None:
    make(session, "Troop-a", **{DEPLOYMENT_TAG: "Troop", DATA_TAG: "GroupTags"})
    decline(session, find_retained(session, "Troop"))
    (declined,) = find_retained(session, "Troop")
    assert declined.declined
    accept(session, [declined])
    (accepted,) = find_retained(session, "Troop")
    assert not accepted.declined


def test_a_table_with_a_policy_of_its_own_is_refused(session: boto3.Session) -> None:
    dynamodb = session.client("dynamodb")
    for name in ("Troop-a", "Troop-b"):
        make(session, name, **{DEPLOYMENT_TAG: "Troop", DATA_TAG: name})
    tables = find_retained(session, "Troop")
    refuse_shared(session, tables)
    arn = dynamodb.describe_table(TableName="Troop-b")["Table"]["TableArn"]
    dynamodb.put_resource_policy(ResourceArn=arn, Policy='{"Version": "2012-10-17", "Statement": []}')
    with pytest.raises(CliError, match=f"--resource-arn {arn}") as refused:
        refuse_shared(session, tables)
    assert "Troop-a" not in str(refused.value)


def test_tables_of_a_failed_creation_are_not_the_data(session: boto3.Session) -> None:
    """Neither is it newer data, nor does it make anybody choose; an empty table beside full ones is taken over."""
    wreck = [replace(table(f"wreck-{part}", part, day=3), empty=True, stacks=("2",)) for part in ("Events", "Changes")]
    data = [table("events", stack="1"), replace(table("changes", "Changes", stack="1"), empty=True)]
    assert used([*wreck, *data]) == data
    assert choose(used([*wreck, *data]), newest=False) == {"Events": data[0], "Changes": data[1]}
    assert used(wreck) == []
    again = [replace(data[0], stacks=("1", "3")), data[1]]
    assert used(again) == again, "the stack that took one of them over left the other one where it was"
    assert used([table("planted"), replace(table("p", "Changes"), empty=True)]) == []
