"""Checks what SQS checks of queues: names, attributes and their values, redrive policies, and names of deleted queues.

MiniStack stores any attribute, lets each queue be the dead-letter queue of every other, creates a queue again at once
after its deletion, and describes all attributes to who asks for none. Its queues have no encryption by default.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import sqs

from ..config import ACCOUNT_ID, REGION
from ._wrap import wrap

DELETION_SECONDS = 60.0
"""The time after a deletion in which the name of a queue cannot be used."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_SWITCHES = ("SqsManagedSseEnabled", "ContentBasedDeduplication", "FifoQueue")
_POLICIES = ("Policy", "RedrivePolicy", "RedriveAllowPolicy")
_SETTABLE = frozenset(
    {
        *sqs._NUMERIC_ATTR_RANGES,
        *_SWITCHES,
        *_POLICIES,
        *("KmsMasterKeyId", "DeduplicationScope", "FifoThroughputLimit"),
    }
)
_COUNTS = ("", "NotVisible", "Delayed")
_READABLE = _SETTABLE | {
    *("All", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp"),
    *(f"ApproximateNumberOfMessages{count}" for count in _COUNTS),
}
_MOST_SOURCES = 10
_deleted: dict[str, float] = {}
"""When queues were deleted, by their names and the monotonic clock."""


def apply() -> None:
    @wrap(sqs, "_act_create_queue")
    def create(original: Callable[..., Any], data: dict[str, Any], url: str) -> Any:
        name, attributes = str(data.get("QueueName", "")), data.get("Attributes") or {}
        if not _NAME.fullmatch(name):
            raise sqs._Err(
                "InvalidParameterValue",
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
            )
        if time.monotonic() < _deleted.get(name, -DELETION_SECONDS) + DELETION_SECONDS:
            message = (
                "You must wait 60 seconds after deleting a queue before you can create another with the same name."
            )
            raise sqs._Err("QueueDeletedRecently", message)
        _check(attributes, _arn(name))
        existing = sqs._queues.get(sqs._queue_url(name))
        for key, value in attributes.items() if existing else ():
            if existing["attributes"].get(key) != str(value):
                message = f"A queue already exists with the same name and a different value for attribute {key}"
                raise sqs._Err("QueueNameExists", message)
        encryption = {} if attributes.get("KmsMasterKeyId") else {"SqsManagedSseEnabled": "true"}
        more = {} if existing else {"Attributes": {**encryption, **attributes}}
        return original({**data, **more}, url)

    @wrap(sqs, "_act_set_queue_attributes")
    def change(original: Callable[..., Any], data: dict[str, Any], url: str) -> Any:
        attributes = data.get("Attributes") or {}
        queue = sqs._get_q(data.get("QueueUrl", url), "sqs:SetQueueAttributes")
        _check(attributes, queue["attributes"]["QueueArn"])
        if attributes.get("KmsMasterKeyId"):
            queue["attributes"].pop("SqsManagedSseEnabled", None)
        elif attributes.get("SqsManagedSseEnabled") == "true":
            queue["attributes"].pop("KmsMasterKeyId", None)
        return original(data, url)

    @wrap(sqs, "_act_get_queue_attributes")
    def read(original: Callable[..., Any], data: dict[str, Any], url: str) -> Any:
        names = data.get("AttributeNames") or []
        _known(names, _READABLE)
        if names:
            return original(data, url)
        sqs._get_q(data.get("QueueUrl", url), "sqs:GetQueueAttributes")
        return {}

    @wrap(sqs, "_act_delete_queue")
    def delete(original: Callable[..., Any], data: dict[str, Any], url: str) -> Any:
        name = sqs._get_q(data.get("QueueUrl", url))["name"]
        answer = original(data, url)
        _deleted[name] = time.monotonic()
        return answer

    for call in (create, change, read, delete):
        action = "".join(word.capitalize() for word in call.__name__.removeprefix("_act_").split("_"))
        sqs._HANDLERS[action] = call

    @wrap(iam_evaluator, "enforce")
    def enforce(original: Callable[..., Any], access_key_id: str, iam_action: str, *args: Any, **named: Any) -> Any:
        refused = original(access_key_id, iam_action, *args, **named)
        if refused is None and iam_action == "sqs:CreateQueue" and (named.get("service_context") or {}):
            return original(access_key_id, "sqs:TagQueue", *args, **named)
        return refused


def _arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"


def _known(names: Collection[str], possible: Collection[str]) -> None:
    for name in names:
        if name not in possible:
            raise sqs._Err("InvalidAttributeName", f"Unknown Attribute {name}.")


def _check(attributes: Mapping[str, Any], queue: str) -> None:
    """Raises SQS's error for attributes that a queue, named by its ARN, cannot have."""
    _known(attributes, _SETTABLE)
    sqs._validate_numeric_attrs(dict(attributes))
    for name in _SWITCHES:
        if attributes.get(name, "true") not in ("true", "false"):
            raise _invalid(name)
    if attributes.get("KmsMasterKeyId") and attributes.get("SqsManagedSseEnabled") == "true":
        raise _invalid("SqsManagedSseEnabled", "A queue has one type of encryption.")
    if (policy := attributes.get("Policy")) and iam_evaluator.validate_policy_document(policy):
        raise _invalid("Policy")
    if allowed := attributes.get("RedriveAllowPolicy"):
        _check_sources(allowed)
    if redrive := attributes.get("RedrivePolicy"):
        sqs._validate_redrive_policy(str(redrive))
        target = sqs._queue_by_arn(json.loads(redrive)["deadLetterTargetArn"])
        if not _may_redrive(target["attributes"].get("RedriveAllowPolicy"), queue):
            raise _invalid("RedrivePolicy", "The dead-letter queue does not allow this source queue.")


def _check_sources(text: str) -> None:
    try:
        document = json.loads(text)
        permission, sources = document["redrivePermission"], document.get("sourceQueueArns", [])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _invalid("RedriveAllowPolicy") from None
    is_by_queue = permission == "byQueue"
    if permission not in ("allowAll", "denyAll", "byQueue") or bool(sources) != is_by_queue:
        raise _invalid("RedriveAllowPolicy")
    if len(sources) > _MOST_SOURCES:
        raise _invalid("RedriveAllowPolicy", f"At most {_MOST_SOURCES} source queues.")


def _may_redrive(allowed: str | None, source: str) -> bool:
    document = json.loads(allowed or '{"redrivePermission": "allowAll"}')
    permission: str = document["redrivePermission"]
    return permission == "allowAll" or (permission == "byQueue" and source in document["sourceQueueArns"])


def _invalid(name: str, reason: str = "") -> Any:
    return sqs._Err("InvalidAttributeValue", f"Invalid value for the parameter {name}. {reason}".strip())
