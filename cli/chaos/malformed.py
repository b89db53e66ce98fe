"""Checks, for `troop doctor`, which units are skipped because their policy is malformed."""

from __future__ import annotations

import shlex
from itertools import islice
from typing import Any

from cli.chaos.units import outlook
from cli.client.client import TroopClient
from cli.shared import side_by_side
from cli.shared.errors import CliError, Exit

LOOKED_AT = 2000
"""Groups; 40 pages of the API."""

_NAMED = 10


def check(client: TroopClient, seconds: float | None = None) -> dict[str, Any]:
    """Returns the check in the form of GET /health. It warns: owners believe that their policy is in force.

    Args:
        seconds: the time to read the groups.
    """
    base: dict[str, Any] = {"name": "units-malformed", "value": None, "threshold": 0}
    read = {"groups": lambda: list(islice(client.groups(), LOOKED_AT))}
    groups = side_by_side.answers(read, seconds=seconds)["groups"]
    if isinstance(groups, CliError):
        if groups.code is Exit.FORBIDDEN:  # not a fault of the deployment: the caller may only watch
            return base | {"status": "ok", "detail": f"not checked: {groups}", "todo": ""}
        todo = "try again; `troop groups` reads the same data"
        return base | {"status": "warn", "detail": f"groups cannot be read: {groups}", "todo": todo}
    units = sorted({group["unit"] for group in groups if outlook(group)["reason"] == "malformed"})
    scope = f" of the first {LOOKED_AT:,} groups" if len(groups) == LOOKED_AT else ""
    if not units:
        return base | {"status": "ok", "value": 0, "detail": f"the policy of every unit{scope} is valid", "todo": ""}
    named = ", ".join(units[:_NAMED]) + (f" and {len(units) - _NAMED} more" if len(units) > _NAMED else "")
    finding = {
        "todo": "correct the value at its source, which this shows",
        "commands": [f"troop group {shlex.quote(unit)}" for unit in units[:_NAMED]],
        "runbook": "docs/guides/chaos.md#control-what-troop-does-to-your-group",
    }
    return base | {"status": "warn", "value": len(units), "detail": f"skipped{scope}: {named}", **finding}
