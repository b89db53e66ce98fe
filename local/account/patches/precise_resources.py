"""Requires a permission on the resource that AWS names: the stream of a table, a schedule in its group, the rule of an
event bus, what is in a group of logs (with ``:*`` after its name), all alarms for composite ones. MiniStack requires
one on all streams, takes each schedule to be in the group ``default``, names the bus or the group of logs alone, and
shows a composite alarm by a permission on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import iam_actions
from ministack.services import dynamodb_streams

from ..config import ACCOUNT_ID, REGION
from ._wrap import wrap


def apply() -> None:
    @wrap(iam_actions, "extract_resource_arn")
    def extract(
        original: Callable[..., str],
        service: str,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *request: Any,
        **more: Any,
    ) -> str:
        arn = original(service, method, path, headers, body, *request, **more)
        if service == "scheduler":
            query = request[0] if request else more["query_params"]
            return arn.replace(":schedule/default/", f":schedule/{_group(body, query)}/")
        if service == "events":
            return _rule(body) or arn.replace(":rule/default/", ":rule/")
        if service == "logs" and _named(body, "logGroupName"):
            return f"{arn}:log-stream:{_named(body, 'logStreamName')}"
        if service == "monitoring" and "CompositeAlarm" in _request(body).get("AlarmTypes", ()):
            return "*"
        return (_stream(body) or arn) if service == "dynamodbstreams" else arn

    @wrap(iam_actions, "logs_service_context")
    def context(original: Callable[..., Any], action: str, body: bytes, arn: str, *more: Any) -> Any:
        return original(action, body, arn.partition(":log-stream:")[0], *more)


def _group(body: bytes, query: Any) -> str:
    """Returns the group of the schedule in a request: in its body, or in its address."""
    return _named(body, "GroupName") or str(iam_actions._query_param(query, "groupName") or "default")


def _rule(body: bytes) -> str:
    """Returns the ARN of the rule of targets. It does not name the default bus."""
    rule, bus = _named(body, "Rule"), _named(body, "EventBusName").rpartition("/")[2]
    within = f"{bus}/" if bus and bus != "default" else ""
    return f"arn:aws:events:{REGION}:{ACCOUNT_ID}:rule/{within}{rule}" if rule else ""


def _named(body: bytes, name: str) -> str:
    return str(_request(body).get(name) or "")


def _request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}


def _stream(body: bytes) -> str | None:
    """Returns the ARN of the stream in a request, or of its iterator."""
    try:
        request = json.loads(body)
        token = request.get("ShardIterator")
        within = dynamodb_streams._decode_iterator(token) if token else None
    except (ValueError, AttributeError):
        return None
    arn = (within or {}).get("arn") or request.get("StreamArn")
    return str(arn) if arn else None
