"""Formats events for tables, and checks the names in their filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.chaos import course
from cli.client.client import TroopClient
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.chaos.events import exception_of


def row(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns an event as a row of the table."""
    exception = event.get("terminated_at") and exception_of(event["method"], event.get("os_shutdown"))
    return (
        show.moment(event["at"]),
        event["unit"],
        event["group"],
        event["status"],
        event["instance_id"],
        event["zone"],
        course.recovered_after(event),
        "; ".join(
            filter(
                None,
                (
                    event["detail"],
                    _end_of_fault(event),
                    course.verdict_detail(event),
                    _abort(event),
                    _failure(event),
                    exception,
                    _difference(event),
                ),
            )
        ),
    )


def _abort(event: Mapping[str, Any]) -> str:
    """Returns the alarm that stopped further chaos for the unit, unless the verdict says so; "" without one."""
    abort, judged = event.get("abort"), course.verdict_detail(event)
    return f"alarm {abort['alarm']} went off" if abort and abort["alarm"] not in judged else ""


def _end_of_fault(event: Mapping[str, Any]) -> str:
    """Returns what is unusual about the end of a lasting fault; "" for nothing, and for a termination."""
    injection = event.get("injection")
    if not injection:
        return ""
    request, unproven = injection["end_request"], "" if injection["proof"] else injection["unproven"]
    return "; ".join(
        [
            *([f"asked to end: {request['why']}"] if request else []),
            *([f"not proven to be over, act now: {unproven}"] if unproven else []),
            *(["replaced: its fault was not proven to be over"] if event.get("terminated_at") else []),
            *([f"{', '.join(injection['packages'])} stays installed"] if injection["packages"] else []),
        ]
    )


def _failure(event: Mapping[str, Any]) -> str:
    """Returns why the last launch failed; "" if it did not. Older deployments do not state it."""
    failure = event.get("launch_failure")
    return f"the last launch failed: {failure}" if failure else ""


def _difference(event: Mapping[str, Any]) -> str:
    """Returns how the replacement differs; "" if it does not. Older deployments do not state it."""
    replacement = event.get("replacement") or {}
    return str(replacement["summary"]) if replacement.get("differences") else ""


def check_names(client: TroopClient, group: str | None, unit: str | None) -> None:
    """Runs :func:`_refuse_unknown`, and ignores errors of its look-ups.

    Raises:
        CliError: NO_SUCH_UNIT.
    """
    try:
        _refuse_unknown(client, group, unit)
    except CliError as error:
        if error.code is Exit.NO_SUCH_UNIT:
            raise


def _refuse_unknown(client: TroopClient, group: str | None, unit: str | None) -> None:
    """Refuses names that have neither events nor a unit or group: an empty list would hide a typing error.

    Raises:
        CliError: NO_SUCH_UNIT, with similar names, or with what the name belongs to; other codes from the look-up.
    """
    if unit and not client.events({"unit": unit}, 1) and (owner := client.known_unit(unit)["unit"]) != unit:
        raise CliError(Exit.NO_SUCH_UNIT, f"{unit} is a group of the unit {owner}: --unit {owner}")
    if group and not client.events({"group": group}, 1):
        record = client.known_unit(group)
        groups = [member["group"] for member in record["groups"]]
        if record["unit"] == group and group not in groups:
            groups_hint = f", of the groups {', '.join(groups[:5])}" if groups else ""
            raise CliError(Exit.NO_SUCH_UNIT, f"{group} is a unit{groups_hint}: --unit {group}")
