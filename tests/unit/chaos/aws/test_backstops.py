"""Backstops: the one-time schedules that continue a lasting fault although its workflow has died."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from troop.chaos.aws.backstops import Backstops
from troop.chaos.injection_rules import first_backstop

FUNCTION, ROLE = "arn:aws:lambda:us-west-2:123456789012:function:inject", "arn:aws:iam::123456789012:role/backstop"
EVENT = "od#web/api#0123456789"
AT = datetime(2026, 11, 20, 18, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def client() -> Any:
    return boto3.client("scheduler", region_name="us-west-2", aws_access_key_id="k", aws_secret_access_key="s")


@pytest.fixture
def scheduler(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def backstops(client: Any) -> Backstops:
    return Backstops(client, "Troop-Backstops", ROLE, FUNCTION)


class _Names:
    """A client that keeps the names of what it is asked to create."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def create_schedule(self, **request: Any) -> None:
        self.names.append(request["Name"])


def _names(*calls: tuple[str, datetime]) -> list[str]:
    client = _Names()
    for event_id, at in calls:
        Backstops(client, "Troop-Backstops", ROLE, FUNCTION).arm(event_id, at)
    return client.names


@pytest.mark.parametrize("at", [AT, AT.astimezone(ZoneInfo("Asia/Kolkata")), AT + timedelta(microseconds=999_999)])
def test_a_backstop_calls_the_function_once_and_is_deleted(
    backstops: Backstops, scheduler: Stubber, at: datetime
) -> None:
    scheduler.add_response(
        "create_schedule",
        {"ScheduleArn": "arn:aws:scheduler:us-west-2:123456789012:schedule/Troop-Backstops/one"},
        {
            "Name": ANY,
            "GroupName": "Troop-Backstops",
            "Description": f"Proves the end of {EVENT}",
            "ScheduleExpression": "at(2026-11-20T18:02:00)",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": FUNCTION,
                "RoleArn": ROLE,
                "Input": json.dumps({"event_id": EVENT, "due": "<aws.scheduler.scheduled-time>"}),
                "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 185},
            },
        },
    )
    backstops.arm(EVENT, at)


def test_a_backstop_that_exists_stays(backstops: Backstops, scheduler: Stubber) -> None:
    scheduler.add_client_error("create_schedule", "ConflictException", http_status_code=409)
    backstops.arm(EVENT, AT)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ThrottlingException"])
def test_a_backstop_that_may_not_exist_is_no_backstop(backstops: Backstops, scheduler: Stubber, code: str) -> None:
    scheduler.add_client_error("create_schedule", code, http_status_code=400)
    with pytest.raises(ClientError, match=code):
        backstops.arm(EVENT, AT)


def test_two_calls_of_one_minute_arm_one_backstop_and_each_minute_has_its_own() -> None:
    """Scheduler deletes a schedule at an unknown time after its call: it must not be in the way of a later one."""
    one, *same, later, other = _names(
        (EVENT, AT),
        (EVENT, AT.astimezone(ZoneInfo("Asia/Kolkata"))),
        (EVENT, first_backstop(AT + timedelta(seconds=99), AT - timedelta(hours=1))),
        (EVENT, AT + timedelta(minutes=1)),
        ("od#web/api#1123456789", AT),
    )
    assert same == [one, one]
    assert len({one, later, other}) == 3


@pytest.mark.parametrize("event_id", [EVENT, "2026-11-20#" + "ü" * 255, "2026-11-20#a b/c:d"])
def test_any_event_has_a_name_that_scheduler_accepts(client: Any, event_id: str) -> None:
    (name,) = _names((event_id, AT))
    shape = client.meta.service_model.operation_model("CreateSchedule").input_shape.members["Name"]
    assert len(name) <= shape.metadata["max"]
    assert re.fullmatch(r"[0-9a-zA-Z-_.]+", name)
