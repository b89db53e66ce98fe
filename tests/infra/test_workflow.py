"""The state machines, and the schedules that start them and functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from infra.machines import used
from tests.infra.cfn import resources_of, text

Template = Mapping[str, Any]


MACHINES = ("Chaos", "OnDemand", "BenchmarksBenchmark", "BenchmarksTeardown", "BenchmarksFleet")


def test_there_are_no_other_machines(template: Template) -> None:
    assert set(resources_of(template, "AWS::StepFunctions::StateMachine")) == {f"{name}Machine" for name in MACHINES}


@pytest.mark.parametrize("name", MACHINES)
def test_executions_are_durable_logged_and_traced(template: Template, name: str) -> None:
    machine = resources_of(template, "AWS::StepFunctions::StateMachine")[f"{name}Machine"]["Properties"]
    assert (machine["StateMachineType"], machine["TracingConfiguration"]) == ("STANDARD", {"Enabled": True})
    logging = text(machine["LoggingConfiguration"])
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ALL", False)
    assert logging["Destinations"] == [{"CloudWatchLogsLogGroup": {"LogGroupArn": f"<{name}Logs.Arn>"}}]
    assert text(machine["RoleArn"]) == f"<{name}Role.Arn>"


@pytest.mark.parametrize("stack", ["template", "inside"])
@pytest.mark.parametrize("name", MACHINES)
def test_a_definition_is_json_after_substitution_of_all_that_it_names(
    stack: str, name: str, request: pytest.FixtureRequest
) -> None:
    """Functions by their plain ARN, integrations by that of the partition."""
    template = request.getfixturevalue(stack)
    machine = resources_of(template, "AWS::StepFunctions::StateMachine")[f"{name}Machine"]["Properties"]
    definition, substituted = machine["DefinitionString"], text(machine["DefinitionSubstitutions"])
    assert set(re.findall(r"\$\{(\w+)\}", definition)) == set(substituted)
    others = {
        "TeardownMachine": "<BenchmarksTeardownMachine>",
        "LambdaInvoke": "arn:<AWS::Partition>:states:::lambda:invoke",
        "LambdaInvokeWithToken": "arn:<AWS::Partition>:states:::lambda:invoke.waitForTaskToken",
        "S3GetObject": "arn:<AWS::Partition>:states:::s3:getObject",
        "StartExecution": "arn:<AWS::Partition>:states:::states:startExecution",
        "StartExecutionSync": "arn:<AWS::Partition>:states:::states:startExecution.sync:2",
    }
    expected = {key: others.get(key, f"<{key.removesuffix('Function')}.Arn>") for key in substituted}
    assert substituted == expected
    for key, value in substituted.items():
        definition = definition.replace(f"${{{key}}}", value)
    json.loads(definition)


def test_a_name_without_substitution_is_refused() -> None:
    with pytest.raises(ValueError, match="Typo: unknown substitution; must be one of Decide"):
        used('{"a": "${Typo}", "b": "${Decide}"}', {"Decide": "arn"})


def test_only_what_is_used_is_substituted() -> None:
    assert used('{"a": "${Decide}"}', {"Decide": "arn", "Other": "arn"}) == {"Decide": "arn"}


def schedules(template: Template) -> dict[str, dict[str, Any]]:
    """Schedules by their calendar."""
    resources = resources_of(template, "AWS::Scheduler::Schedule")
    calendars = [s["Properties"] for name, s in resources.items() if name.startswith("Schedules")]
    return {json.loads(schedule["Target"]["Input"])["calendar"]: schedule for schedule in calendars}


def test_each_calendar_has_a_schedule_on_its_own_clock(blue: Template) -> None:
    clocks = {name: (s["ScheduleExpression"], s["ScheduleExpressionTimezone"]) for name, s in schedules(blue).items()}
    assert clocks == {
        "default": ("cron(0/5 9-15 ? * MON,TUE,WED,THU,FRI *)", "America/Los_Angeles"),
        "tel-aviv": ("cron(0/5 9-15 ? * MON,TUE,WED,THU,SUN *)", "Asia/Jerusalem"),
        "night": ("cron(0/5 22-23 ? * MON,TUE,WED,THU,FRI *)", "Europe/Vienna"),
    }


def test_the_default_is_one_schedule_every_quarter_of_an_hour(template: Template) -> None:
    ((name, schedule),) = schedules(template).items()
    assert (name, schedule["ScheduleExpression"]) == ("default", "cron(0/15 9-15 ? * MON,TUE,WED,THU,FRI *)")


def test_a_schedule_starts_the_workflow_on_time_or_not_at_all(blue: Template) -> None:
    for name, schedule in schedules(blue).items():
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert schedule.get("State", "ENABLED") == "ENABLED"
        assert text(schedule["GroupName"]) == "<SchedulesGroup>"
        assert text(schedule["Target"]) == {
            "Arn": "<ChaosMachine>",
            "RoleArn": "<SchedulesRole.Arn>",
            "Input": json.dumps({"calendar": name}),
            "RetryPolicy": {"MaximumEventAgeInSeconds": 900, "MaximumRetryAttempts": 3},
            "DeadLetterConfig": {"Arn": "<SchedulesUndelivered.Arn>"},
        }


EXECUTION = {"execution": "<aws.scheduler.execution-id>", "started": "<aws.scheduler.scheduled-time>"}


@pytest.mark.parametrize(
    ("name", "function", "expression", "sent"),
    [
        ("Watchdog", "Watchdog", "rate(15 minutes)", {}),
        ("Sweep", "Sweep", "cron(8/15 * * * ? *)", EXECUTION),  # between the ticks
        ("Reaper", "Reaper", "cron(4/15 * * * ? *)", {}),
        ("Redrive", "Notify", "cron(12 * * * ? *)", {}),  # sends lost notifications again
    ],
)
def test_a_function_is_called_by_its_schedule(
    template: Template, name: str, function: str, expression: str, sent: dict[str, str]
) -> None:
    schedule = resources_of(template, "AWS::Scheduler::Schedule")[f"{name}Schedule"]["Properties"]
    assert schedule["ScheduleExpression"] == expression
    assert schedule.get("ScheduleExpressionTimezone", "UTC") == "UTC"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule.get("State", "ENABLED") == "ENABLED"
    assert text(schedule["GroupName"]) == "<SchedulesGroup>"
    target = text(schedule["Target"])
    assert json.loads(target.pop("Input")) == sent
    assert target == {
        "Arn": f"<{function}.Arn>",
        "RoleArn": f"<{name}ScheduleRole.Arn>",
        "RetryPolicy": {"MaximumEventAgeInSeconds": 900, "MaximumRetryAttempts": 3},
        "DeadLetterConfig": {"Arn": "<SchedulesUndelivered.Arn>"},
    }


def test_letter_is_written_on_monday_mornings_on_the_clock_of_the_calendar(
    template: Template, synthesised: Callable[..., Template]
) -> None:
    assert "LetterSchedule" not in resources_of(template, "AWS::Scheduler::Schedule")
    with_letter = synthesised(weekly_letter=True)
    schedule = resources_of(with_letter, "AWS::Scheduler::Schedule")["LetterSchedule"]["Properties"]
    assert schedule["ScheduleExpression"] == "cron(0 9 ? * MON *)"
    assert schedule["ScheduleExpressionTimezone"] == "America/Los_Angeles"
    assert json.loads(schedule["Target"]["Input"]) == {"letter": "<aws.scheduler.scheduled-time>"}
    assert text(schedule["Target"])["Arn"] == "<Notify.Arn>"


def test_letter_that_failed_is_tried_again(synthesised: Callable[..., Template]) -> None:
    configs = resources_of(synthesised(weekly_letter=True), "AWS::Lambda::EventInvokeConfig").values()
    (notify,) = [one["Properties"] for one in configs if text(one["Properties"])["FunctionName"] == "<Notify>"]
    assert (notify["MaximumEventAgeInSeconds"], notify["MaximumRetryAttempts"]) == (900, 2)


def test_no_tick_before_the_workflow_may_run_its_map(template: Template) -> None:
    schedule = resources_of(template, "AWS::Scheduler::Schedule")["SchedulesCalendardefault"]
    assert [name for name in schedule["DependsOn"] if name.startswith("ChaosMapChildren")]


@pytest.mark.parametrize("name", ["SchedulesUndelivered", "NotificationsUndelivered"])
def test_queue_retains_letters_for_two_weeks_and_requires_tls(template: Template, name: str) -> None:
    queue = resources_of(template, "AWS::SQS::Queue")[name]["Properties"]
    assert queue == {"MessageRetentionPeriod": 14 * 24 * 3600, "SqsManagedSseEnabled": True}
    policy = resources_of(template, "AWS::SQS::QueuePolicy")[f"{name}Policy"]
    (statement,) = [s for s in policy["Properties"]["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
    assert (statement["Action"], statement["Condition"]) == ("sqs:*", {"Bool": {"aws:SecureTransport": "false"}})
