"""Dead letters: which are dropped and when, and which records of a stream one is about."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from troop.chaos.dead_letters import (
    TRIED_FOR,
    WARNING_TIME,
    Batch,
    Letter,
    UnreadableLetter,
    batch_of,
    is_dropped,
    is_obsolete,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SCHEDULE = "arn:aws:scheduler:eu-central-1:123456789012:schedule/{}/default"
RULE = {"RULE_ARN": "arn:aws:events:eu-central-1:123456789012:rule/Ended"}


@pytest.mark.parametrize(
    ("attributes", "age", "obsolete"),
    [
        ({"SCHEDULE_ARN": SCHEDULE.format("Troop")}, WARNING_TIME, True),
        ({"SCHEDULE_ARN": SCHEDULE.format("Troop")}, WARNING_TIME - timedelta(seconds=1), False),
        ({"SCHEDULE_ARN": SCHEDULE.format("Runs")}, WARNING_TIME, True),
        (RULE, WARNING_TIME, True),
        (RULE, timedelta(), False),
        ({"SCHEDULE_ARN": SCHEDULE.format("Troop-2")}, timedelta(days=9), False),
        ({"SCHEDULE_ARN": SCHEDULE.format("My-Troop")}, timedelta(days=9), False),
        ({}, timedelta(days=9), False),
        ({"TARGET_ARN": "somebody's"}, timedelta(days=9), False),
    ],
)
def test_only_what_the_deployment_itself_sends_is_dropped_and_not_at_once(
    attributes: dict[str, str], age: timedelta, obsolete: bool
) -> None:
    assert is_obsolete(Letter("r", "{}", NOW - age, attributes=attributes), ["Troop", "Runs"], [], NOW) is obsolete


START = "arn:aws:lambda:eu-central-1:123456789012:function:Start"


@pytest.mark.parametrize(
    ("body", "age", "obsolete"),
    [
        ({"requestContext": {"functionArn": f"{START}:$LATEST"}}, WARNING_TIME, True),
        ({"requestContext": {"functionArn": START}}, WARNING_TIME, True),
        ({"requestContext": {"functionArn": f"{START}:$LATEST"}}, timedelta(), False),
        ({"requestContext": {"functionArn": f"{START}2:$LATEST"}}, WARNING_TIME, False),
        ({"requestContext": {}}, WARNING_TIME, False),
        ({"requestContext": None}, WARNING_TIME, False),
        (["requestContext"], WARNING_TIME, False),
    ],
)
def test_start_that_lambda_dropped_is_obsolete_only_for_a_known_function(
    body: Any, age: timedelta, obsolete: bool
) -> None:
    assert is_obsolete(Letter("r", json.dumps(body), NOW - age), [], [START], NOW) is obsolete


@pytest.mark.parametrize(("age", "dropped"), [(timedelta(), False), (TRIED_FOR, False), (timedelta(hours=25), True)])
def test_one_is_sent_again_as_long_as_a_stream_keeps_its_records(age: timedelta, dropped: bool) -> None:
    assert is_dropped(Letter("r", "{}", NOW - age), NOW) is dropped


INFO: dict[str, Any] = {
    "shardId": "shardId-00000001573689847184-864758bb",
    "startSequenceNumber": "800000000003126276362",
    "endSequenceNumber": "800000000003126276371",
    "approximateArrivalOfFirstRecord": "2026-11-19T00:14:28Z",
    "approximateArrivalOfLastRecord": "2026-11-19T00:15:35Z",
    "batchSize": 10,
    "streamArn": "arn:aws:dynamodb:eu-central-1:123456789012:table/Events/stream/2026-11-14T00:13:19.377",
}


def letter(body: Any) -> Letter:
    return Letter("r", json.dumps(body), NOW)


def test_a_letter_names_its_records() -> None:
    batch = batch_of(letter({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": INFO}))
    assert batch == Batch(
        INFO["streamArn"],
        INFO["shardId"],
        INFO["startSequenceNumber"],
        INFO["endSequenceNumber"],
    )
    numbers = ("800000000003126276361", "800000000003126276362", "800000000003126276371", "800000000003126276372")
    assert [batch.has(number) for number in (*numbers, "9")] == [False, True, True, False, False]


@pytest.mark.parametrize(
    "body",
    [{}, [], None, "x", {"DDBStreamBatchInfo": None}, {"DDBStreamBatchInfo": {**INFO, "startSequenceNumber": "x"}}],
    ids=str,
)
def test_letter_without_a_batch_is_unreadable(body: Any) -> None:
    with pytest.raises(UnreadableLetter):
        batch_of(letter(body))


def test_text_that_is_no_document_is_unreadable_too() -> None:
    with pytest.raises(UnreadableLetter):
        batch_of(Letter("r", "no JSON", NOW))
