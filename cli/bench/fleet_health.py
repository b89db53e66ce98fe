"""Formats the health, the repairs and the work of standing fleets for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.shared import show
from troop.shared.formatting import USD, counted, duration, money, plain

CHECK_COLUMNS = ("", "role", "check", "nodes", "is", "should be", "detail")
CHECK_DROPPED = ("should be", "is", "nodes")
"""The columns that a narrow terminal omits."""

_COUNTED = ("ok", "warn", "fail", "silent", "new", "draining")
_MOST_IDS = 3

REPAIR_COLUMNS = ("repaired", "role", "node", "repair", "because")


def role_health(role: Mapping[str, Any]) -> str:
    """Returns the health of a role: ``workers: 8 ok, 1 fail, 1 silent``."""
    numbers = [f"{role[kind]:,} {kind}" for kind in _COUNTED if role.get(kind)]
    return f"{role['role']}: {', '.join(numbers) or 'no node reports'}"


def check_rows(roles: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns the rows of all checks that do not pass."""
    return [
        (
            check["status"],
            role["role"],
            check["name"],
            _nodes(check),
            _number(check["value"]),
            _number(check["threshold"]),
            check["detail"],
        )
        for role, check in _findings(roles)
    ]


def remedies(roles: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields what to do about each check that does not pass, and has a remedy."""
    for role, check in _findings(roles):
        if check["todo"]:
            urgency = "act now, " if check["status"] == "fail" and check["actionable"] else ""
            yield f"{role['role']}, {check['name']}: {urgency}{check['todo']}"


def _findings(roles: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return ((role, check) for role in roles for check in role["checks"] if check["status"] != "ok")


def _nodes(check: Mapping[str, Any]) -> str:
    ids = check["node_ids"][:_MOST_IDS]
    more = check["nodes"] - len(ids)
    return ", ".join([*ids, *([f"{more:,} more" if ids else f"{more:,}"] if more > 0 else [])])


def _number(value: float | None) -> str:
    return "" if value is None else plain(value)


def work_lines(work: Mapping[str, Any], currency: str = USD) -> Iterator[str]:
    """Yields the tasks of a fleet, and what one costs."""
    yield (
        f"tasks: {work['submitted']:,} submitted, {work['done']:,} done, {work['waiting']:,} waiting, "
        f"{work['in_work']:,} in work, {work['dead']:,} dead"
    )
    parts = []
    if work.get("oldest_seconds") is not None:
        parts.append(f"the oldest waits for {duration(work['oldest_seconds'])}")
    if work.get("done_an_hour") is not None:
        parts.append(f"{plain(work['done_an_hour'])} done an hour")
    if work.get("cost_per_job") is not None:
        parts.append(f"{money(work['cost_per_job'], currency)} for each task done so far")
    if parts:
        yield ", ".join(parts)
    if work.get("may_lack_tasks"):
        yield "SQS may have deleted tasks: some waited for more than 12 days. They count as done: compare the results"


def withheld(view: Mapping[str, Any]) -> Iterator[str]:
    """Yields why roles have fewer nodes than their work needs."""
    for one in view.get("withheld") or ():
        yield f"{one['role']} do not grow: {one['reason']}"


def repair_rows(repairs: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns the rows of repairs, with which one it is of the node."""
    return [
        (show.moment(one["at"]), one["role"], one["node"], _nth(one["do"], one["number"]), one["reason"])
        for one in repairs
    ]


def _nth(do: str, number: int) -> str:
    return do if number <= 1 else f"{do} (number {number})"


def repaired(count: int) -> str:
    """Returns how many repairs the last hour had."""
    return f"{counted(count, 'repair')} in the last hour"
