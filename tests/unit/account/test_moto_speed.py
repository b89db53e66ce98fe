"""moto made faster gives the answers that it gives by itself."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any

import botocore.parsers
import pytest
import xmltodict
from botocore.exceptions import ClientError
from botocore.parsers import BaseJSONParser, BaseXMLResponseParser
from botocore.utils import parse_timestamp
from moto.backend_index import backend_url_patterns
from moto.backends import get_backend
from moto.core.request import Request
from moto.core.responses import method_names_from_class
from moto.core.serialize import ResponseSerializer, XFormedAttributePicker
from moto.core.utils import get_service_model
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.exceptions import DuplicateUpdateExpression, TooManyClauses
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.parsing.executors import UpdateExpressionExecutor
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import UpdateExpressionValidator
from moto.ec2.models.instance_types import InstanceTypeOfferingBackend
from moto.ec2.responses import EC2Response
from moto.moto_api._internal import mock_random
from werkzeug.exceptions import HTTPException

from tests.unit.account.account import Account
from troop.shared.aws.clients import client


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
def test_serializer_reads_the_same_fields_as_moto(transformers: Any) -> None:
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


def _updated(expression: str, number: str = "4") -> dict[str, Any]:
    values = {":x": {"N": "1"}, ":y": {"S": "two"}}
    attributes = {"key": {"S": "k"}, "n": {"N": number}, "m": {"M": {"b": {"N": "9"}}}, "l": {"L": [{"S": "a"}]}}
    item = Item(hash_key=None, range_key=None, attrs=attributes)
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
        "l": {"L": [{"S": "a"}]},
    }
    for number, total in (("1", "2"), ("2", "3")):  # an expression that is known is evaluated again
        assert _updated("SET n = n + :x, l = list_append(l, l)", number) == {
            "key": {"S": "k"},
            "n": {"N": total},
            "m": {"M": {"b": {"N": "9"}}},
            "l": {"L": [{"S": "a"}, {"S": "a"}]},
        }
    for twice in ("SET a = :x SET b = :x", "REMOVE a SET b = :x REMOVE m", "ADD a :x REMOVE n ADD b :x"):
        with pytest.raises(TooManyClauses):
            _updated(twice)
    for overlapping in ("SET a = :x, b = :y, a = :x", "SET m.b = :x REMOVE m.b", "SET m.b = :x, m.b.c = :y"):
        with pytest.raises(DuplicateUpdateExpression):
            _updated(overlapping)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "attribute_exists(n) AND NOT n < :x",
        "(#n > :x OR m.b = :x) AND n BETWEEN :x AND :x",
        "n IN (:x, :y) AND size(l) >= :x AND begins_with(m.b, :y)",
        "((n = :x))",
        "#absent = :x",
        "n = :absent",
        "name = :x",
        "n == :x",
        "n ! :x",
    ],
)
def test_a_condition_is_parsed_and_refused_alike(text: str | None) -> None:
    item = Item(hash_key=None, range_key=None, attrs={"n": {"N": "4"}, "m": {"M": {}}, "l": {"L": [{"S": "4b"}]}})

    def outcome(parse: Callable[[Any], Any], x: str) -> Any:
        parser = ConditionExpressionParser(text, {"#n": "n"}, {":x": {"N": x}, ":y": {"S": "4"}})
        try:
            operation = parse(parser)
            verdict = operation.expr(item)
        except (ValueError, KeyError, HTTPException) as error:
            return repr(error)
        return repr(operation), verdict, parser.expr_attr_names_found, parser.expr_attr_values_found

    slow = ConditionExpressionParser.parse.__wrapped__
    for number in ("1", "9", "1", "4"):  # a condition that is known is evaluated with the values of each call
        assert outcome(ConditionExpressionParser.parse, number) == outcome(slow, number)


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
    account.unsettle()
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


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        {"@xmlns": 'a"b', "name": "<&>é", "none": None, "empty": "", "no": [], "yes": True, "number": 1.5},
        {"set": {"item": [{"a": "1"}, {}, None, "text", {"@b": "2"}, ["nested"]]}, "map": {}, "bytes": b"x"},
        {"item": {"#text": "text", "@a": "b"}, "#comment": "words"},
        {"tuple": ("a", "b"), "many": {"deep": {"deeper": [1, False, "\n"]}}},
        [{"a": "1"}, {"a": "2"}],
        [],
        "text",
        None,
        {"a name": "with a space"},
        {"fine": {"@a=b": "c"}},
        {"": "nothing"},
        {1: "a number"},
    ],
    ids=repr,
)
def test_a_document_is_the_same(content: Any, whole: bool, short: bool) -> None:
    def written(unparse: Any) -> str:
        try:
            return str(unparse({"Root": content}, full_document=whole, short_empty_elements=short, pretty=False))
        except (ValueError, TypeError) as error:
            return repr(error)

    assert written(xmltodict.unparse) == written(xmltodict.unparse.__wrapped__)


@pytest.mark.parametrize(
    "url",
    [
        "https://dynamodb.eu-central-1.amazonaws.com/",
        "http://ec2.eu-central-1.amazonaws.com/",
        "http://localhost:4566/",
        "https://s3.amazonaws.com/bucket/a%20key?list-type=2",
        "https://iam.amazonaws.com/?Action=ListRoles",
        "https://Upper.amazonaws.com/",
    ],
)
@pytest.mark.parametrize("body", [None, b"", b"Action=A&Name=%C3%A9", "text", "é"], ids=repr)
def test_a_request_is_the_same(url: str, body: Any) -> None:
    headers = {
        "Content-Type": b"application/x-www-form-urlencoded; charset=utf-8",
        "content-length": "3",
        "X-Amz-Target": b"DynamoDB_20120810.Query",
        "Transfer-Encoding": "chunked",
    }
    for sent in (headers, {}, {"X-Amz-Meta-my_key": "value"}):
        ours, plain = (make("POST", url, sent, body) for make in (Request.from_primitives, _from_primitives))
        assert (ours.raw_url, ours.data, dict(ours.form)) == (plain.raw_url, plain.data, dict(plain.form))
        assert sorted(ours.headers.items()) == sorted(plain.headers.items())
        assert {k: v for k, v in ours.environ.items() if k not in OBJECTS_OF_A_REQUEST} == {
            k: v for k, v in plain.environ.items() if k not in OBJECTS_OF_A_REQUEST
        }


_from_primitives: Any = Request.from_primitives.__wrapped__
OBJECTS_OF_A_REQUEST = ("wsgi.input", "wsgi.errors", "werkzeug.request")


def test_answers_and_errors_are_parsed_alike(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"a": "b", "c": ""})
    nested = {"m": {"M": {"k": {"L": [{"S": ""}, {"NULL": True}, {"N": "1"}, {"M": {}}]}}}, "s": {"SS": ["a", "b"]}}
    account.put("State", {"key": {"S": "k"}, **nested})
    s3 = client("s3")
    s3.put_object(Bucket="work-bucket", Key="a&b", Body=b"x", Metadata={"a": "b"})

    def answered() -> list[Any]:
        calls = (
            account.ec2.describe_instances, account.ec2.describe_security_groups, account.ec2.describe_launch_templates,
            partial(account.ec2.describe_instances, InstanceIds=["i-0"]), account.autoscaling.describe_policies,
            account.autoscaling.describe_auto_scaling_groups, partial(account.dynamodb.scan, TableName="State"),
            partial(account.dynamodb.scan, TableName="none"), account.dynamodb.list_tables,
            s3.list_buckets, *(partial(s3.list_objects_v2, Bucket=bucket) for bucket in ("work-bucket", "no")),
            partial(s3.head_object, Bucket="work-bucket", Key="a&b"), client("sts").get_caller_identity,
        )  # fmt: skip
        answers = []
        for call in calls:
            try:
                answer = call()
            except ClientError as error:
                answer = error.response
            answers.append({key: value for key, value in answer.items() if key != "ResponseMetadata"})
        return answers

    ours = answered()
    parsers: tuple[Any, ...] = (BaseXMLResponseParser, BaseJSONParser)
    for parser in parsers:
        monkeypatch.setattr(parser, "_handle_structure", parser._handle_structure.__wrapped__)
    assert answered() == ours
    assert sum("Error" in answer for answer in ours) == 3


def test_times_are_parsed_alike() -> None:
    values: list[Any] = [
        "2026-11-20T22:46:00Z",
        "2026-11-20T22:46:00+01:00",
        "Fri, 20 Nov 2026 22:46:00 GMT",
        "1.5",
        1.5,
    ]
    for value in values:
        for _ in range(2):
            assert botocore.parsers.DEFAULT_TIMESTAMP_PARSER(value) == parse_timestamp(value)


@pytest.mark.parametrize(
    ("service", "host"),
    [
        ("dynamodb", "dynamodb.eu-central-1"), ("ec2", "ec2.eu-central-1"), ("autoscaling", "autoscaling.eu-central-1"),
        ("s3", "s3"), ("s3", "bucket.s3.eu-central-1"), ("s3control", "123456789012.s3-control.eu-central-1"),
        ("dynamodbstreams", "streams.dynamodb.eu-central-1"), ("applicationautoscaling", "application-autoscaling.a-1"),
        ("ec2instanceconnect", "ec2-instance-connect.eu-central-1"), ("s3tables", "s3tables.eu-central-1"),
    ],
)  # fmt: skip
def test_an_address_belongs_to_its_service(service: str, host: str) -> None:
    address = f"https://{host}.amazonaws.com/"
    assert next(name for name, pattern in backend_url_patterns if pattern.match(address)) == service


def test_values_are_measured_and_compared_alike() -> None:
    values: list[Any] = [{"S": "a"}, {"S": "é"}, {"N": "12"}, {"N": "12.0"}, {"BOOL": True}, {"NULL": True}]
    values += [{"SS": ["a", "bc"]}, {"NS": ["1", "2.0"]}, {"B": "YQ=="}, {"L": [{"S": "é"}, {"N": "1"}]}, {"S": ""}]
    values.append({"M": {"é": {"S": "abc"}, "m": {"M": {"k": {"L": [{"S": "x"}]}}}}})
    sizes = [DynamoType(value).size() for value in values]
    assert sizes == [DynamoType.size.__wrapped__(DynamoType(value)) for value in values]
    assert sizes == [1, 2, 2, 4, 1, 1, 3, 4, 4, 3, 0, 8]
    for at, value in enumerate(values):
        equal = [other for other in values if DynamoType(other) == DynamoType(value)]
        assert equal == ([{"N": "12"}, {"N": "12.0"}] if at in (2, 3) else [value])
    assert DynamoType({"S": "10"}) < DynamoType({"S": "9"})
    assert DynamoType({"N": "9"}) < DynamoType({"N": "10"})


def test_a_copy_of_an_item_is_equal_and_shares_nothing_that_changes() -> None:
    values: dict[str, Any] = {"m": {"M": {"k": {"L": [{"S": "x"}]}}}, "s": {"SS": ["a", "b"]}, "n": {"N": "1"}}
    for range_key in (DynamoType({"S": "r"}), None):
        item = Item(DynamoType({"S": "h"}), range_key, values)
        twin = deepcopy(item)
        assert type(twin.attrs) is type(item.attrs)
        assert (twin.to_json(), twin.hash_key, twin.range_key) == (item.to_json(), item.hash_key, range_key)
        twin.attrs["m"]["k"][0].value = "changed"
        twin.attrs["m"]["other"] = DynamoType({"S": "added"})
        twin.attrs["s"].value.append("c")
        twin.attrs["n"].value = "2"
        twin.hash_key.value = "changed"
        twin.attrs["new"] = DynamoType({"S": "added"})
        assert item == Item(DynamoType({"S": "h"}), range_key, values)


def test_a_type_that_is_offered_is_the_same() -> None:
    matches = InstanceTypeOfferingBackend.matches_filters
    offering = {"InstanceType": "c7g.large", "Location": "eu-central-1"}
    for filters in ({"instance-type": ["c7g.large"]}, {"instance-type": "m5.large"}, {}, {"location": ["eu"]}):
        for more in ({}, {"location": ["us"]}):
            arguments = (InstanceTypeOfferingBackend(), offering, filters | more, "region")
            assert matches(*arguments) == matches.__wrapped__(*arguments)


def test_random_names_have_their_length_and_letters() -> None:
    name = mock_random.get_random_string(length=2000)
    assert (len(name), len(set(name))) == (2000, 62)
    assert mock_random.get_random_string(length=300, include_digits=False).isalpha()
    lower = mock_random.get_random_string(length=300, lower_case=True)
    assert lower == lower.lower()
    assert len(mock_random.get_random_string()) == 20
