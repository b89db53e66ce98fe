"""Lets messages go out, come back and die as on AWS, at a cost that does not grow with the length of the queue.

A receipt handle belongs to one receipt of a message. MiniStack refuses an old one, where AWS accepts it without effect,
and lets it hide a message that is already visible. It looks at every message of a queue ten times a second for each
request that waits: hundreds of workers and thousands of messages would keep it busy.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from ministack.services import sqs

from ._wrap import wrap

LONGEST_SECONDS = 43200
"""The longest time from the receipt of a message until it is visible again."""
_WAIT_SECONDS = 0.1
_QUIET = "quiet_until"
"""The key of a queue for the moment before which no message becomes visible unless one comes or changes, and for the
number of messages then."""

Message = dict[str, Any]
Queue = dict[str, Any]


def apply() -> None:
    sqs._act_receive_message = sqs._HANDLERS["ReceiveMessage"] = _receive
    sqs._act_delete_message = sqs._HANDLERS["DeleteMessage"] = _delete
    sqs._act_change_visibility = sqs._HANDLERS["ChangeMessageVisibility"] = _change
    sqs._act_delete_message_batch = sqs._HANDLERS["DeleteMessageBatch"] = _batch("DeleteMessage", _delete)
    sqs._act_change_visibility_batch = sqs._HANDLERS["ChangeMessageVisibilityBatch"] = _batch(
        "ChangeMessageVisibility", _change
    )

    @wrap(sqs, "_collect_msgs")
    def collect(original: Callable[..., list[Message]], queue: Queue, most: int, visibility: int) -> list[Message]:
        if queue["is_fifo"]:
            sqs._dlq_sweep(queue)
            messages = original(queue, most, visibility)
        else:
            messages = _collect(queue, most, visibility)
        for one in messages:
            one["receipt_handle"] = _handle(queue, one)
            one["received_at"] = time.time()
        return messages

    @wrap(sqs, "_dlq_sweep")
    def sweep(original: Callable[..., None], queue: Queue) -> None:
        if queue["is_fifo"]:
            original(queue)


async def _receive(data: Message, url: str) -> Message:
    queue = sqs._get_q(data.get("QueueUrl", url), "sqs:ReceiveMessage")
    most = _number(data, "MaxNumberOfMessages", 1, 1, 10)
    attributes = queue["attributes"]
    visibility = _number(data, "VisibilityTimeout", attributes["VisibilityTimeout"], 0, LONGEST_SECONDS)
    wait = _number(data, "WaitTimeSeconds", attributes["ReceiveMessageWaitTimeSeconds"], 0, 20)
    deadline = time.monotonic() + wait
    while not (messages := _take(queue, most, visibility)) and time.monotonic() < deadline:
        await asyncio.sleep(min(_WAIT_SECONDS, max(0.01, deadline - time.monotonic())))
    names = [*(data.get("AttributeNames") or ()), *(data.get("MessageSystemAttributeNames") or ())]
    described = [_described(one, names, data.get("MessageAttributeNames") or []) for one in messages]
    return {"Messages": described} if described else {}


def _number(data: Message, name: str, default: Any, least: int, most: int) -> int:
    value = int(default if data.get(name) is None else data[name])
    if not least <= value <= most:
        message = (
            f"Value {value} for parameter {name} is invalid. Reason: Must be between {least} and {most}, if provided."
        )
        raise sqs._Err("InvalidParameterValue", message)
    return value


def _take(queue: Queue, most: int, visibility: int) -> list[Message]:
    """Returns messages that are visible now. It does not look where it knows that there are none."""
    until, count = queue.get(_QUIET, (0.0, -1))
    if time.time() < until and count == len(queue["messages"]):
        return []
    messages: list[Message] = sqs._collect_msgs(queue, most, visibility)
    if messages or queue["is_fifo"]:
        queue.pop(_QUIET, None)
    else:
        soonest = min((one["visible_at"] for one in queue["messages"]), default=time.time() + 1)
        queue[_QUIET] = min(soonest, time.time() + 1), len(queue["messages"])  # a retention may end meanwhile
    return messages


def _collect(queue: Queue, most: int, visibility: int) -> list[Message]:
    """Takes the first visible messages of a standard queue. On the way, it removes those that are too old or, as SQS
    does at a receipt, have been received too often.
    """
    now = time.time()
    visible: list[Message] = []
    gone: list[Message] = []
    tries, dead = _redrive(queue)
    oldest = now - int(queue["attributes"]["MessageRetentionPeriod"])
    for one in queue["messages"]:
        if len(visible) == most:
            break
        sqs._ensure_msg_fields(one)
        if one.get("enqueued_at", one["sent_at"]) <= oldest:
            gone.append(one)
        elif one["visible_at"] > now:
            continue
        elif dead is not None and one["receive_count"] >= tries:
            gone.append(one)
            _bury(queue, dead, one, now)
        else:
            visible.append(one)
    for one in gone:
        _remove(queue, one)
    for one in visible:
        one["visible_at"] = now + visibility
        one["receive_count"] += 1
        one["first_receive_at"] = one["first_receive_at"] or now
    return visible


def _redrive(queue: Queue) -> tuple[int, Queue | None]:
    policy = json.loads(queue["attributes"].get("RedrivePolicy") or "{}")
    return int(policy.get("maxReceiveCount", 0)), sqs._queue_by_arn(policy.get("deadLetterTargetArn", ""))


def _bury(queue: Queue, dead: Queue, message: Message, now: float) -> None:
    source = {"DeadLetterQueueSourceArn": queue["attributes"]["QueueArn"]}
    moved = {**message, "receipt_handle": None, "visible_at": now, "moved_at": now}
    dead["messages"].append({**moved, "sys": {**source, **message.get("sys", {})}})
    sqs.esm_wake.set()


def _remove(queue: Queue, message: Message) -> None:
    """Removes a message, by its identity: to compare messages would take long."""
    for place, one in enumerate(queue["messages"]):
        if one is message:
            del queue["messages"][place]
            return


def _described(message: Message, names: list[str], attribute_names: list[str]) -> Message:
    entry = {
        "MessageId": message["id"],
        "ReceiptHandle": message["receipt_handle"],
        "MD5OfBody": message["md5_body"],
        "Body": message["body"],
    }
    if attributes := sqs._build_sys_attrs(message, names):
        entry["Attributes"] = attributes
    if own := sqs._filter_msg_attrs(message["message_attributes"], attribute_names):
        entry |= {"MessageAttributes": own, "MD5OfMessageAttributes": sqs._md5_msg_attrs(own)}
    return entry


def _handle(queue: Queue, message: Message) -> str:
    parts = uuid.uuid4().hex, queue["attributes"]["QueueArn"], message["id"]
    return base64.b64encode(" ".join(parts).encode()).decode()


def _message_of(data: Message, queue: Queue) -> Message | None:
    """Returns the message of a receipt handle; None if it is no longer on the queue, or was received again.

    Raises SQS's error for a handle that the queue has not issued.
    """
    handle = data.get("ReceiptHandle") or ""
    try:
        _, arn, _ = base64.b64decode(handle, validate=True).decode().split(" ")
    except (binascii.Error, ValueError):
        arn = ""
    if arn != queue["attributes"]["QueueArn"]:
        raise sqs._Err("ReceiptHandleIsInvalid", f'The input receipt handle "{handle}" is not a valid receipt handle.')
    return next((one for one in queue["messages"] if one.get("receipt_handle") == handle), None)


def _delete(data: Message, url: str) -> Message:
    queue = sqs._get_q(data.get("QueueUrl", url), "sqs:DeleteMessage")
    if message := _message_of(data, queue):
        _remove(queue, message)
        queue.pop(_QUIET, None)
    return {}


def _change(data: Message, url: str) -> Message:
    """Changes when a message is visible again. Nothing happens if it is already, or was received again."""
    queue = sqs._get_q(data.get("QueueUrl", url), "sqs:ChangeMessageVisibility")
    message, now = _message_of(data, queue), time.time()
    seconds = _number(data, "VisibilityTimeout", 0, 0, LONGEST_SECONDS)
    if message is None and not _exists(data, queue):
        reason = "Message does not exist or is not available for visibility timeout change."
        text = f"Value {data['ReceiptHandle']} for parameter ReceiptHandle is invalid. Reason: {reason}"
        raise sqs._Err("InvalidParameterValue", text)
    if message is None or message["visible_at"] <= now:
        return {}
    if now + seconds > message["received_at"] + LONGEST_SECONDS:
        reason = f"Total VisibilityTimeout for the message is beyond the limit [{LONGEST_SECONDS} seconds]"
        text = f"Value {seconds} for parameter VisibilityTimeout is invalid. Reason: {reason}"
        raise sqs._Err("InvalidParameterValue", text)
    message["visible_at"] = now + seconds
    queue.pop(_QUIET, None)
    if not seconds:
        sqs.esm_wake.set()
    return {}


def _exists(data: Message, queue: Queue) -> bool:
    identifier = base64.b64decode(data["ReceiptHandle"]).decode().rsplit(" ", 1)[-1]
    return any(one["id"] == identifier for one in queue["messages"])


def _batch(action: str, single: Callable[[Message, str], Message]) -> Callable[[Message, str], Message]:
    """Returns the handler that calls another one for each entry of a batch."""

    def handle(data: Message, url: str) -> Message:
        sqs._get_q(data.get("QueueUrl", url), f"sqs:{action}")
        entries = data.get("Entries", [])
        sqs._validate_batch_entries(entries, f"{action}BatchRequestEntry")
        outcomes = [_outcome(single, {**entry, "QueueUrl": data.get("QueueUrl", url)}, url) for entry in entries]
        failed = [one for one in outcomes if "Code" in one]
        return {"Successful": [one for one in outcomes if "Code" not in one], "Failed": failed}

    return handle


def _outcome(single: Callable[[Message, str], Message], entry: Message, url: str) -> Message:
    try:
        single(entry, url)
    except sqs._Err as error:
        return {"Id": entry["Id"], "Code": error.code, "Message": error.message, "SenderFault": True}
    return {"Id": entry["Id"]}
