"""Alarms in their two classes: on what, to whom, and that each says where it is written what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra import ROOT, alarms_doc
from tests.infra.cfn import resources_of, text
from troop.shared.metrics import CHILDREN

Template = Mapping[str, Any]

RUNBOOK = (ROOT / "docs" / "guides" / "runbook.md").read_text(encoding="utf-8")

OURS = {"deployment": "<AWS::StackName>"}
MACHINE = {"StateMachineArn": "<ChaosMachine>"}
ALARMS: dict[str, tuple[str, str, str, dict[str, str], str, int, str]] = {
    "UnitUnrecovered": ("unit-unrecovered", "Troop", "UnitsUnrecovered", OURS, "Maximum", 300, "ignore"),
    "HaltedItself": ("halted-itself", "Troop", "HaltedItself", OURS, "Maximum", 1800, "notBreaching"),
    "FaultUnproven": ("fault-unproven", "Troop", "UnprovenFaults", OURS, "Maximum", 1800, "notBreaching"),
    "TicksMissing": ("ticks-missing", "Troop", "MissingTicks", OURS, "Maximum", 300, "ignore"),
    "TerminationsFailed": (
        "terminations-failed",
        "AWS/States",
        "ExecutionsFailed",
        {"StateMachineArn": "<ChaosMachine>/TerminateAll"},
        "Sum",
        300,
        "notBreaching",
    ),
    "OnDemandFailed": (
        "terminations-failed",
        "AWS/States",
        "ExecutionsFailed",
        {"StateMachineArn": "<OnDemandMachine>"},
        "Sum",
        300,
        "notBreaching",
    ),
    "TicksFailed": ("ticks-failed", "AWS/States", "ExecutionsFailed", MACHINE, "Sum", 300, "notBreaching"),
    "TicksTimedOut": ("ticks-failed", "AWS/States", "ExecutionsTimedOut", MACHINE, "Sum", 300, "notBreaching"),
    "TicksAborted": ("ticks-failed", "AWS/States", "ExecutionsAborted", MACHINE, "Sum", 300, "notBreaching"),
    "DeadLetters": (
        "dead-letters",
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        {"QueueName": "<SchedulesUndelivered.QueueName>"},
        "Maximum",
        300,
        "notBreaching",
    ),
    "NotificationsLost": (
        "notifications-lost",
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        {"QueueName": "<NotificationsUndelivered.QueueName>"},
        "Maximum",
        300,
        "notBreaching",
    ),
    "ReaperSilent": ("reaper-silent", "Troop", "ReaperFinds", OURS, "SampleCount", 900, "breaching"),
    "HealingLimited": ("healing-limited", "Troop", "HealingLimited", OURS, "Maximum", 900, "notBreaching"),
    **{
        f"Teardown{kind}": (
            "teardown-failed",
            "AWS/States",
            f"Executions{kind}",
            {"StateMachineArn": "<BenchmarksTeardownMachine>"},
            "Sum",
            300,
            "notBreaching",
        )
        for kind in ("Failed", "TimedOut")
    },
    "WatchdogSilent": ("watchdog-silent", "Troop", "FailingChecks", OURS, "SampleCount", 900, "breaching"),
}
"""Anchor in the runbook, metric's namespace, name and dimensions, statistic, seconds, what missing data means."""

API = {"ApiName": "<AWS::StackName>", "Stage": "<ApiRestDeploymentStagev1>"}
WARNINGS: dict[str, tuple[str, str, str, dict[str, str], str, int, str]] = {
    "SlowRecoveries": ("slow-recoveries", "Troop", "SlowRecoveries", OURS, "Sum", 3600, "notBreaching"),
    "ApiErrors": ("api-errors", "AWS/ApiGateway", "5XXError", API, "Sum", 900, "notBreaching"),
    "StepsFailing": ("steps-failing", "Troop", "StepsFailed", OURS, "Sum", 3600, "notBreaching"),
    "NotificationsFailing": ("notifications-failing", "Troop", "NotificationsFailed", OURS, "Sum", 900, "notBreaching"),
    "ReaperFound": ("reaper-found", "Troop", "ReaperFinds", OURS, "Maximum", 300, "ignore"),
    "StartsRefused": ("starts-refused", "Troop", "StartsRefused", OURS, "Maximum", 300, "notBreaching"),
    "ReaperOff": ("reaper-off", "Troop", "ReaperOff", OURS, "Maximum", 1800, "notBreaching"),
    "LeftBehind": ("left-behind", "Troop", "LeftBehind", OURS, "Maximum", 1800, "notBreaching"),
    "ReportFailed": (
        "report-failed",
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        {"QueueName": "<ReportsGivenUp.QueueName>"},
        "Maximum",
        300,
        "notBreaching",
    ),
    "BenchmarkCost": (
        "benchmark-cost",
        "Troop",
        "RunCost",
        OURS | {"currency": "<CNY or USD>"},
        "Sum",
        86400,
        "notBreaching",
    ),
    **{
        f"Throttled{name}": (
            "throttled",
            "AWS/Lambda",
            "Throttles",
            {"FunctionName": f"<{name}>"},
            "Sum",
            3600,
            "notBreaching",
        )
        for name in ("Terminate", "Cell")
    },
}
"""The same of the class "warning"."""

SUMMED = {"ThrottledDecisions": ("throttled", "Decisions", ["by-day"]), "ThrottledRuns": ("throttled", "Runs", [])}
"""Of that class, too: anchor, table and indices of those that are a sum over a table and the indices that count."""

THRESHOLDS = {
    **{"ApiErrors": 3, "StepsFailing": 4, "NotificationsFailing": 3, "BenchmarkCost": 100},
    **{name: 100 for name in (*WARNINGS, *SUMMED) if name.startswith("Throttled")},
}
"""Where it is not 1."""

BOTH = ALARMS | WARNINGS
ANCHORS = {name: alarm[0] for name, alarm in (BOTH | SUMMED).items()}

LONGEST_NAME, LONGEST_STACK_NAME = 255, 128
MOST_METRICS = 10
"""Quotas of CloudFormation's and CloudWatch's: characters, and metrics of an alarm's expression."""


@pytest.fixture
def template(inside: Template) -> Template:
    """The default settings with faults inside instances, which need all alarms."""
    return inside


def alarms(template: Template) -> dict[str, dict[str, Any]]:
    resources = resources_of(template, "AWS::CloudWatch::Alarm")
    return {name.removeprefix("Alarms"): alarm["Properties"] for name, alarm in resources.items()}


def test_there_are_no_other_alarms(template: Template) -> None:
    assert set(alarms(template)) == set(ANCHORS)


def test_each_alarm_watches_its_metric(template: Template) -> None:
    existing, silences = alarms(template), ("WatchdogSilent", "ReaperSilent")
    assert {name: _watched(template, existing[name]) for name in BOTH} == {
        name: {
            "metric": (namespace, metric, dimensions),
            "statistic": (statistic, period, missing),
            "comparison": "LessThanThreshold" if name in silences else "GreaterThanOrEqualToThreshold",
            "threshold": (THRESHOLDS.get(name, 1), 3 if name in silences else 1),
        }
        for name, (_, namespace, metric, dimensions, statistic, period, missing) in BOTH.items()
    }


def _watched(template: Template, alarm: Mapping[str, Any]) -> dict[str, Any]:
    dimensions = {one["Name"]: _value(template, one["Value"]) for one in alarm["Dimensions"]}
    return {
        "metric": (alarm["Namespace"], alarm["MetricName"], dimensions),
        "statistic": (alarm["Statistic"], alarm["Period"], alarm["TreatMissingData"]),
        "comparison": alarm["ComparisonOperator"],
        "threshold": (alarm["Threshold"], alarm["EvaluationPeriods"]),
    }


def _value(template: Template, value: Any) -> Any:
    if isinstance(value, Mapping) and "Fn::If" in value:
        condition, china, elsewhere = value["Fn::If"]
        assert template["Conditions"][condition] == {"Fn::Equals": [{"Ref": "AWS::Partition"}, "aws-cn"]}
        return f"<{china} or {elsewhere}>"
    return text(value)


def test_the_map_whose_children_are_watched_is_the_workflows() -> None:
    """A label that the definition does not have would make an alarm that never says anything."""
    states = json.loads((ROOT / "statemachines" / "chaos.asl.json").read_text(encoding="utf-8"))["States"]
    assert [state["Label"] for state in states.values() if state["Type"] == "Map"] == [CHILDREN]


@pytest.mark.parametrize("name", SUMMED)
def test_throttled_index_raises_the_alarm_as_its_table_does(template: Template, name: str) -> None:
    """As zero where there is nothing: that a metric of DynamoDB's has no value an alarm ignores, and stays on."""
    alarm, (_, table, indices) = alarms(template)[name], SUMMED[name]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (THRESHOLDS[name], 1)
    (watched,) = [one for one in alarm["Metrics"] if one.get("ReturnData", True)]
    assert watched["Expression"] == "SUM(FILL(METRICS(), 0))"
    summed = [one["MetricStat"] for one in alarm["Metrics"] if one is not watched]
    assert len(summed) <= MOST_METRICS
    assert {(one["Metric"]["Namespace"], one["Metric"]["MetricName"]) for one in summed} == {
        ("AWS/DynamoDB", "WriteThrottleEvents")
    }
    assert {(one["Stat"], one["Period"]) for one in summed} == {("Sum", 3600)}
    counted = [{d["Name"]: text(d["Value"]) for d in one["Metric"]["Dimensions"]} for one in summed]
    dimension = {"TableName": f"<{table}>"}
    assert counted == [dimension, *(dimension | {"GlobalSecondaryIndexName": one} for one in indices)]
    there = resources_of(template, "AWS::DynamoDB::Table")[table]["Properties"]["GlobalSecondaryIndexes"]
    assert set(indices) <= {one["IndexName"] for one in there}


def test_names_of_alarms_begin_with_the_deployment(template: Template) -> None:
    """No name has a hyphen, so those of two deployments differ where the deployments' do."""
    named = {name: text(alarm["AlarmName"]) for name, alarm in alarms(template).items()}
    assert named == {name: f"<AWS::StackName>-{name}" for name in ANCHORS}
    assert [name for name in ANCHORS if not name.isalnum()] == []
    assert LONGEST_STACK_NAME + 1 + max(map(len, ANCHORS)) <= LONGEST_NAME


def test_the_tables_of_the_runbook_are_current(template: Template) -> None:
    assert alarms_doc.text(RUNBOOK, template) == RUNBOOK, "run: make openapi"


def test_beginning_and_end_of_an_alarm_go_to_the_topic_of_its_class(template: Template) -> None:
    topics = {name: "ActNow" if name in ALARMS else "Warning" for name in ANCHORS}
    actions = {
        name: (text(alarm["AlarmActions"]), text(alarm["OKActions"]), alarm.get("ActionsEnabled", True))
        for name, alarm in alarms(template).items()
    }
    assert actions == {name: ([f"<Alarms{topic}>"], [f"<Alarms{topic}>"], True) for name, topic in topics.items()}
    for topic in ("ActNow", "Warning"):
        assert text(template["Outputs"][f"{topic}TopicArn"]["Value"]) == f"<Alarms{topic}>"


def anchors() -> dict[str, str]:
    """The runbook's paragraphs by the anchor that GitHub and others make of their headings."""
    parts = re.split(r"^## (.+)$", RUNBOOK, flags=re.MULTILINE)[1:]
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): body
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_descriptions_link_to_paragraphs_that_say_what_to_do(template: Template) -> None:
    links = {name: alarm["AlarmDescription"].rpartition("What to do: ")[2] for name, alarm in alarms(template).items()}
    assert links == {name: f"docs/guides/runbook.md#{anchor}" for name, anchor in ANCHORS.items()}
    paragraphs = {name: anchors()[anchor] for name, anchor in ANCHORS.items()}
    assert [name for name, paragraph in paragraphs.items() if f"`{name}`" not in paragraph] == [], "names its alarm"
    steps = re.compile(r"^1\. ", re.MULTILINE)
    assert [name for name, paragraph in paragraphs.items() if not steps.search(paragraph)] == [], "lists steps"


def test_the_links_lead_to_where_the_runbook_can_be_read(green: Template) -> None:
    links = {alarm["AlarmDescription"].rpartition(" ")[2] for alarm in alarms(green).values()}
    assert links == {f"https://wiki.example.com/troop#{anchor}" for anchor in ANCHORS.values()}


def test_links_within_the_docs_lead_somewhere() -> None:
    """Those of the runbook to itself, and those that the functions' checks give."""
    checks = (ROOT / "functions" / "troop" / "chaos" / "health.py").read_text(encoding="utf-8")
    links = [*re.findall(r"\]\(#([\w-]+)\)", RUNBOOK), *re.findall(r"docs/guides/runbook\.md#([\w-]+)", checks)]
    assert len(links) > 5
    assert set(links) <= set(anchors())


@pytest.mark.parametrize("topic", ["AlarmsActNow", "AlarmsWarning"])
def test_the_topics_take_alarms_of_the_account_and_nothing_unencrypted(template: Template, topic: str) -> None:
    policy = resources_of(template, "AWS::SNS::TopicPolicy")[f"{topic}Policy"]
    statements = {s["Effect"]: s for s in policy["Properties"]["PolicyDocument"]["Statement"]}
    allow, deny = statements["Allow"], statements["Deny"]
    assert (allow["Principal"], allow["Action"]) == ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish")
    assert text(allow["Condition"]) == {"StringEquals": {"aws:SourceAccount": "<AWS::AccountId>"}}
    assert text(allow["Resource"]) == text(deny["Resource"]) == f"<{topic}>"
    assert (deny["Principal"], deny["Condition"]) == ("*", {"Bool": {"aws:SecureTransport": "false"}})
