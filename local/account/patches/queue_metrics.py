"""Measures how old the oldest message of a queue is, and answers with the newest values first unless told otherwise.

SQS measures each minute; here it does when somebody asks for metrics, for the current minute. MiniStack measures
nothing, and answers with the oldest values first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ministack.services import cloudwatch, sqs

from ._wrap import wrap

_NAMESPACE, _NAME = "AWS/SQS", "ApproximateAgeOfOldestMessage"
_POISON_RECEIPTS = 3
"""A message that was received more often does not count: SQS takes it for one that nobody can process."""
_MINUTE = 60
_ascending: ContextVar[bool] = ContextVar("ascending", default=False)


def apply() -> None:
    for call in ("_get_metric_data", "_get_metric_statistics"):

        @wrap(cloudwatch, call)
        def get(original: Callable[..., Any], params: Any, data: Any, *more: Any, **named: Any) -> Any:
            order = (data or {}).get("ScanBy") or cloudwatch._p(params, "ScanBy")
            _ascending.set(order == "TimestampAscending")
            for queue in list(sqs._queues.values()):
                _measure(queue)
            return original(params, data, *more, **named)

    for encode in ("_cbor_ok", "_json_ok"):

        @wrap(cloudwatch, encode)
        def answer(original: Callable[..., Any], data: dict[str, Any]) -> Any:
            return original(data if _ascending.get() else _newest_first(data))


def _newest_first(data: dict[str, Any]) -> dict[str, Any]:
    if "MetricDataResults" not in data:
        return data
    results = [
        {**one, "Timestamps": one["Timestamps"][::-1], "Values": one["Values"][::-1]}
        for one in data["MetricDataResults"]
    ]
    return {**data, "MetricDataResults": results}


def _measure(queue: dict[str, Any]) -> None:
    """Records the age for the current minute; nothing for a queue without messages."""
    now = time.time()
    since = [
        one.get("moved_at", one["sent_at"]) for one in queue["messages"] if one["receive_count"] <= _POISON_RECEIPTS
    ]
    dimensions = {"QueueName": queue["name"]}
    points = cloudwatch._metric_bucket((_NAMESPACE, _NAME, cloudwatch._dims_key(dimensions)))
    minute = float(now // _MINUTE * _MINUTE)
    points[:] = [one for one in points if one["Timestamp"] != minute]
    if since:
        points.append({"Timestamp": minute, "Value": now - min(since), "Unit": "Seconds", "Dimensions": dimensions})
