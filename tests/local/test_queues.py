"""Queues as SQS has them: what they refuse, and how messages go out, come back and die."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.patience import eventually

from .helpers import World, allow, code, unique


class Queue:
    """A queue of the account, and its messages."""

    def __init__(self, world: World, **attributes: str) -> None:
        self.client, self.name = world.account.client("sqs"), unique("queue")
        self.url = self.client.create_queue(QueueName=self.name, Attributes=attributes)["QueueUrl"]

    def attributes(self, *names: str) -> dict[str, str]:
        return dict(self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(names))["Attributes"])

    @property
    def arn(self) -> str:
        return self.attributes("QueueArn")["QueueArn"]

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def receive(self, **more: Any) -> list[dict[str, Any]]:
        arguments = {"MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["All"], **more}
        return list(self.client.receive_message(QueueUrl=self.url, **arguments).get("Messages", []))

    def hide(self, message: dict[str, Any], seconds: int) -> None:
        self.client.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    def delete(self, message: dict[str, Any]) -> None:
        self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(ClientError) as error:
        call(*arguments, **named)
    return code(error).removeprefix("AWS.SimpleQueueService.")


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"Colour": "red"}, "InvalidAttributeName"),
        ({"QueueArn": "arn:aws:sqs:us-east-1:000000000000:x"}, "InvalidAttributeName"),
        ({"VisibilityTimeout": "43201"}, "InvalidAttributeValue"),
        ({"MessageRetentionPeriod": "59"}, "InvalidAttributeValue"),
        ({"ReceiveMessageWaitTimeSeconds": "21"}, "InvalidAttributeValue"),
        ({"SqsManagedSseEnabled": "yes"}, "InvalidAttributeValue"),
        ({"SqsManagedSseEnabled": "true", "KmsMasterKeyId": "alias/x"}, "InvalidAttributeValue"),
        ({"Policy": "{}"}, "InvalidAttributeValue"),
        ({"RedrivePolicy": '{"maxReceiveCount": 3}'}, "InvalidAttributeValue"),
        ({"RedriveAllowPolicy": '{"redrivePermission": "byQueue"}'}, "InvalidAttributeValue"),
        ({"RedriveAllowPolicy": '{"redrivePermission": "some"}'}, "InvalidAttributeValue"),
    ],
)
def test_attributes_that_a_queue_cannot_have(world: World, attributes: dict[str, str], expected: str) -> None:
    client = world.account.client("sqs")
    assert refusal(client.create_queue, QueueName=unique("queue"), Attributes=attributes) == expected
    queue = Queue(world)
    assert refusal(client.set_queue_attributes, QueueUrl=queue.url, Attributes=attributes) == expected


def test_names_that_a_queue_cannot_have(world: World) -> None:
    client = world.account.client("sqs")
    for name in ("x" * 81, "with.dot", "with space"):
        assert refusal(client.create_queue, QueueName=name) == "InvalidParameterValue"


def test_attributes_are_described_only_by_name(world: World) -> None:
    queue = Queue(world, VisibilityTimeout="7")
    assert queue.attributes("VisibilityTimeout") == {"VisibilityTimeout": "7"}
    assert queue.attributes("All")["SqsManagedSseEnabled"] == "true"
    assert "Attributes" not in queue.client.get_queue_attributes(QueueUrl=queue.url)
    assert refusal(queue.attributes, "Colour") == "InvalidAttributeName"


def test_a_queue_is_created_twice_only_with_the_same_attributes(world: World) -> None:
    queue = Queue(world, VisibilityTimeout="7")
    same = queue.client.create_queue(QueueName=queue.name, Attributes={"VisibilityTimeout": "7"})
    assert same["QueueUrl"] == queue.url
    for other in ({"VisibilityTimeout": "8"}, {"KmsMasterKeyId": "alias/x"}):
        assert refusal(queue.client.create_queue, QueueName=queue.name, Attributes=other) == "QueueAlreadyExists"


def test_the_name_of_a_deleted_queue_is_taken_for_a_minute(world: World) -> None:
    queue = Queue(world)
    queue.client.delete_queue(QueueUrl=queue.url)
    assert refusal(queue.client.create_queue, QueueName=queue.name) == "QueueDeletedRecently"
    assert refusal(queue.send, "x") == "NonExistentQueue"


def test_tags_at_a_creation_need_a_permission_of_their_own(world: World) -> None:
    name, tags = unique("queue"), {"run": "one"}
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    creates, tagging = allow("sqs:CreateQueue", arn), allow("sqs:TagQueue", arn)
    bare = world.account.client("sqs", world.as_role(world.role(creates)))
    assert refusal(bare.create_queue, QueueName=name, tags=tags).startswith("AccessDenied")
    full = world.account.client("sqs", world.as_role(world.role(creates, tagging)))
    url = full.create_queue(QueueName=name, tags=tags)["QueueUrl"]
    assert world.account.client("sqs").list_queue_tags(QueueUrl=url)["Tags"] == tags


def test_a_dead_letter_queue_takes_letters_only_of_queues_that_it_names(world: World) -> None:
    source, other, dead = Queue(world), Queue(world), Queue(world)
    allowed = json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [source.arn]})
    dead.client.set_queue_attributes(QueueUrl=dead.url, Attributes={"RedriveAllowPolicy": allowed})
    redrive = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2})}
    source.client.set_queue_attributes(QueueUrl=source.url, Attributes=redrive)
    assert refusal(other.client.set_queue_attributes, QueueUrl=other.url, Attributes=redrive) == "InvalidAttributeValue"


def test_a_message_that_is_received_too_often_is_a_dead_letter(world: World) -> None:
    dead = Queue(world)
    redrive = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2})
    queue = Queue(world, RedrivePolicy=redrive)
    queue.send("poison", "fine")
    for tries in ("1", "2"):
        poison = next(one for one in queue.receive(VisibilityTimeout=30) if one["Body"] == "poison")
        assert poison["Attributes"]["ApproximateReceiveCount"] == tries
        queue.hide(poison, 0)
    assert [one["Body"] for one in queue.receive()] == []
    (letter,) = dead.receive()
    assert (letter["Body"], letter["Attributes"]["DeadLetterQueueSourceArn"]) == ("poison", queue.arn)
    counts = queue.attributes("All")
    assert (counts["ApproximateNumberOfMessages"], counts["ApproximateNumberOfMessagesNotVisible"]) == ("0", "1")


def test_a_message_comes_back_at_once_or_after_its_time(world: World) -> None:
    queue = Queue(world, VisibilityTimeout="30")
    queue.send("one")
    (message,) = queue.receive()
    assert queue.receive() == []
    queue.hide(message, 0)
    (again,) = queue.receive(VisibilityTimeout=1)
    (late,) = queue.receive(WaitTimeSeconds=20, VisibilityTimeout=30)
    assert [one["Attributes"]["ApproximateReceiveCount"] for one in (message, again, late)] == ["1", "2", "3"]


def test_the_handle_of_an_earlier_receipt_has_no_effect(world: World) -> None:
    queue = Queue(world, VisibilityTimeout="30")
    queue.send("one")
    (first,) = queue.receive()
    queue.hide(first, 0)
    queue.hide(first, 20)
    (second,) = queue.receive()
    queue.hide(first, 0)
    queue.delete(first)
    assert queue.receive() == [], "it is still with who received it last"
    queue.delete(second)
    queue.delete(second)
    assert queue.attributes("All")["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert refusal(queue.hide, second, 5) == "InvalidParameterValue"
    assert refusal(queue.delete, {"ReceiptHandle": "nonsense"}) == "ReceiptHandleIsInvalid"


def test_a_message_is_hidden_for_twelve_hours_at_most(world: World) -> None:
    queue = Queue(world)
    queue.send("one")
    (message,) = queue.receive()
    assert refusal(queue.hide, message, 43201) in ("InvalidParameterValue", "ValidationException")
    time.sleep(0.01)
    assert refusal(queue.hide, message, 43200) == "InvalidParameterValue", "its time began with the receipt"
    queue.hide(message, 43000)


def test_a_long_poll_ends_when_a_message_comes(world: World) -> None:
    queue = Queue(world, ReceiveMessageWaitTimeSeconds="20")
    began = time.monotonic()
    assert queue.receive(WaitTimeSeconds=1) == []
    assert time.monotonic() - began >= 1
    queue.client.send_message(QueueUrl=queue.url, MessageBody="late", DelaySeconds=1)
    assert [one["Body"] for one in queue.receive()] == ["late"]


def test_batches_have_ten_entries_and_a_mebibyte(world: World) -> None:
    queue = Queue(world)

    def send(count: int, size: int) -> dict[str, Any]:
        entries = [{"Id": str(number), "MessageBody": "x" * size} for number in range(count)]
        return dict(queue.client.send_message_batch(QueueUrl=queue.url, Entries=entries))

    assert refusal(send, 11, 1) == "TooManyEntriesInBatchRequest"
    assert refusal(send, 10, 104_858) == "BatchRequestTooLong"
    assert len(send(10, 100_000)["Successful"]) == 10
    messages = queue.receive()
    handles = [{"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]} for number, one in enumerate(messages)]
    wrong = {"Id": "wrong", "ReceiptHandle": "nonsense"}
    answer = queue.client.delete_message_batch(QueueUrl=queue.url, Entries=[*handles[1:], wrong])
    assert [one["Id"] for one in answer["Successful"]] == [one["Id"] for one in handles[1:]]
    assert [one["Code"] for one in answer["Failed"]] == ["ReceiptHandleIsInvalid"]


def test_the_age_of_the_oldest_message_is_a_metric(world: World) -> None:
    queue, cloudwatch = Queue(world), world.account.client("cloudwatch")

    def ages() -> list[float]:
        """The values of this minute: those of earlier ones stay."""
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        dimensions = [{"Name": "QueueName", "Value": queue.name}]
        metric = {"Namespace": "AWS/SQS", "MetricName": "ApproximateAgeOfOldestMessage", "Dimensions": dimensions}
        query = {"Id": "age", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
        span = {"StartTime": now, "EndTime": now + timedelta(minutes=5)}
        (result,) = cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
        return list(result["Values"])

    assert ages() == []
    queue.send("one")
    eventually(lambda: ages() and ages()[0] >= 1)
    (message,) = queue.receive()
    assert ages()[0] >= 1, "a message that is received counts until it is deleted"
    queue.delete(message)
    eventually(lambda: ages() == [])


def test_metrics_are_answered_with_the_newest_first(world: World) -> None:
    cloudwatch, name = world.account.client("cloudwatch"), unique("metric")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    data = [{"MetricName": name, "Value": age, "Timestamp": now - timedelta(minutes=age)} for age in (3, 2, 1)]
    cloudwatch.put_metric_data(Namespace="shop", MetricData=data)

    def values(**order: str) -> list[float]:
        metric = {"Namespace": "shop", "MetricName": name}
        query = {"Id": "m1", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
        span = {"StartTime": now - timedelta(minutes=9), "EndTime": now + timedelta(minutes=1)}
        (result,) = cloudwatch.get_metric_data(MetricDataQueries=[query], **span, **order)["MetricDataResults"]
        assert [int((now - one).total_seconds()) // 60 for one in result["Timestamps"]] == result["Values"]
        return list(result["Values"])

    assert values() == values(ScanBy="TimestampDescending") == [1, 2, 3]
    assert values(ScanBy="TimestampAscending") == [3, 2, 1]
