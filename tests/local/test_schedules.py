"""EventBridge Scheduler: at the minute, in the schedule's zone, as its role, with its context attributes."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.project import ACCOUNT_PYTHON, ROOT
from tests.patience import PATIENCE, eventually

from .helpers import Scheduled, World, allow, unique


@pytest.fixture(scope="module")
def scheduled(world: World) -> Scheduled:
    return Scheduled(world)


MOMENT = timedelta(seconds=PATIENCE)
"""What is on time may be so late: a busy machine is slow, but no hour off."""


def test_one_time_schedules_in_their_zone(scheduled: Scheduled) -> None:
    name = scheduled.soon("once")
    (once,) = eventually(lambda: scheduled.inputs().get(name))
    assert abs(datetime.fromisoformat(once["at"]) - once["started"]) < MOMENT
    assert len(once["id"]) == 36


def test_a_one_time_schedule_calls_a_function_and_is_deleted(scheduled: Scheduled, world: World) -> None:
    sqs = world.account.client("sqs")
    url = sqs.create_queue(QueueName=unique("called"))["QueueUrl"]
    body = (
        "import boto3\ndef handler(event, context):\n"
        f"    boto3.client('sqs').send_message(QueueUrl={url!r}, MessageBody=event['name'])\n"
    )
    function = world.function(body, world.role(allow("sqs:SendMessage")))
    target = {"Arn": function}
    name = scheduled.soon(
        "called", world.role(allow("lambda:InvokeFunction", function)), ActionAfterCompletion="DELETE", target=target
    )
    (message,) = eventually(lambda: sqs.receive_message(QueueUrl=url).get("Messages"))
    assert message["Body"] == name
    listed = lambda: scheduled.client.list_schedules(GroupName=scheduled.group, NamePrefix=name)  # noqa: E731
    eventually(lambda: not listed()["Schedules"])


def test_who_creates_a_schedule_may_pass_its_role(scheduled: Scheduled, world: World) -> None:
    may_create = allow(["scheduler:CreateSchedule", "scheduler:UpdateSchedule"])
    passing = {"Condition": {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}}
    request = {
        "Name": unique("passed"),
        "GroupName": scheduled.group,
        "ScheduleExpression": "rate(10 days)",
        "StartDate": datetime.now(UTC) + timedelta(days=1),
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": scheduled.machine, "RoleArn": scheduled.role},
    }
    lacking = world.account.client("scheduler", world.as_role(world.role(may_create)))
    with pytest.raises(ClientError, match="iam:PassRole"):
        lacking.create_schedule(**request)
    role = world.role(may_create, allow("iam:PassRole", scheduled.role, **passing))
    client = world.account.client("scheduler", world.as_role(role))
    client.create_schedule(**request)
    client.update_schedule(**request)


def test_a_rate_begins_at_once(scheduled: Scheduled) -> None:
    scheduled.create("often", "rate(1 hour)")
    (often,) = eventually(lambda: scheduled.inputs().get("often"))
    assert often["started"] - datetime.fromisoformat(often["at"]) < MOMENT


def test_a_role_that_may_not_start_leaves_a_dead_letter(scheduled: Scheduled, world: World) -> None:
    sqs = world.account.client("sqs")
    url = sqs.create_queue(QueueName=unique("dead"))["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    target = {"DeadLetterConfig": {"Arn": arn}}
    name = scheduled.soon("denied", world.role(), target=target)
    receive: Any = lambda: sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"]).get("Messages")  # noqa: E731
    (letter,) = eventually(receive)
    assert json.loads(letter["Body"])["name"].startswith("denied")
    assert "states:StartExecution" in letter["MessageAttributes"]["ERROR_MESSAGE"]["StringValue"]
    assert name not in scheduled.inputs()


def test_impossible_schedule_is_refused(scheduled: Scheduled) -> None:
    with pytest.raises(ClientError, match="time zone"):
        scheduled.create("nowhere", "rate(1 hour)", ScheduleExpressionTimezone="Mars/Olympus")
    with pytest.raises(ClientError, match="flexible"):
        scheduled.client.create_schedule(
            Name=unique("flexible"),
            ScheduleExpression="rate(1 hour)",
            FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5},
            Target={"Arn": scheduled.machine, "RoleArn": scheduled.role},
        )


OCCURRENCES = """
import json, sys
from datetime import datetime
from local.account.patches.scheduler import occurrences
def answer(expression, since, until, start=None):
    schedule = {"ScheduleExpression": expression, "ScheduleExpressionTimezone": "Europe/Vienna", "CreationDate": 0}
    schedule |= {"StartDate": start} if start else {}
    moments = occurrences(schedule, datetime.fromisoformat(since), datetime.fromisoformat(until))
    return [one.isoformat() for one in moments]
print(json.dumps([answer(*question) for question in json.load(sys.stdin)]))
"""


def occurrences(*questions: tuple[str, ...]) -> list[list[str]]:
    """What the account computes for Vienna, in its own environment; a question: an expression, a start, an end, and the
    start date of the schedule, if it has one.
    """
    done = subprocess.run(
        [str(ACCOUNT_PYTHON), "-c", OCCURRENCES],
        cwd=ROOT,
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
    )
    return [[one.removesuffix(":00+00:00") for one in answer] for answer in json.loads(done.stdout)]


def test_clock_changes() -> None:
    spring, autumn = "2026-03-29T{}+00:00", "2026-10-25T{}+00:00"
    skipped, once = occurrences(
        ("cron(30 2 * * ? *)", spring.format("00:00:00"), spring.format("03:00:00")),
        ("cron(30 2 * * ? *)", "2026-10-24T23:00:00+00:00", autumn.format("03:00:00")),
    )
    assert skipped == [], "02:30 does not exist that day"
    assert once == ["2026-10-25T00:30"], "02:30 comes twice that day and counts once"


def test_rate_begins_at_the_creation_of_the_schedule() -> None:
    creation = "1970-01-01T00:00:00+00:00"  # the schedule's creation
    assert occurrences(
        ("rate(15 minutes)", "1969-12-31T23:59:59.999999+00:00", creation),
        ("rate(15 minutes)", creation, "1970-01-01T00:14:59+00:00"),
        ("rate(15 minutes)", creation, "1970-01-01T00:15:01+00:00"),
    ) == [["1970-01-01T00:00"], [], ["1970-01-01T00:15"]]


def test_a_rate_counts_from_its_start_date() -> None:
    midnight, first = "1970-01-01T00:00:00+00:00", "1970-01-01T00:20:00+00:00"
    assert occurrences(
        ("rate(15 minutes)", midnight, "1970-01-01T00:19:00+00:00", first),
        ("rate(15 minutes)", midnight, first, first),
        ("rate(15 minutes)", first, "1970-01-01T00:35:01+00:00", first),
    ) == [[], ["1970-01-01T00:20"], ["1970-01-01T00:35"]]


def test_cron_expressions_follow_the_zone(next_minute: tuple[Scheduled, datetime]) -> None:
    scheduled, minute = next_minute
    time.sleep(max(0, (minute - datetime.now(UTC)).total_seconds()))
    eventually(lambda: {"zoned", "weekday"} <= scheduled.inputs().keys())
    started = scheduled.inputs()
    assert started.keys() == {"zoned", "weekday"}
    for name in ("zoned", "weekday"):
        on_time = [one for one in started[name] if datetime.fromisoformat(one["at"]) == minute]
        assert len(on_time) == 1
        assert on_time[0]["started"] - minute < MOMENT
