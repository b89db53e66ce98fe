"""Collects what people have set for the units of a deployment."""

from __future__ import annotations

from typing import Any

from cli.client.client import TroopClient
from cli.policies.values import written
from cli.shared import show


def exported(client: TroopClient) -> dict[str, dict[str, Any]]:
    """Returns the policy of every unit with an item in ``GroupTags``, whether it has a group or not.

    Prints on stderr what an import would refuse: items whose key cannot be a unit's name, and malformed values.
    """
    units = {}
    for entry in sorted(client.policies(), key=lambda entry: str(entry["unit"])):
        if entry["id"] is None:
            show.note(f"omitted, because it cannot be the name of a unit: {entry['unit']!r}", style="yellow")
            continue
        policy, problems = written(entry["item"])
        if policy:
            units[entry["unit"]] = policy
        if problems:
            message = f"{entry['unit']} is skipped, and import refuses it: {'; '.join(problems)}"
            show.note(message, style="yellow")
    return units
