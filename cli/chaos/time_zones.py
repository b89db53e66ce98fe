"""Compares, for `troop doctor`, this command's time zones with those of the deployed functions."""

from __future__ import annotations

from typing import Any

from troop.shared import zones


def check(deployed: str | None) -> dict[str, Any]:
    """Returns the check in the form of GET /health.

    Args:
        deployed: the functions' release of the IANA time zones, such as ``2026f``; None if they do not tell it.
    """
    base: dict[str, Any] = {"name": "time-zones-here", "value": None, "threshold": 0}
    if deployed == zones.VERSION:
        return base | {"status": "ok", "value": 0, "detail": f"as in the functions: {deployed}", "todo": ""}
    detail = f"this command has {zones.VERSION}, the functions have {deployed or 'an unknown release'}"
    todo = "plans and the page can differ from what happens: "
    if deployed and deployed > zones.VERSION:  # a year and a letter sort by age
        todo += "update the package tzdata of this command"
    else:
        todo += "deploy again with this version"
    return base | {"status": "warn", "value": 1, "detail": detail, "todo": todo}
