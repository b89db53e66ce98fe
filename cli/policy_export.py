"""What people have set, for all units of a deployment."""

from __future__ import annotations

from typing import Any

from cli import show
from cli.client import TroopClient
from cli.policy_values import written


def exported(client: TroopClient) -> dict[str, dict[str, Any]]:
    """The policy of every unit for which something is set in ``GroupTags``, whether it has a group (yet) or not.

    What no import would take is said on stderr: an item whose key no unit can have, and values that are malformed.
    """
    units = {}
    for entry in sorted(client.policies(), key=lambda entry: str(entry["unit"])):
        if entry["id"] is None:
            show.note(f"left out, as no unit can have that name: {entry['unit']!r}", style="yellow")
            continue
        policy, problems = written(entry["item"])
        if policy:
            units[entry["unit"]] = policy
        if problems:
            message = f"{entry['unit']} is left alone, and import refuses it: {'; '.join(problems)}"
            show.note(message, style="yellow")
    return units
