"""What exists only with faults inside instances: the probe's document, events, streams, and the backstops' group."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest
from botocore.session import get_session

from infra import ROOT
from infra.injections import STATES, UNFINISHED, probe_document
from infra.machines import reduced
from tests.infra.cfn import permissions, resources_of, text
from tests.infra.registry import schema
from tests.infra.test_notifications import matches
from tests.machines import asl
from troop import faults
from troop.chaos.flows.injector import REPAIR
from troop.chaos.probe import BUDGET
from troop.faults.crash import CRASH
from troop.faults.kill import KILL

Template = Mapping[str, Any]

MORE = {
    "AWS::CloudWatch::Alarm": 1,
    "AWS::Events::Rule": 1,
    "AWS::IAM::Policy": 1,
    "AWS::IAM::Role": 3,
    "AWS::Lambda::EventInvokeConfig": 1,
    "AWS::Lambda::EventSourceMapping": 2,
    "AWS::Lambda::Function": 1,
    "AWS::Lambda::Permission": 2,
    "AWS::Logs::LogGroup": 1,
    "AWS::SSM::Document": 1,
    "AWS::Scheduler::Schedule": 1,
    "AWS::Scheduler::ScheduleGroup": 1,
}
PATTERN_CHARACTERS, RULES_OF_A_BUS = 2048, 300
READERS_OF_A_STREAM = 2
"""Reading from more would throttle: "Using AWS Lambda with Amazon DynamoDB", of the same shard."""

DOCUMENT_BYTES = 64 * 1024


def test_without_the_setting_there_is_nothing_more_than_before(template: Template, inside: Template) -> None:
    def kinds(variant: Template) -> Counter[str]:
        return Counter(resource["Type"] for resource in variant["Resources"].values())

    assert kinds(inside) - kinds(template) == MORE
    assert kinds(template) - kinds(inside) == Counter()
    assert "Inject" not in json.dumps(template["Resources"])
    for role in resources_of(template, "AWS::IAM::Role"):
        assert not [grant for grant in permissions(template, role) if grant[1].startswith("ssm:Send")], role
        assert not [grant for grant in permissions(template, role) if grant[1] == "ssm:DescribeInstanceInformation"]


@pytest.mark.parametrize("machine", ["chaos", "on_demand"])
def test_without_the_setting_the_workflow_is_whole_without_its_states(machine: str) -> None:
    whole = asl.load(asl.ROOT / "statemachines" / f"{machine}.asl.json")
    left = reduced(whole, STATES)
    before, after = dict(asl.states(whole)), dict(asl.states(left))
    assert {name.split("/")[-1] for name in before.keys() - after.keys()} == set(STATES)
    for level in asl.levels(left):
        assert asl.reached(level.start, level.states) == set(level.states), "each state follows from another"
    changed = {name for name, state in after.items() if state != before[name] and "ItemProcessor" not in state}
    assert {name.split("/")[-1] for name in changed} == {"WhatIsNext"}


def document(template: Template) -> dict[str, Any]:
    (resource,) = resources_of(template, "AWS::SSM::Document").values()
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_the_registry_accepts_the_document(inside: Template) -> None:
    registered = schema("AWS::SSM::Document")
    parts = {key: registered[key] for key in ("properties", "definitions", "required", "additionalProperties")}
    validator = jsonschema_rs.validator_for({"type": "object", **parts})
    validator.validate(document(inside))
    assert not validator.is_valid({**document(inside), "DocumentType": "Commands"}), "the schema would find a fault"


def test_the_document_runs_the_script_and_nothing_else(inside: Template) -> None:
    properties = document(inside)
    assert (properties["DocumentType"], properties["DocumentFormat"]) == ("Command", "JSON")
    assert properties["TargetType"] == "/AWS::EC2::Instance"
    assert properties["UpdateMethod"] == "Replace", "a new version may not become the default one"
    content = properties["Content"]
    assert content == probe_document()
    assert content["schemaVersion"] == "2.2"
    assert len(json.dumps(content)) < DOCUMENT_BYTES / 4
    (step,) = content["mainSteps"]
    assert step["action"] == "aws:runShellScript"
    assert step["inputs"]["timeoutSeconds"] == str(int(BUDGET.total_seconds()))
    script = (ROOT / "infra" / "probe.sh").read_text(encoding="utf-8")
    assert "\n".join(step["inputs"]["runCommand"]) + "\n" == script


def test_parameters_stand_in_the_script_where_their_patterns_allow_nothing_to_be_interpreted() -> None:
    content = probe_document()
    script = "\n".join(content["mainSteps"][0]["inputs"]["runCommand"])
    placeholders = re.findall(r"\{\{(.*?)\}\}", script)
    assert sorted(placeholders) == sorted(content["parameters"])
    assert all(f"'{{{{{name}}}}}'" in script for name in placeholders), "each between quotes"


@pytest.mark.parametrize(
    ("name", "value", "passes"),
    [
        ("Token", "0123456789abcdef" * 2, True),
        ("Token", "0123456789ABCDEF" * 2, False),
        ("Token", "0123456789abcdef" * 2 + "0", False),
        ("Token", "", False),
        ("Process", "", True),
        ("Process", "nginx", True),
        ("Process", "php-fpm8.3", True),
        ("Process", "a" * 16, False),
        ("Process", "a b", False),
        ("Process", "a'; reboot; '", False),
        ("Process", "$(reboot)", False),
    ],
)
def test_a_parameter_is_what_troop_sends_and_no_command(name: str, value: str, passes: bool) -> None:
    pattern = probe_document()["parameters"][name]["allowedPattern"]
    assert bool(re.search(pattern, value)) is passes
    parameter = next(one for one in KILL.parameters if one.name == "process")
    if name == "Process" and value:
        assert parameter.values.accepts(value) is passes, "owners can name what the probe can count"


def rule(template: Template, name: str) -> dict[str, Any]:
    properties: dict[str, Any] = text(resources_of(template, "AWS::Events::Rule")[f"Hearing{name}"]["Properties"])
    return properties


def test_the_end_of_a_command_of_ours_is_heard(inside: Template) -> None:
    pattern = rule(inside, "Commands")["EventPattern"]
    assert (pattern["account"], pattern["region"]) == (["<AWS::AccountId>"], ["<AWS::Region>"])
    assert pattern["source"] == ["aws.ssm"]
    assert pattern["detail-type"] == ["EC2 Command Invocation Status-change Notification"]
    documents = [fault.document for fault in faults.LASTING]
    assert pattern["detail"]["document-name"] == [*documents, "<InjectionsProbe>"]
    assert len(json.dumps(pattern)) < PATTERN_CHARACTERS / 2


def test_no_status_that_is_final_is_left_out(inside: Template) -> None:
    (rest,) = rule(inside, "Commands")["EventPattern"]["detail"]["status"]
    assert rest == {"anything-but": list(UNFINISHED)}
    known: Any = get_session().get_service_model("ssm").shape_for("CommandInvocationStatus")
    assert set(known.enum) - set(UNFINISHED) == {"Success", "Cancelled", "Failed", "TimedOut"}
    assert set(UNFINISHED) <= set(known.enum)


def test_an_alarm_calls_both_functions_that_it_concerns(template: Template, inside: Template) -> None:
    assert [one["Arn"] for one in rule(inside, "Alarms")["Targets"]] == ["<Hear.Arn>", "<Inject.Arn>"]
    assert [one["Arn"] for one in rule(inside, "Commands")["Targets"]] == ["<Inject.Arn>"]
    assert [one["Arn"] for one in rule(template, "Alarms")["Targets"]] == ["<Hear.Arn>"]
    targets = [target for name in ("Alarms", "Commands") for target in rule(inside, name)["Targets"]]
    retries = {json.dumps(target["RetryPolicy"]) for target in targets}
    assert retries == {json.dumps({"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 2})}
    assert len(resources_of(inside, "AWS::Events::Rule")) < RULES_OF_A_BUS / 50


def mapping(template: Template, name: str) -> dict[str, Any]:
    mappings = resources_of(template, "AWS::Lambda::EventSourceMapping")
    properties: dict[str, Any] = text(mappings[f"Injections{name}"]["Properties"])
    return properties


@pytest.mark.parametrize("name", ["State", "GroupTags"])
def test_a_change_by_people_is_heard_at_once_or_not_at_all(inside: Template, name: str) -> None:
    """The workflow looks anyway, at least once a minute."""
    properties = mapping(inside, name)
    properties.pop("FilterCriteria", None)
    assert properties == {
        "FunctionName": "<Inject>",
        "EventSourceArn": f"<{name}.StreamArn>",
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 100,
        "ParallelizationFactor": 10,
        "MaximumRetryAttempts": 2,
        "MaximumRecordAgeInSeconds": 300,
    }


def test_only_halts_of_the_state_are_heard(inside: Template) -> None:
    (entry,) = mapping(inside, "State")["FilterCriteria"]["Filters"]
    pattern = json.loads(entry["Pattern"])
    for key, passes in (("switch", True), ("self-halt", True), ("in-flight", False), ("unit#switch", False)):
        assert matches(pattern, {"dynamodb": {"Keys": {"key": {"S": key}}}}) is passes
    assert "FilterCriteria" not in mapping(inside, "GroupTags")


def test_a_stream_has_no_more_readers_than_it_can_serve(inside: Template) -> None:
    mappings = resources_of(inside, "AWS::Lambda::EventSourceMapping").values()
    readers = Counter(text(one["Properties"]["EventSourceArn"]) for one in mappings)
    assert max(readers.values()) == READERS_OF_A_STREAM


def test_a_backstop_may_call_the_function_and_is_in_a_group_of_its_own(inside: Template) -> None:
    groups = resources_of(inside, "AWS::Scheduler::ScheduleGroup")
    assert "InjectionsBackstops" in groups
    schedules = resources_of(inside, "AWS::Scheduler::Schedule").values()
    assert "<InjectionsBackstops>" not in {text(one["Properties"]["GroupName"]) for one in schedules}
    assert permissions(inside, "InjectionsRole") == {("Allow", "lambda:InvokeFunction", "<Inject.Arn>")}


def test_the_function_may_repair_by_the_termination_that_it_uses_and_by_no_other(inside: Template) -> None:
    assert CRASH.name == REPAIR
    ending = {grant[1] for grant in permissions(inside, "InjectRole") if re.search("Terminate", grant[1])}
    assert ending == {one.action for one in CRASH.permissions}


def test_no_document_is_allowed_that_runs_any_command(inside: Template) -> None:
    allowed = {grant[2] for grant in permissions(inside, "InjectRole") if grant[:2] == ("Allow", "ssm:SendCommand")}
    documents = {one.partition("document/")[2] for one in allowed if ":document/" in one}
    assert documents == {*(fault.document for fault in faults.LASTING), "<InjectionsProbe>"}
    assert not [one for one in documents if "*" in one or "Shell" in one]
    for role in resources_of(inside, "AWS::IAM::Role"):
        if role != "InjectRole":
            assert not [grant for grant in permissions(inside, role) if grant[1] == "ssm:SendCommand"], role
