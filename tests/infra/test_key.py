"""With ``troop:key``, every resource that can have a key has this one, and every role may use it where it needs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from infra.keys import WITHOUT_DATA
from infra.settings import check_region, read_settings
from tests.infra.cfn import resources_of, text
from tests.infra.conftest import CONTEXT
from tests.infra.documented_policies import policy_below
from tests.infra.registry import key_properties, schema
from troop.shared.errors import SettingsError

Template = Mapping[str, Any]

KEY = "arn:aws:kms:eu-west-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
_RULE = "ServerSideEncryptionConfiguration"
ENCRYPTED = {
    "AWS::DynamoDB::Table": "SSESpecification.KMSMasterKeyId",
    "AWS::Lambda::Function": "KmsKeyArn",
    "AWS::Logs::LogGroup": "KmsKeyId",
    "AWS::S3::Bucket": f"BucketEncryption.{_RULE}.ServerSideEncryptionByDefault.KMSMasterKeyID",
    "AWS::SecretsManager::Secret": "KmsKeyId",
    "AWS::SNS::Topic": "KmsMasterKeyId",
    "AWS::SQS::Queue": "KmsMasterKeyId",
}
"""The property with the key, by type."""

LEFT = {
    "AWS::Events::EventBus": "keeps nothing: its events are also in the tables",
    "AWS::Lambda::EventSourceMapping": "its filters are in the public code",
    "AWS::Scheduler::Schedule": "its payload is the name of a calendar",
    "AWS::StepFunctions::StateMachine": "its executions hold names and ids, which the tables hold, too",
}
"""Why a type does not have it."""

PARTS_LEFT = re.compile(
    r"^Replica|Replication|^Code\.|DurableConfig|Metadata.*Configuration|ReusePeriod|Inventory|Journal"
)
"""Properties for features that the stack does not use, for public code, and for seconds."""


@pytest.fixture(scope="module")
def keyed(synthesised: Callable[..., Template]) -> Template:
    return synthesised(key=KEY, api_access_logs=True, dns_firewall=True, own_data=True, queues=True)


def kinds(template: Template) -> set[str]:
    return {one["Type"] for one in template["Resources"].values() if one["Type"].startswith("AWS::")}


def values_at(properties: Any, path: str) -> list[Any]:
    """All values at a path; a list on the way has several."""
    if isinstance(properties, list):
        return [value for one in properties for value in values_at(one, path)]
    first, _, rest = path.partition(".")
    inner = properties.get(first)
    return values_at(inner, rest) if rest and inner is not None else [inner]


def test_every_type_that_can_have_a_key_has_it_or_a_reason(keyed: Template) -> None:
    able = {kind: {one for one in key_properties(kind) if not PARTS_LEFT.search(one)} for kind in kinds(keyed)}
    assert {kind: named for kind, named in able.items() if named and kind not in LEFT} == {
        kind: {path} for kind, path in ENCRYPTED.items()
    }
    assert {kind for kind, named in able.items() if named} == ENCRYPTED.keys() | LEFT.keys()


@pytest.mark.parametrize(("kind", "path"), ENCRYPTED.items())
def test_every_resource_of_such_a_type_has_the_key(keyed: Template, kind: str, path: str) -> None:
    keys = {name: values_at(one["Properties"], path) for name, one in resources_of(keyed, kind).items()}
    assert keys
    assert {name: key for name, key in keys.items() if key != [KEY]} == {}


def services_of(statements: list[dict[str, Any]]) -> set[str]:
    actions = [one["Action"] if isinstance(one["Action"], list) else [one["Action"]] for one in statements]
    return {action.partition(":")[0] for some in actions for action in some if action not in WITHOUT_DATA}


STORES = {"dynamodb", "s3", "secretsmanager", "sns", "sqs"}


def test_every_role_may_use_the_key_only_through_the_services_that_it_uses(keyed: Template) -> None:
    for name, role in resources_of(keyed, "AWS::IAM::Role").items():
        statements = [
            one for policy in role["Properties"].get("Policies", []) for one in policy["PolicyDocument"]["Statement"]
        ]
        needed = services_of(statements) & STORES
        if "lambda.amazonaws.com" in json.dumps(role["Properties"]["AssumeRolePolicyDocument"]):
            needed |= {"lambda"}
        through = [one for one in statements if services_of([one]) == {"kms"}]
        if not needed:
            assert through == [], name
            continue
        (statement,) = through
        assert statement["Resource"] == KEY, name
        assert {"kms:Decrypt", "kms:GenerateDataKey"} <= set(statement["Action"]), name
        names = text(statement["Condition"]["StringLike"]["kms:ViaService"])
        names = [names] if isinstance(names, str) else names
        assert set(names) == {f"{one}.*" for one in needed}, name


def test_the_documented_policy_admits_each_service_that_uses_the_key_by_itself(keyed: Template) -> None:
    statements = policy_below("guides/organization.md", "## A key of your own")["Statement"]
    admitted = {one["Principal"]["Service"]: set(one["Action"]) for one in statements if "Service" in one["Principal"]}
    publishing = {
        principal
        for kind in ("AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy")
        for one in resources_of(keyed, kind).values()
        for statement in one["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
        for principal in statement["Principal"].values()
    }
    assert publishing == {"cloudwatch.amazonaws.com", "events.amazonaws.com"}
    assert admitted.keys() == publishing | {"logs.REGION.amazonaws.com", "delivery.logs.amazonaws.com"}
    for service in publishing:
        assert {"kms:Decrypt", "kms:GenerateDataKey"} <= admitted[service], service
    conditions = {one["Principal"].get("Service"): "Condition" in one for one in statements}
    assert not conditions.pop("events.amazonaws.com"), "EventBridge's requests name no source"
    assert all(limited for service, limited in conditions.items() if service)


@pytest.mark.parametrize(
    "arn",
    [
        KEY,
        "arn:aws-cn:kms:cn-north-1:111122223333:key/mrk-0123456789abcdef0123456789abcdef",
        "arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef",
    ],
)
def test_a_key_of_any_partition_is_accepted(arn: str) -> None:
    assert read_settings(CONTEXT | {"troop:key": f" {arn} "}).key == arn


@pytest.mark.parametrize(
    "wrong",
    ["alias/troop", KEY.replace("key/", "alias/"), "01234567-89ab-cdef-0123-456789abcdef", KEY + "0", 7, ["a"], True],
)
def test_value_that_is_no_key_is_refused(refused: Callable[..., str], wrong: Any) -> None:
    assert "the ARN of a KMS key in the region of the deployment, not of an alias" in refused(key=wrong)


def test_a_key_of_another_region_is_refused() -> None:
    settings = read_settings(CONTEXT | {"troop:key": KEY})
    check_region(settings, "eu-west-1")
    with pytest.raises(SettingsError, match="must be a key of us-east-1"):
        check_region(settings, "us-east-1")


@pytest.mark.parametrize(("kind", "path"), ENCRYPTED.items())
def test_a_key_can_be_set_later_without_a_replacement(kind: str, path: str) -> None:
    document = schema(kind)
    replacing = {*document.get("createOnlyProperties", ()), *document.get("conditionalCreateOnlyProperties", ())}
    assert not {name for name in replacing if name.split("/")[2] == path.partition(".")[0]}
