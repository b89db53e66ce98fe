"""Parses the reports of a standing fleet's nodes about their health and their work.

Nodes write their reports, so everything in them is checked, and bounded in size. Which node wrote a report, its key
says; and when, S3 says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from troop.bench.definition.living import Grade
from troop.measure.redaction import redacted
from troop.shared.values import json_in, shown

FORMAT = "troop.report/1"

MOST_BYTES = 64 * 1024
"""The most bytes of a report that is read; a larger one is malformed."""

MOST_CHECKS = 20
"""The most checks of a report, and of a role, that count: the worst first."""

LONGEST_NAME, LONGEST_TEXT = 64, 200
"""Characters of a check's name, and of its other texts."""

SEVERITY: Mapping[Grade, int] = {grade: place for place, grade in enumerate(Grade)}
"""Sorts grades: a larger number is worse."""


@dataclass(frozen=True)
class Check:
    """One check of a node, as its report says it.

    Attributes:
        value, threshold: None for none.
        detail, todo: "" for nothing.
        actionable: whether somebody must act now if it fails.
    """

    name: str
    status: Grade
    value: float | None = None
    threshold: float | None = None
    detail: str = ""
    todo: str = ""
    actionable: bool = False


@dataclass(frozen=True)
class Report:
    """The newest report of a node.

    Attributes:
        at: when S3 stored it.
        status: the worst of its checks, as the node says; FAIL if the report is malformed.
        failures: failed requests for its health in a row.
        checks: the worst first.
        done, held: tasks that its workers have done, and have now.
        idle_since: since when its workers have had nothing to do; None while they work, and if unknown.
        draining: whether it takes no more tasks, by an order or because of a spot interruption notice.
        drained: whether no worker has a task any more.
        repair: id of the last restart that it has begun; "" for none.
        repaired_at: when that restart ended; None while it goes on, and without one.
        problem: why the report is malformed; "" if it is not.
    """

    id: str
    at: datetime
    status: Grade = Grade.OK
    failures: int = 0
    checks: tuple[Check, ...] = ()
    done: int = 0
    held: int = 0
    idle_since: datetime | None = None
    draining: bool = False
    drained: bool = False
    repair: str = ""
    repaired_at: datetime | None = None
    problem: str = ""


def parse_report(node: str, at: datetime, body: bytes) -> Report:
    """Returns the report of a node. A malformed one fails, with the reason; it never raises.

    Args:
        node: id of the node, by the key of the object.
        at: when S3 stored it.
        body: at most ``MOST_BYTES + 1`` bytes of it.
    """
    try:
        if len(body) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES} bytes")
        return _parsed(node, at, json_in(body.decode()))
    except ValueError as error:
        problem = _text(str(error), LONGEST_TEXT) or "it cannot be read"
        return Report(node, at, Grade.FAIL, problem=problem)


def _parsed(node: str, at: datetime, document: Any) -> Report:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise ValueError(f"it is no document of the format {FORMAT}")
    health, work, repair = (_object(document, key) for key in ("health", "work", "repair"))
    checks = health.get("checks")
    if not isinstance(checks, list | None):
        raise ValueError(f"health.checks is {shown(checks)}, not a list")
    parsed = sorted(map(_check, checks or ()), key=lambda one: -SEVERITY[one.status])
    return Report(
        node,
        at,
        _grade(health.get("status", Grade.OK.value), "health.status"),
        _count(health, "failures"),
        tuple(parsed[:MOST_CHECKS]),
        done=_count(work, "done"),
        held=_count(work, "held"),
        idle_since=_moment(work, "idle_since", at),
        draining=_flag(document, "draining") or bool(document.get("notice")),
        drained=_flag(document, "drained"),
        repair=_text(str(repair.get("id") or ""), LONGEST_TEXT),
        repaired_at=None if repair.get("code") is None else _moment(repair, "at", at) or at,
    )


def _check(document: Any) -> Check:
    if not isinstance(document, Mapping):
        raise ValueError(f"a check is {shown(document)}, not an object")
    name = document.get("name")
    if not isinstance(name, str) or not (name := _text(name, LONGEST_NAME)):
        raise ValueError(f"the name of a check is {shown(document.get('name'))}, not text")
    status = _grade(document.get("status"), f"the status of the check {name}")
    actionable = document.get("actionable")
    return Check(
        name,
        status,
        _number(document, "value"),
        _number(document, "threshold"),
        _text(str(document.get("detail") or ""), LONGEST_TEXT),
        _text(str(document.get("todo") or ""), LONGEST_TEXT),
        actionable if isinstance(actionable, bool) else status is Grade.FAIL,
    )


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"{key} is {shown(value)}, not an object")
    return value or {}


def _grade(value: Any, place: str) -> Grade:
    try:
        return Grade(value)
    except ValueError:
        raise ValueError(f"{place} is {shown(value)}, not one of {', '.join(Grade)}") from None


def _count(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key, 0)
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError(f"{key} is {shown(value)}, not a whole number")
    return value


def _flag(document: Mapping[str, Any], key: str) -> bool:
    value = document.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{key} is {shown(value)}, not true or false")
    return value


def _number(document: Mapping[str, Any], key: str) -> float | None:
    value = document.get(key)
    if value is None:
        return None
    # Larger and smaller numbers cannot be stored, and no check means them.
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _MOST:
        raise ValueError(f"the {key} of a check is {shown(value)}, not a number")
    return round(float(value), _DIGITS)


def _moment(document: Mapping[str, Any], key: str, latest: datetime) -> datetime | None:
    """Returns a moment by the clock of the node, at most ``latest``; None for none."""
    value = document.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_SECONDS:
        raise ValueError(f"{key} is {shown(value)}, not seconds since 1970")
    return min(latest, datetime.fromtimestamp(value, UTC))


def _text(text: str, longest: int) -> str:
    """Returns text of a node for people: in one line, without credentials, and not too long."""
    line = " ".join(redacted(text).split())
    return "".join(character if character.isprintable() else "?" for character in line)[:longest]


_MOST, _DIGITS, _MOST_SECONDS = 10**15, 6, 10**11
