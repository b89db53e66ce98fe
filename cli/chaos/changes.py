"""Describes changes by people in words, as GET /changes and GET /groups/{unit} return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.shared import show
from troop.shared.state_keys import HALT_ID, ITSELF, REAPER_OFF, SCHEDULES_OFF

SWITCH = "the switch"

_TURNED = {
    "halted": ("halted", "resumed"),
    "leashed": ("leashed", "unleashed"),
    REAPER_OFF: ("reaper off", "reaper on"),
    SCHEDULES_OFF: ("schedules off", "schedules on"),
}
"""What somebody did who set a key of the switch to true, and to false."""


def subject(change: Mapping[str, Any]) -> str:
    """Returns what changed: a unit, or the switch."""
    return str(change["unit"] or SWITCH)


def who(caller: str) -> str:
    """Returns the last part of a caller's ARN: the user, or the session of a role."""
    return caller.rpartition("/")[2] or caller


def in_words(change: Mapping[str, Any]) -> str:
    """Returns what changed, each value before and after: ``min_healthy: 2 -> 3; owner: not set -> shop``.

    The switch is described by what somebody did, with the id of a halt of many deployments, and the reason:
    ``halted: incident 4711``.
    """
    values: Mapping[str, Mapping[str, Any]] = change["changes"]
    done = [_TURNED[key][0 if value["new"] else 1] for key, value in values.items() if key in _TURNED]
    if ITSELF in values and "resumed" not in done:
        done.append("resumed")
    reason = values.get("reason", {}).get("new") if done else None
    others = [
        _before_and_after(key, value)
        for key, value in values.items()
        if key not in _TURNED and not (done and key in ("reason", HALT_ID))
    ]
    halt_id = next(filter(None, values.get(HALT_ID, {}).values()), None)
    head = ", ".join(done) + (f" ({halt_id})" if halt_id else "") + (f": {reason}" if reason else "")
    return "; ".join([*([head] if done else []), *others])


def _before_and_after(key: str, value: Mapping[str, Any]) -> str:
    if key == "unrecovered":
        return "returned to chaos"
    if key == ITSELF:
        return f"ended the deployment's own halt: {value['old'].get('why', 'it gave no reason')}"
    return f"{key}: {_plain(value.get('old'))} -> {_plain(value.get('new'))}"


def _plain(value: Any) -> str:
    return "not set" if value is None else show.plain(value)
