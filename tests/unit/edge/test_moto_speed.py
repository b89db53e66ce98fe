"""moto made faster gives the answers that it gives by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.backends import get_backend
from moto.core.responses import method_names_from_class
from moto.core.serialize import ResponseSerializer, XFormedAttributePicker
from moto.core.utils import get_service_model
from moto.dynamodb.exceptions import DuplicateUpdateExpression, TooManyClauses
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.parsing.executors import UpdateExpressionExecutor
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import UpdateExpressionValidator
from moto.ec2.responses import EC2Response

from tests.unit.edge.account import Account


class LaunchTemplate:
    """Some of its fields are named as moto may name them: in snake case, without its own name, by another's."""

    launch_template_id = "lt-1"
    name = "by its prefix"
    create_time = None
    tags = ({"Key": "a"},)

    class Meta:
        serialization_aliases = {"CreatedBy": "author"}  # noqa: RUF012

    author = "ann"


OBJECTS: tuple[Any, ...] = (
    SimpleNamespace(LaunchTemplateId="lt-2", tag_set=[]),
    {"launchTemplateId": "lt-3", "LaunchTemplateName": None, "tagSet": [], "CreatedBy": "bert"},
    {"launch_template_id": "lt-4", "id": "lt-5"},
    {},
    "text",
    None,
    LaunchTemplate(),
)


@pytest.mark.parametrize(
    "transformers",
    [
        None,
        {"LaunchTemplateId": str.upper},
        {"TemplateId": str.upper, "LaunchTemplateId": str.title},
        {"Elsewhere.LaunchTemplateId": str.title, "Set.Launch.LaunchTemplateId": str.upper},
        {"unch.LaunchTemplateId": str.upper},
        {"A.Set.Launch.LaunchTemplateId": str.upper, "Set.CreatedBy": str.upper},
    ],
    ids=lambda transformers: " and ".join(transformers or ["none"]),
)
def test_fields_are_found_under_the_same_names(transformers: Any) -> None:
    operation = get_service_model("ec2").operation_model("DescribeLaunchTemplates")
    picker = XFormedAttributePicker(response_transformers=transformers)
    serializer = type("Any", (ResponseSerializer,), {})(operation, value_picker=picker)
    serializer.path = ["Set", "Launch"]
    alone = ResponseSerializer.get_value.__wrapped__
    shape: Any = operation.output_shape.members["LaunchTemplates"].member
    answers = set()
    for _ in range(2):  # what was found out, and what is remembered
        for key, member in shape.members.items():
            member.parent = shape
            for thing in OBJECTS:
                try:
                    expected = alone(serializer, thing, key, member)
                except TypeError as error:
                    expected = str(error)
                try:
                    answered = serializer.get_value(thing, key, member)
                except TypeError as error:
                    answered = str(error)
                assert answered == expected, (thing, key)
                answers.add(str(answered))
    assert {"bert", "by its prefix", "ann"} <= answers
    assert answers & {"lt-1", "LT-1"}


def _updated(expression: str) -> dict[str, Any]:
    values = {":x": {"N": "1"}, ":y": {"S": "two"}}
    item = Item(
        hash_key=None, range_key=None, attrs={"key": {"S": "k"}, "n": {"N": "4"}, "m": {"M": {"b": {"N": "9"}}}}
    )
    ast = UpdateExpressionParser.make(expression)
    table: Any = SimpleNamespace(table_key_attrs=["key"], attr=[], attribute_keys=["key"])
    checked = UpdateExpressionValidator(ast, {"#n": "n"}, values, item, table).validate()
    UpdateExpressionExecutor(checked, item, {"#n": "n"}).execute()
    return dict(item.to_json()["Attributes"])


def test_expressions_are_evaluated_and_refused_alike() -> None:
    assert _updated("SET #n = #n + :x, added = if_not_exists(absent, :y) REMOVE m.b") == {
        "key": {"S": "k"},
        "n": {"N": "5"},
        "added": {"S": "two"},
        "m": {"M": {}},
    }
    for twice in ("SET a = :x SET b = :x", "REMOVE a SET b = :x REMOVE m", "ADD a :x REMOVE n ADD b :x"):
        with pytest.raises(TooManyClauses):
            _updated(twice)
    for overlapping in ("SET a = :x, b = :y, a = :x", "SET m.b = :x REMOVE m.b", "SET m.b = :x, m.b.c = :y"):
        with pytest.raises(DuplicateUpdateExpression):
            _updated(overlapping)


def test_the_functions_of_a_class_are_all_known() -> None:
    assert {"describe_instances", "create_launch_template"} <= set(method_names_from_class(EC2Response))


@pytest.mark.parametrize("service", ["s3", "dynamodb", "ec2"])
def test_a_service_has_the_same_addresses(service: str) -> None:
    backend: Any = get_backend(service)["123456789012"]["eu-central-1" if service != "s3" else "aws"]
    urls = backend.urls
    assert backend.urls is urls, "they are kept"
    bases = backend.url_bases
    assert {path.format(base) for base in bases for path in backend._url_module.url_paths} <= set(urls)


def test_a_transaction_that_fails_leaves_every_table_as_it_was(account: Account) -> None:
    """After items of two tables have been written, of one of them twice."""
    for table, key in (("State", "key"), ("GroupTags", "unit")):
        account.dynamodb.put_item(TableName=table, Item={key: {"S": "old"}, "n": {"N": "1"}})

    def put(table: str, key: str, name: str) -> dict[str, Any]:
        return {"Put": {"TableName": table, "Item": {key: {"S": name}, "n": {"N": "2"}}}}

    writes = [put("State", "key", "old"), put("GroupTags", "unit", "old"), put("State", "key", "new")]
    refused = put("GroupTags", "unit", "other")
    refused["Put"]["ConditionExpression"] = "attribute_exists(n)"
    for _ in range(2):
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            account.dynamodb.transact_write_items(TransactItems=[*writes, refused])
        for table in ("State", "GroupTags"):
            (item,) = account.dynamodb.scan(TableName=table)["Items"]
            assert item["n"] == {"N": "1"}
    account.dynamodb.transact_write_items(TransactItems=writes)
    assert account.dynamodb.scan(TableName="State")["Count"] == 2
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        account.dynamodb.transact_write_items(TransactItems=[put("State", "key", "third"), refused])
    assert account.dynamodb.scan(TableName="State")["Count"] == 2
