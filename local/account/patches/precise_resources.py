"""Requires a permission on the specific stream of a table, and on a schedule in its group. MiniStack requires one on
all streams, and takes each schedule to be in the group ``default``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core import iam_actions
from ministack.services import dynamodb_streams

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
        return (_stream(body) or arn) if service == "dynamodbstreams" else arn


def _group(body: bytes, query: Any) -> str:
    """Returns the group of the schedule in a request: in its body, or in its address."""
    try:
        named = json.loads(body).get("GroupName")
    except (ValueError, AttributeError):
        named = None
    return str(named or iam_actions._query_param(query, "groupName") or "default")


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
