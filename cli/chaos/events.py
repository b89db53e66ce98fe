"""Formats events for tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.shared import show
from troop.chaos.events import exception_of


def row(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns an event as a row of the table."""
    seconds = event.get("recovery_seconds")
    exception = event.get("terminated_at") and exception_of(event["method"], event.get("os_shutdown"))
    return (
        show.moment(event["at"]),
        event["unit"],
        event["group"],
        event["status"],
        event["instance_id"],
        event["zone"],
        None if seconds is None else f"{seconds:.1f} s",
        "; ".join(filter(None, (event["detail"], exception, _difference(event)))),
    )


def _difference(event: Mapping[str, Any]) -> str:
    """Returns how the replacement differs; "" if it does not. Older deployments do not state it."""
    replacement = event.get("replacement") or {}
    return str(replacement["summary"]) if replacement.get("differences") else ""
