"""From the tables to those who listen: streams, filters, retries, and the topic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from infra import notifications_doc
from tests.infra.cfn import resources_of, text
from troop.chaos.events import Status
from troop.chaos.notifications import Kind

Template = Mapping[str, Any]

STREAMED = ("Events", "Changes", "GroupTags", "State")


def mapping(template: Template, name: str) -> dict[str, Any]:
    properties: dict[str, Any] = text(
        resources_of(template, "AWS::Lambda::EventSourceMapping")[f"Notifications{name}"]["Properties"]
    )
    return properties


def patterns(template: Template, name: str) -> list[Any]:
    criteria = mapping(template, name).get("FilterCriteria", {"Filters": []})
    return [json.loads(entry["Pattern"]) for entry in criteria["Filters"]]


@pytest.mark.parametrize("name", STREAMED)
def test_a_record_is_tried_again_and_then_set_aside(template: Template, name: str) -> None:
    properties = mapping(template, name)
    properties.pop("FilterCriteria", None)
    assert properties == {
        "FunctionName": "<Notify>",
        "EventSourceArn": f"<{name}.StreamArn>",
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 10,
        "BisectBatchOnFunctionError": True,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "MaximumRetryAttempts": 20,
        "MaximumRecordAgeInSeconds": 6 * 3600,
        "DestinationConfig": {"OnFailure": {"Destination": "<NotificationsUndelivered.Arn>"}},
    }


def test_nothing_else_is_read(template: Template) -> None:
    assert set(resources_of(template, "AWS::Lambda::EventSourceMapping")) == {
        f"Notifications{name}" for name in STREAMED
    }


def record(old: str | None, new: str) -> dict[str, Any]:
    images = {"NewImage": {"status": {"S": new}}} | ({"OldImage": {"status": {"S": old}}} if old else {})
    return {"eventName": "MODIFY" if old else "INSERT", "dynamodb": images}


def matches(pattern: Any, content: Any) -> bool:
    """Lambda's filter, as far as it is used: every key of the pattern, and one value or prefix of each list."""
    if isinstance(pattern, list):
        prefixes = [one["prefix"] for one in pattern if isinstance(one, dict)]
        return content in pattern or any(str(content).startswith(prefix) for prefix in prefixes)
    return isinstance(content, dict) and all(matches(inner, content.get(key)) for key, inner in pattern.items())


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        (None, "CLAIMED", False),
        (None, "LEASHED", False),
        ("LEASHED", "CLAIMED", False),
        ("CLAIMED", "CLAIMED", False),  # an attempt
        ("CLAIMED", "TERMINATED", True),
        ("TERMINATED", "TERMINATED", False),  # a look
        ("TERMINATED", "RECOVERED", True),
        ("TERMINATED", "UNRECOVERED", True),
        ("TERMINATED", "GROUP_DELETED", True),
        ("CLAIMED", "ABANDONED", True),
        ("CLAIMED", "GONE_ELSEWHERE", True),
        ("CLAIMED", "RUNNING", True),
        ("RUNNING", "RUNNING", True),  # a proof, a request to end, or none of them
        ("RUNNING", "RECOVERED", True),
    ],
)
def test_only_steps_with_notifications_invoke_the_function(
    template: Template, old: str | None, new: str, passes: bool
) -> None:
    assert {old or new, new} <= set(Status)
    assert any(matches(pattern, record(old, new)) for pattern in patterns(template, "Events")) is passes


@pytest.mark.parametrize(
    ("status", "verdict", "passes"),
    [
        ("RECOVERED", "BROKEN", True),
        ("RECOVERED", "HELD", False),
        ("RECOVERED", None, False),  # a token
        ("TERMINATED", "BROKEN", False),  # no such write
    ],
)
def test_a_broken_verdict_after_the_recovery_invokes_the_function(
    template: Template, status: str, verdict: str | None, passes: bool
) -> None:
    judged = record(status, status)
    if verdict:
        judged["dynamodb"]["NewImage"]["verdict"] = {"M": {"value": {"S": verdict}}}
    assert any(matches(pattern, judged) for pattern in patterns(template, "Events")) is passes


def test_only_switch_halt_and_changes_of_the_state_invoke_the_function(template: Template) -> None:
    (pattern,) = patterns(template, "State")
    for key, passes in (
        *(("switch", True), ("self-halt", True), ("change-point#0f", True)),
        *(("in-flight", False), ("unit#switch", False), ("unit#change-point#", False)),
    ):
        assert matches(pattern, {"dynamodb": {"Keys": {"key": {"S": key}}}}) is passes


def test_the_topic_is_encrypted_and_takes_nothing_unencrypted(template: Template) -> None:
    topics = resources_of(template, "AWS::SNS::Topic")
    assert set(topics) == {"AlarmsActNow", "AlarmsWarning", "NotificationsNews"}
    assert topics["NotificationsNews"]["Properties"]["KmsMasterKeyId"] == "alias/aws/sns"
    policy = resources_of(template, "AWS::SNS::TopicPolicy")["NotificationsNewsPolicy"]["Properties"]
    assert text(policy["Topics"]) == ["<NotificationsNews>"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert text(template["Outputs"]["NewsTopicArn"]["Value"]) == "<NotificationsNews>"


def test_the_document_is_current() -> None:
    document = notifications_doc.PATH.read_text(encoding="utf-8")
    assert notifications_doc.text(document) == document, "run: make openapi"


def test_examples_in_the_document_have_every_kind_and_only_documented_fields() -> None:
    schema = jsonschema_rs.validator_for(json.loads(notifications_doc.SCHEMA.read_text(encoding="utf-8")))
    examples = {one.kind: one.detail for one in notifications_doc.examples()}
    assert set(examples) == set(Kind)
    for detail in examples.values():
        schema.validate(detail)
    names = {name.strip("`") for name, _, _ in notifications_doc.fields()}
    assert {field for detail in examples.values() for field in detail} == names
    assert all(meaning for _, _, meaning in notifications_doc.fields())
    shown = "".join(re.findall(r"```json\n(.*?)```", notifications_doc.PATH.read_text(encoding="utf-8"), re.DOTALL))
    assert [name for name in names if f'"{name}"' not in shown] == []
