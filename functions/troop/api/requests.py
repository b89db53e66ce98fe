"""Who is asking: what API Gateway says of a request and its caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from troop.chaos.changes import Author

LARGEST_BODY = 64 * 1024
"""Characters; a hundred times what the longest sensible change needs."""

LARGEST_BODIES = dict.fromkeys(("/benchmarks", "/benchmarks/estimate", "/fleets"), 2 * 1024 * 1024)
"""By path, where more is needed: a benchmark comes with its files, and so does a fleet."""

READS_ITS_OWN = frozenset({"/simianarmy/api/v1/chaos"})
"""Paths whose routes read bodies and queries themselves, of whatever content type and names."""

SIGNED = "X-Amz-"
"""What the parameters of a signature begin with that is in the query and not in headers."""


def caller_of(event: Mapping[str, Any]) -> str:
    """The ARN that IAM knows the caller by; "" when API Gateway has not asked IAM, which it always does here."""
    identity = (event.get("requestContext") or {}).get("identity") or {}
    return str(identity.get("userArn") or "")


def principal_of(event: Mapping[str, Any]) -> str:
    """The caller without the name of its session, which SDKs make up anew whenever they assume a role: a program that
    asks again after that is the same caller.
    """
    caller = caller_of(event)
    return caller.rpartition("/")[0] if ":assumed-role/" in caller else caller


def received_at(event: Mapping[str, Any], now: datetime) -> datetime:
    """When the request came, by API Gateway's clock; ``now`` when it does not say, which it always does on AWS."""
    stamp = (event.get("requestContext") or {}).get("requestTimeEpoch")
    return datetime.fromtimestamp(stamp / 1000, UTC) if isinstance(stamp, (int, float)) and stamp > 0 else now


def author_of(event: Mapping[str, Any]) -> Author:
    """Whom a change is recorded for."""
    request_id = (event.get("requestContext") or {}).get("requestId") or uuid4()
    return Author(caller=caller_of(event) or "unknown", request_id=str(request_id))


def body_problem(event: Mapping[str, Any]) -> str | None:
    """What keeps a body from being read as JSON, before anything looks into it; None when nothing does."""
    body = event.get("body")
    if not body or event.get("path") in READS_ITS_OWN:
        return None
    headers = {str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        return f"the body's content type is {kind[:80]!r}: send application/json"
    largest = LARGEST_BODIES.get(str(event.get("path")), LARGEST_BODY)
    if len(body) > largest:
        return f"the body is longer than {largest} characters: send what is to change, and nothing else"
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return "the body is no JSON document that can be read: send an object such as {}"
    return None
