"""The requests for a fleet's queue: who can reach it, where its endpoint is, and how tasks are sent."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition import names
from troop.bench.definition.living import Queue
from troop.bench.fleets.fleet_requests import LaunchImpossibleError, Subnet
from troop.bench.fleets.queue_requests import (
    AT_ONCE,
    MOST_BYTES,
    WORKER_ACTIONS,
    EndpointService,
    Site,
    Task,
    batches,
    endpoint_request,
    endpoint_subnets,
    only_from,
    queue_arns,
    queue_attributes,
    queue_policy,
    service_names,
)

RUN, CELL = "20261121-150312-1f0c9b2e", "c001"
PROFILE = "arn:aws-cn:iam::123456789012:instance-profile/nodes"
OWN, DEAD = queue_arns(RUN, CELL, "cn-north-1", PROFILE)
SUBNETS = [Subnet(f"subnet-{zone}{number}", f"cn-north-1{zone}") for zone in "abc" for number in (2, 1)]
TAGS = {"troop:deployment": "Troop", "troop:run": RUN, "troop:cell": CELL}


def _service(*zones: str) -> EndpointService:
    return EndpointService("cn.com.amazonaws.cn-north-1.sqs", frozenset(zones), "sqs.cn-north-1.amazonaws.com.cn")


def test_arns_are_those_of_the_account_and_its_partition() -> None:
    assert f"arn:aws-cn:sqs:cn-north-1:123456789012:{names.queue_name(RUN, CELL)}" == OWN
    assert f"arn:aws-cn:sqs:cn-north-1:123456789012:{names.dead_queue_name(RUN, CELL)}" == DEAD


def test_every_generated_queue_matches_the_patterns_that_find_and_allow_it() -> None:
    for arn, pattern in zip((OWN, DEAD), names.QUEUES, strict=True):
        name = arn.rpartition(":")[2]
        assert names.QUEUE.fullmatch(name)
        assert fnmatchcase(name, pattern)
    assert not fnmatchcase(names.dead_queue_name(RUN, CELL), names.QUEUES[0]), "workers read no dead letters"


def test_an_endpoint_has_a_subnet_in_each_zone_of_the_fleet_that_offers_it() -> None:
    used = ["subnet-a1", "subnet-a2", "subnet-b1", "subnet-c2"]
    assert endpoint_subnets(_service("cn-north-1a", "cn-north-1b"), SUBNETS, used) == ["subnet-a1", "subnet-b1"]
    assert endpoint_subnets(_service("cn-north-1a", "cn-north-1c"), SUBNETS, used) == ["subnet-a1", "subnet-c2"]


def test_a_fleet_outside_the_zones_of_the_service_is_refused_with_them() -> None:
    with pytest.raises(LaunchImpossibleError, match=r"offers .* in cn-north-1a, but not in cn-north-1b, the fleet's"):
        endpoint_subnets(_service("cn-north-1a"), SUBNETS, ["subnet-b1"])


def test_an_endpoint_leads_workers_to_one_queue_and_to_nothing_else() -> None:
    request = endpoint_request("name", Site(_service(), "vpc-1", ["subnet-a1"]), "sg-1", OWN, TAGS)
    (statement,) = json.loads(request["PolicyDocument"])["Statement"]
    assert (statement["Effect"], statement["Resource"]) == ("Allow", OWN)
    assert set(statement["Action"]) == set(WORKER_ACTIONS)
    assert request["SecurityGroupIds"] == ["sg-1"]
    assert request["PrivateDnsEnabled"] is False, "two fleets of a network could not both have the name"
    assert request["ClientToken"] == "name"
    assert {"Key": "Name", "Value": "name"} in request["TagSpecifications"][0]["Tags"]


def _denied(policy: str, action: str, **keys: str) -> bool:
    """Whether a policy's denials concern a request with these keys of its context."""

    def holds(operator: str, key: str, value: str) -> bool:
        actual = keys.get(key.partition(":")[2])
        if operator == "Null":
            return (actual is None) == (value == "true")
        if operator == "StringNotEquals":
            return actual != value
        return operator == "Bool" and actual == value

    def concerns(statement: dict[str, Any]) -> bool:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        conditions = [(o, k, v) for o, pairs in statement["Condition"].items() for k, v in pairs.items()]
        return any(fnmatchcase(action, one) for one in actions) and all(holds(*one) for one in conditions)

    statements = json.loads(policy)["Statement"]
    assert {one["Effect"] for one in statements} == {"Deny"}, "it gives nobody a permission"
    return any(map(concerns, statements))


@pytest.mark.parametrize(
    ("action", "keys", "is_denied"),
    [
        ("sqs:ReceiveMessage", {"SourceVpce": "vpce-own", "SecureTransport": "true"}, False),
        *((action, {"SourceVpce": "vpce-other", "SecureTransport": "true"}, True) for action in WORKER_ACTIONS),
        ("sqs:ReceiveMessage", {"SecureTransport": "true"}, False),  # people of the account; nodes need an endpoint
        ("sqs:SendMessage", {"SourceVpce": "vpce-other", "SecureTransport": "true"}, False),
        ("sqs:SendMessage", {"SecureTransport": "false"}, True),
        ("sqs:ReceiveMessage", {"SourceVpce": "vpce-own", "SecureTransport": "false"}, True),
    ],
)
def test_a_queue_serves_no_worker_through_another_endpoint(action: str, keys: dict[str, str], is_denied: bool) -> None:
    assert _denied(queue_policy(OWN, "vpce-own"), action, **keys) == is_denied


def test_a_queue_keeps_tasks_long_and_sends_failures_to_the_dead_letters() -> None:
    attributes = queue_attributes(OWN, Queue(lease=600, tries=3), "vpce-own", DEAD, None)
    assert attributes["VisibilityTimeout"] == "600"
    assert attributes["MessageRetentionPeriod"] == "1209600"
    assert json.loads(attributes["RedrivePolicy"]) == {"deadLetterTargetArn": DEAD, "maxReceiveCount": 3}
    assert "RedrivePolicy" not in queue_attributes(DEAD, Queue(), "vpce-own", None, None)
    allowed = json.loads(only_from(OWN)["RedriveAllowPolicy"])
    assert allowed == {"redrivePermission": "byQueue", "sourceQueueArns": [OWN]}


@pytest.mark.parametrize("key", [None, "arn:aws:kms:us-east-1:111122223333:key/1"])
def test_a_queue_is_encrypted_with_the_deployments_key_or_one_of_sqs(key: str | None) -> None:
    attributes = queue_attributes(OWN, Queue(), "vpce-own", DEAD, key)
    assert attributes.get("KmsMasterKeyId") == key
    assert attributes.get("SqsManagedSseEnabled") == (None if key else "true")


def test_the_service_has_one_of_two_names() -> None:
    assert service_names("us-gov-west-1")[0] == "com.amazonaws.us-gov-west-1.sqs"
    assert service_names("cn-north-1")[1] == "cn.com.amazonaws.cn-north-1.sqs"


@given(st.lists(st.builds(Task, st.text("ab", min_size=1, max_size=3), st.sampled_from(["", "x" * 60_000, "y" * 9]))))
def test_batches_keep_the_order_and_the_limits_of_sqs(tasks: list[Task]) -> None:
    sent = list(batches(tasks, Task.size, AT_ONCE, MOST_BYTES))
    assert [task for batch in sent for task in batch] == tasks
    for batch in sent:
        assert 1 <= len(batch) <= AT_ONCE
        assert sum(len(task.message.encode()) for task in batch) <= MOST_BYTES


@given(st.text(st.characters(), max_size=20))
def test_every_body_survives_the_queue_in_characters_that_sqs_accepts(body: str) -> None:
    message = Task("a", body).message
    assert json.loads(message) == {"id": "a", "body": body}
    allowed = {"\t", "\n", "\r"}
    assert [
        char
        for char in message
        if not (char in allowed or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000")
    ] == []
