"""Reads what API Gateway reports about a request and its caller."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from troop.shared.errors import TroopError
from troop.shared.values import MOST_VALUES, excess, json_in
from troop.shared.version import COMMAND_HEADER, OLDEST_COMMAND, VERSION, is_older

LARGEST_BODY = 64 * 1024
"""The most characters of a body: a hundred times the longest sensible change."""

LARGEST_BODIES = dict.fromkeys(
    ("/benchmarks", "/benchmarks/estimate", "/benchmarks/schedules", "/fleets", "/fleets/estimate"), 2 * 1024 * 1024
)
"""The larger limits by path: benchmarks and fleets come with their files."""

LARGEST_TASKS = 5 * 1024 * 1024
"""The most characters of a body with tasks: with escapes, it must fit into Lambda's 6 MB."""

_TASKS = re.compile(r"/fleets/[^/]+/tasks")

_DEEPEST_BODY = 32
"""The most levels of a body: more than twice those of a benchmark's file."""

READS_ITS_OWN = frozenset({"/simianarmy/api/v1/chaos"})
"""Paths whose routes read bodies and queries themselves, of any content type and with any names."""

SWITCH_PATH = "/switch"

SIGNED = "X-Amz-"
"""The prefix of the parameters of a signature in the query instead of headers."""


def caller_of(event: Mapping[str, Any]) -> str:
    """Returns the caller's ARN in IAM; "" when API Gateway did not ask IAM, which never happens on AWS."""
    identity = (event.get("requestContext") or {}).get("identity") or {}
    return str(identity.get("userArn") or "")


def principal_of(event: Mapping[str, Any]) -> str:
    """Returns the caller without its session name. SDKs invent a new session name for each AssumeRole; a program that
    asks again after that is the same caller.
    """
    caller = caller_of(event)
    return caller.rpartition("/")[0] if ":assumed-role/" in caller else caller


def received_at(event: Mapping[str, Any], now: datetime) -> datetime:
    """Returns when API Gateway received the request; ``now`` when it does not say, which never happens on AWS."""
    stamp = (event.get("requestContext") or {}).get("requestTimeEpoch")
    return datetime.fromtimestamp(stamp / 1000, UTC) if isinstance(stamp, (int, float)) and stamp > 0 else now


def command_problem(event: Mapping[str, Any]) -> str | None:
    """Returns why a request of the command `troop` is refused: its version is too old. None if it is not.

    The switch can be changed by any version, because `troop halt` must always work.
    """
    version = _headers(event).get(COMMAND_HEADER.lower(), "")
    if event.get("path") == SWITCH_PATH or not is_older(version, OLDEST_COMMAND):
        return None
    return (
        f"the command has version {version}, and this deployment (version {VERSION}) needs at least {OLDEST_COMMAND}: "
        "upgrade the command"
    )


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (event.get("headers") or {}).items()}


def body_problem(event: Mapping[str, Any]) -> str | None:
    """Returns why a body cannot be read as JSON; None when it can. Does not look into the body."""
    body = event.get("body")
    if not body or event.get("path") in READS_ITS_OWN:
        return None
    kind = _headers(event).get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        return f"the body's content type is {kind[:80]!r}: send application/json"
    try:
        parsed_body(body, _largest(str(event.get("path"))))
    except BadBodyError as bad:
        return str(bad)
    return None


def _largest(path: str) -> int:
    return LARGEST_TASKS if _TASKS.fullmatch(path) else LARGEST_BODIES.get(path, LARGEST_BODY)


class BadBodyError(TroopError):
    """A body that is refused before a route looks into it; the message says why."""


def parsed_body(body: str, largest: int = LARGEST_BODY) -> Any:
    """Returns the JSON document of a body. What it costs is bounded by the limits, not by the body.

    Args:
        largest: the most characters.

    Raises:
        BadBodyError: the body is too large, has too many values or levels, or is no JSON that can be written again.
    """
    if len(body) > largest:
        raise BadBodyError(f"the body is longer than {largest} characters: send only what changes")
    try:
        document = json_in(body)
    except ValueError as error:
        why = "" if isinstance(error, json.JSONDecodeError) else f" ({error})"
        raise BadBodyError(f"the body is not a valid JSON document{why}: send an object such as {{}}") from None
    if too_much := excess(document, _DEEPEST_BODY, MOST_VALUES):
        raise BadBodyError(f"the body {too_much}: send only what changes")
    return document
