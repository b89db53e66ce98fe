"""What people have set, for all units of a deployment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cli.client import TroopClient
from cli.policy_values import of_item

_AT_ONCE = 8


def exported(client: TroopClient) -> dict[str, dict[str, Any]]:
    """The policy of each unit of this account and region's groups for which something is set."""
    names = sorted({group["unit"] for group in client.groups()})
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:  # a listing does not tell items: each unit is asked for
        told = [unit for unit in pool.map(client.unit, names) if unit]
    return {unit["unit"]: policy for unit in told if (policy := of_item(unit["item"]))}
