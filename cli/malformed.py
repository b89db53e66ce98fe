"""A check of the doctor's: which units are left alone because what somebody wrote cannot be read."""

from __future__ import annotations

from itertools import islice
from typing import Any

from cli.client import TroopClient
from cli.errors import CliError, Exit

LOOKED_AT = 2000
"""Groups; 40 pages of the API."""

_NAMED = 10


def check(client: TroopClient) -> dict[str, Any]:
    """The check, as GET /health gives its own. A warning: each such unit's owner believes to have said something."""
    base: dict[str, Any] = {"name": "units-malformed", "value": None, "threshold": 0}
    try:
        groups = list(islice(client.groups(), LOOKED_AT))
    except CliError as error:
        if error.code is Exit.FORBIDDEN:  # who only watches need not see groups: it is no ailment of the deployment
            return base | {"status": "ok", "detail": f"not looked at: {error}", "todo": ""}
        todo = "try again; `troop groups` reads the same"
        return base | {"status": "warn", "detail": f"could not be read: {error}", "todo": todo}
    units = sorted({group["unit"] for group in groups if group["problems"]})
    of = f" of the first {LOOKED_AT:,} groups" if len(groups) == LOOKED_AT else ""
    if not units:
        return base | {"status": "ok", "value": 0, "detail": f"every unit's policy{of} can be read", "todo": ""}
    named = ", ".join(units[:_NAMED]) + (f" and {len(units) - _NAMED} more" if len(units) > _NAMED else "")
    todo = "`troop group UNIT` says which value, and where it stands; docs/chaos.md#how-you-have-your-say"
    return base | {"status": "warn", "value": len(units), "detail": f"left alone{of}: {named}", "todo": todo}
